#include "runtime/support/Checksum.h"
#include <algorithm>
#include <array>
#include <cstring>
#include <pthread.h>
#include <thread>

namespace burin::rt {
namespace {

constexpr size_t kLarge = size_t(16) << 20;  // from this many bytes on two threads are faster than one
constexpr uint32_t kPolynomial = 0x82f63b78; // Castagnoli, reflected

// tables[k][b]: the CRC of byte b followed by k zero bytes.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

Tables makeTables() {
  Tables t;
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int i = 0; i < 8; ++i)
      crc = (crc >> 1) ^ (crc & 1 ? kPolynomial : 0);
    t[0][b] = crc;
  }
  for (int k = 1; k < 8; ++k)
    for (uint32_t b = 0; b < 256; ++b)
      t[k][b] = (t[k - 1][b] >> 8) ^ t[0][t[k - 1][b] & 255];
  return t;
}
/// Computed in about 10 us rather than stored in 8 KB of the library.
const Tables &tables() {
  static const Tables made = makeTables();
  return made;
}

uint64_t load64(const std::byte *p) {
  uint64_t x;
  std::memcpy(&x, p, 8);
  return x;
}

// The steps below work on the inverted CRC.
uint32_t step8(const Tables &t, uint32_t crc, uint64_t x) {
  x ^= crc;
  uint32_t out = 0;
  for (int k = 0; k < 8; ++k)
    out ^= t[7 - k][(x >> (8 * k)) & 255];
  return out;
}
uint32_t step1(const Tables &t, uint32_t crc, std::byte b) { return (crc >> 8) ^ t[0][(crc ^ uint32_t(b)) & 255]; }

uint32_t tail(uint32_t crc, std::span<const std::byte> data) {
  const Tables &t = tables();
  for (std::byte b : data)
    crc = step1(t, crc, b);
  return crc;
}

/// Lanes are consecutive parts of the data; several at once hide the latency of a step.
template <int Lanes> void portable(const std::byte *p, size_t part, uint32_t *crc) {
  const Tables &t = tables();
  for (size_t i = 0; i < part; i += 8)
    for (int lane = 0; lane < Lanes; ++lane)
      crc[lane] = step8(t, crc[lane], load64(p + lane * part + i));
}

#if defined(__x86_64__)
template <int Lanes> __attribute__((target("sse4.2"))) void hardware(const std::byte *p, size_t part, uint32_t *crc) {
  uint64_t x[Lanes];
  std::copy_n(crc, Lanes, x);
  for (size_t i = 0; i < part; i += 8)
    for (int lane = 0; lane < Lanes; ++lane)
      x[lane] = __builtin_ia32_crc32di(x[lane], load64(p + lane * part + i));
  for (int lane = 0; lane < Lanes; ++lane)
    crc[lane] = uint32_t(x[lane]);
}
bool hasHardware() { return __builtin_cpu_supports("sse4.2"); }
#else
template <int Lanes> void hardware(const std::byte *p, size_t part, uint32_t *crc) { portable<Lanes>(p, part, crc); }
bool hasHardware() { return false; }
#endif

/// Lanes of all data, and of one half.
constexpr int kLanes = 8, kHalf = kLanes / 2;

struct Half {
  const std::byte *from;
  size_t part;
  uint32_t *crc;
  void run() const { (hasHardware() ? hardware<kHalf> : portable<kHalf>)(from, part, crc); }
};

/// Computes large data on two threads, since one is bound by memory latency. Returns false if there is no second
/// thread.
bool byTwoThreads(const Half halves[2]) {
  pthread_t second;
  auto run = [](void *half) -> void * {
    static_cast<const Half *>(half)->run();
    return nullptr;
  };
  if (std::thread::hardware_concurrency() < 2 ||
      ::pthread_create(&second, nullptr, run, const_cast<Half *>(&halves[1])) != 0)
    return false;
  halves[0].run();
  ::pthread_join(second, nullptr);
  return true;
}

} // namespace

uint32_t crc32c(std::span<const std::byte> data, uint32_t crc) {
  const Tables &t = tables();
  crc = ~crc;
  size_t whole = data.size() & ~size_t(7);
  for (size_t i = 0; i < whole; i += 8)
    crc = step8(t, crc, load64(data.data() + i));
  return ~tail(crc, data.subspan(whole));
}

uint32_t checksum(std::span<const std::byte> data) {
  uint32_t crc[kLanes];
  std::fill(crc, crc + kLanes, ~0u);
  size_t part = data.size() / kLanes & ~size_t(7);
  const Half halves[2] = {{data.data(), part, crc}, {data.data() + kHalf * part, part, crc + kHalf}};
  if (data.size() < kLarge || !byTwoThreads(halves))
    (hasHardware() ? hardware<kLanes> : portable<kLanes>)(data.data(), part, crc);
  crc[kLanes - 1] = tail(crc[kLanes - 1], data.subspan(kLanes * part));
  for (uint32_t &x : crc)
    x = ~x;
  return crc32c(std::as_bytes(std::span(crc)));
}

} // namespace burin::rt
