// Measures bandwidth per cache level, latency over the working set, and the effective size of each cache.
#include "tools/machine/Machine.h"
#include "tools/machine/Together.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <immintrin.h>
#include <memory>
#include <numeric>
#include <random>
#include <sys/mman.h>

namespace burin::machine {
namespace {

constexpr int64_t kLine = 64;

thread_local volatile char sink;

/// Reads `count` vectors of 64 bytes, `step` bytes apart, `passes` times.
[[gnu::target("avx512f")]] void read512(const char *from, int64_t step, int64_t count, int64_t passes) {
  __m512i sums[8];
  for (__m512i &sum : sums)
    sum = _mm512_setzero_si512();
  for (; passes; --passes) {
    const char *at = from;
    for (int64_t i = 0; i < count; i += 8)
      for (__m512i &sum : sums) {
        sum = _mm512_or_si512(sum, _mm512_loadu_si512(at));
        at += step;
      }
    asm volatile("" : : : "memory");
  }
  for (__m512i &sum : sums)
    sink = char(_mm_cvtsi128_si32(_mm512_castsi512_si128(sum)));
}
[[gnu::target("avx2")]] void read256(const char *from, int64_t step, int64_t count, int64_t passes) {
  __m256i sums[8];
  for (__m256i &sum : sums)
    sum = _mm256_setzero_si256();
  for (; passes; --passes) {
    const char *at = from;
    for (int64_t i = 0; i < count; i += 4)
      for (int j = 0; j < 8; j += 2) {
        sums[j] = _mm256_or_si256(sums[j], _mm256_loadu_si256(reinterpret_cast<const __m256i *>(at)));
        sums[j + 1] = _mm256_or_si256(sums[j + 1], _mm256_loadu_si256(reinterpret_cast<const __m256i *>(at + 32)));
        at += step;
      }
    asm volatile("" : : : "memory");
  }
  for (__m256i &sum : sums)
    sink = char(_mm_cvtsi128_si32(_mm256_castsi256_si128(sum)));
}

/// Returns the rate of `work` in GB/s, where `work` moves `bytes` on each thread per pass.
double rate(uint64_t bytes, int threads, Care care, const std::function<void(int thread, int64_t passes)> &work) {
  int64_t passes = std::max<int64_t>(1, int64_t(8e6 / double(bytes)));
  int tries = care == Care::Quick ? 2 : bytes > (64 << 20) ? 4 : 15; // the first repetition warms the caches
  double seconds = bestSeconds(threads, tries, [&](int thread) { work(thread, passes); });
  return double(bytes) * double(passes) * threads / seconds / 1e9;
}

} // namespace

/// Memory in huge pages where the system has them, so that the measurements show cache misses rather than TLB misses.
class Memories::Block {
public:
  explicit Block(uint64_t bytes) : bytes((bytes + kPage - 1) / kPage * kPage) {
    base = mmap(nullptr, this->bytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
      throw std::bad_alloc();
    data = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(base) + kPage - 1) / kPage * kPage);
    madvise(data, this->bytes, MADV_HUGEPAGE);
    std::memset(data, 1, this->bytes);
  }
  ~Block() { munmap(base, bytes + kPage); }
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;
  char *data;

private:
  static constexpr uint64_t kPage = 2 << 20;
  uint64_t bytes;
  void *base;
};

Memories::Memories(int threads, uint64_t bytesEach) {
  for (int i = 0; i < threads; ++i)
    blocks.push_back(std::make_unique<Block>(bytesEach));
}
Memories::~Memories() = default;

double Memories::read(int threads, uint64_t bytes, Care care, int64_t step, int64_t offset) const {
  static const bool wide = __builtin_cpu_supports("avx512f");
  int64_t lines = int64_t(bytes) / std::abs(step) / 8 * 8;
  return rate(uint64_t(lines * kLine), threads, care, [&](int thread, int64_t passes) {
    const char *start = blocks[size_t(thread)]->data + offset + (step < 0 ? (lines - 1) * -step : 0);
    (wide ? read512 : read256)(start, step, lines, passes);
  });
}

double Memories::copy(int threads, uint64_t bytes, Care care) const {
  uint64_t half = bytes / 2;
  return rate(half * 2, threads, care, [&](int thread, int64_t passes) {
    char *data = blocks[size_t(thread)]->data;
    for (; passes; --passes) {
      std::memcpy(data, data + half, half);
      asm volatile("" : : "r"(data) : "memory");
    }
  });
}

double Memories::latency(uint64_t bytes) {
  char *data = blocks.front()->data;
  auto count = uint32_t(bytes / kLine);
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937 random(1);
  std::shuffle(order.begin(), order.end(), random);
  for (uint32_t i = 0; i < count; ++i)
    *reinterpret_cast<char **>(data + uint64_t(order[i]) * kLine) = data + uint64_t(order[(i + 1) % count]) * kLine;
  char *at = data + uint64_t(order[0]) * kLine;
  constexpr int kSteps = 20'000;
  for (uint32_t i = 0; i < std::min<uint32_t>(count, 2'000'000); ++i)
    at = *reinterpret_cast<char **>(at);
  double seconds = bestSeconds(1, 10, [&](int) {
    for (int i = 0; i < kSteps; ++i)
      at = *reinterpret_cast<char **>(at);
  });
  sink = *at;
  return seconds / kSteps * 1e9;
}

namespace {

/// Returns the working set at which latency crosses the geometric mean of this level's and the next level's latency, by
/// bisection between `low` and `high`.
uint64_t boundary(Memories &memory, double here, double next, uint64_t low, uint64_t high) {
  double middle = std::sqrt(here * next);
  for (int i = 0; i < 6; ++i) {
    auto size = uint64_t(std::sqrt(double(low) * double(high))) / kLine * kLine;
    (memory.latency(size) < middle ? low : high) = size;
  }
  return uint64_t(std::sqrt(double(low) * double(high)));
}

} // namespace

std::vector<Level> memoryLevels(const Machine &m, Care care) {
  // The working set lies well inside its level: half of the first cache; for each other level, the geometric mean of
  // its size and that of the previous one.
  const uint64_t mostBytes = care == Care::Quick ? 1 << 24 : 1 << 29;
  std::vector<Level> levels;
  uint64_t largest = 1 << 20, previous = 0;
  for (const Cache &cache : m.caches) {
    double middle = std::sqrt(double(previous) * double(cache.reportedBytes));
    levels.push_back(
        {cache.name, std::min(mostBytes, previous ? uint64_t(middle) / kLine * kLine : cache.reportedBytes / 2)});
    previous = largest = cache.reportedBytes;
  }
  levels.push_back({"DRAM", std::min(mostBytes, 4 * largest)});
  return levels;
}

void measureMemory(Machine &m, Care care) {
  std::vector<Level> levels = memoryLevels(m, care);
  int most = std::max(m.threads, 1);
  Memories memory(most, levels.back().bytes + kLine);
  for (int threads = 1; threads <= most; threads = threads < most ? most : most + 1)
    for (const auto &[level, bytes] : levels) {
      auto read = [&](int64_t step, int64_t offset = 0) { return memory.read(threads, bytes, care, step, offset); };
      double copy = memory.copy(threads, bytes, care);
      m.bandwidths.push_back({level, bytes, threads, read(kLine), read(4 * kLine), read(-kLine), read(kLine, 4), copy});
    }

  for (uint64_t bytes = 8 << 10; bytes <= levels.back().bytes; bytes *= 2)
    m.curve.push_back({bytes, memory.latency(bytes), memory.read(1, bytes, care)});
  std::vector<double> latencies;
  for (const Level &level : levels)
    latencies.push_back(memory.latency(level.bytes));
  for (size_t i = 0; i < m.caches.size(); ++i)
    if (latencies[i + 1] > 1.3 * latencies[i])
      m.caches[i].measuredBytes =
          boundary(memory, latencies[i], latencies[i + 1], levels[i].bytes, levels[i + 1].bytes);
}

} // namespace burin::machine
