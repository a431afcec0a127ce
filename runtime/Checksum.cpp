#include "runtime/Checksum.h"
#include <array>
#include <cstring>

namespace burin::rt {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78; // Castagnoli, reflected

// tables[k][b]: the CRC of byte b followed by k zero bytes.
constexpr auto makeTables() {
  std::array<std::array<uint32_t, 256>, 8> t{};
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
constexpr auto tables = makeTables();

uint64_t load64(const std::byte *p) {
  uint64_t x;
  std::memcpy(&x, p, 8);
  return x;
}

// The steps below work on the inverted CRC.
struct Portable {
  static uint32_t step8(uint32_t crc, uint64_t x) {
    x ^= crc;
    uint32_t out = 0;
    for (int k = 0; k < 8; ++k)
      out ^= tables[7 - k][(x >> (8 * k)) & 255];
    return out;
  }
};
uint32_t step1(uint32_t crc, std::byte b) { return (crc >> 8) ^ tables[0][(crc ^ uint32_t(b)) & 255]; }

uint32_t tail(uint32_t crc, std::span<const std::byte> data) {
  for (std::byte b : data)
    crc = step1(crc, b);
  return crc;
}

void fourPortable(const std::byte *p, size_t part, uint32_t crc[4]) {
  for (size_t i = 0; i < part; i += 8)
    for (int lane = 0; lane < 4; ++lane)
      crc[lane] = Portable::step8(crc[lane], load64(p + lane * part + i));
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) void fourHardware(const std::byte *p, size_t part, uint32_t crc[4]) {
  uint64_t a = crc[0], b = crc[1], c = crc[2], d = crc[3];
  for (size_t i = 0; i < part; i += 8) {
    a = __builtin_ia32_crc32di(a, load64(p + i));
    b = __builtin_ia32_crc32di(b, load64(p + part + i));
    c = __builtin_ia32_crc32di(c, load64(p + 2 * part + i));
    d = __builtin_ia32_crc32di(d, load64(p + 3 * part + i));
  }
  crc[0] = uint32_t(a), crc[1] = uint32_t(b), crc[2] = uint32_t(c), crc[3] = uint32_t(d);
}
bool hasHardware() { return __builtin_cpu_supports("sse4.2"); }
#else
void fourHardware(const std::byte *p, size_t part, uint32_t crc[4]) { fourPortable(p, part, crc); }
bool hasHardware() { return false; }
#endif

} // namespace

uint32_t crc32c(std::span<const std::byte> data, uint32_t crc) {
  crc = ~crc;
  size_t whole = data.size() & ~size_t(7);
  for (size_t i = 0; i < whole; i += 8)
    crc = Portable::step8(crc, load64(data.data() + i));
  return ~tail(crc, data.subspan(whole));
}

uint32_t checksum(std::span<const std::byte> data) {
  uint32_t crc[4] = {~0u, ~0u, ~0u, ~0u};
  size_t part = data.size() / 4 & ~size_t(7);
  (hasHardware() ? fourHardware : fourPortable)(data.data(), part, crc);
  crc[3] = tail(crc[3], data.subspan(4 * part));
  for (uint32_t &x : crc)
    x = ~x;
  return crc32c(std::as_bytes(std::span(crc)));
}

} // namespace burin::rt
