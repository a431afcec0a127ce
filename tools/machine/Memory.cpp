// Caches and memory: bandwidth per level, latency over the size, and where each cache ends.
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

/// Memory in large pages where the system has them, so that the caches are measured and not the TLB.
class Memory {
public:
  explicit Memory(uint64_t bytes) : bytes((bytes + kPage - 1) / kPage * kPage) {
    base = mmap(nullptr, this->bytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
      throw std::bad_alloc();
    data = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(base) + kPage - 1) / kPage * kPage);
    madvise(data, this->bytes, MADV_HUGEPAGE);
    std::memset(data, 1, this->bytes);
  }
  ~Memory() { munmap(base, bytes + kPage); }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  char *data;

private:
  static constexpr uint64_t kPage = 2 << 20;
  uint64_t bytes;
  void *base;
};

thread_local volatile char sink;

/// Reads `count` vectors of 64 bytes, `step` bytes apart, so many times.
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

/// GB/s of `work`, which moves `bytes` on each thread, as many times as it is told.
double rate(uint64_t bytes, int threads, Care care, const std::function<void(int thread, int64_t passes)> &work) {
  int64_t passes = std::max<int64_t>(1, int64_t((care == Care::Quick ? 1e6 : 8e6) / double(bytes)));
  int tries = care == Care::Quick ? 1 : bytes > (64 << 20) ? 4 : 15;
  double seconds = bestSeconds(threads, tries, [&](int thread) { work(thread, passes); });
  return double(bytes) * double(passes) * threads / seconds / 1e9;
}

using Memories = std::vector<std::unique_ptr<Memory>>;

double readRate(const Memories &memory, int threads, Care care, uint64_t bytes, int64_t step, int64_t offset) {
  static const bool wide = __builtin_cpu_supports("avx512f");
  int64_t lines = int64_t(bytes) / std::abs(step) / 8 * 8;
  return rate(uint64_t(lines * kLine), threads, care, [&](int thread, int64_t passes) {
    const char *start = memory[size_t(thread)]->data + offset + (step < 0 ? (lines - 1) * -step : 0);
    (wide ? read512 : read256)(start, step, lines, passes);
  });
}

Bandwidth bandwidthOf(const Memories &memory, const std::string &level, int threads, Care care, uint64_t bytes) {
  auto read = [&](int64_t step, int64_t offset = 0) { return readRate(memory, threads, care, bytes, step, offset); };
  uint64_t half = bytes / 2;
  double copy = rate(half * 2, threads, care, [&](int thread, int64_t passes) {
    char *data = memory[size_t(thread)]->data;
    for (; passes; --passes) {
      std::memcpy(data, data + half, half);
      asm volatile("" : : "r"(data) : "memory");
    }
  });
  return {level, bytes, threads, read(kLine), read(4 * kLine), read(-kLine), read(kLine, 4), copy};
}

/// Nanoseconds per dependent load, from lines in random order.
double latency(char *data, uint64_t bytes) {
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

/// Where latency rises above the middle between that of this level and that of the next.
uint64_t boundary(char *data, double here, double next, uint64_t low, uint64_t high) {
  double middle = std::sqrt(here * next);
  for (int i = 0; i < 6; ++i) {
    auto size = uint64_t(std::sqrt(double(low) * double(high))) / kLine * kLine;
    (latency(data, size) < middle ? low : high) = size;
  }
  return uint64_t(std::sqrt(double(low) * double(high)));
}

} // namespace

void measureMemory(Machine &m, Care care) {
  // A level is measured well inside it: the first at half its size, the others between it and the one before.
  const uint64_t mostBytes = care == Care::Quick ? 1 << 24 : 1 << 29;
  std::vector<std::pair<std::string, uint64_t>> levels;
  uint64_t largest = 1 << 20, previous = 0;
  for (const Cache &cache : m.caches) {
    double middle = std::sqrt(double(previous) * double(cache.reportedBytes));
    levels.emplace_back(cache.name,
                        std::min(mostBytes, previous ? uint64_t(middle) / kLine * kLine : cache.reportedBytes / 2));
    previous = largest = cache.reportedBytes;
  }
  levels.emplace_back("DRAM", std::min(mostBytes, 4 * largest));

  int most = std::max(m.threads, 1);
  Memories memory;
  for (int i = 0; i < most; ++i)
    memory.push_back(std::make_unique<Memory>(levels.back().second + 4096));
  for (int threads = 1; threads <= most; threads = threads < most ? most : most + 1)
    for (const auto &[level, bytes] : levels)
      m.bandwidths.push_back(bandwidthOf(memory, level, threads, care, bytes));

  char *data = memory[0]->data;
  for (uint64_t bytes = 8 << 10; bytes <= levels.back().second; bytes *= 2)
    m.curve.push_back({bytes, latency(data, bytes), readRate(memory, 1, care, bytes, kLine, 0)});
  std::vector<double> latencies;
  for (const auto &[level, bytes] : levels)
    latencies.push_back(latency(data, bytes));
  for (size_t i = 0; i < m.caches.size(); ++i)
    if (latencies[i + 1] > 1.3 * latencies[i])
      m.caches[i].measuredBytes =
          boundary(data, latencies[i], latencies[i + 1], levels[i].second, levels[i + 1].second);
}

} // namespace burin::machine
