// Definition of the random ops. Every backend computes these formulas exactly; element i of a result depends only on
// the seed and on i (its row-major position), so any part can be computed anywhere in any order.
//
// Words. Philox 4x32-10 (Salmon et al. 2011; the constants of Random123 and cuRAND) turns a counter of four 32-bit
// words and a key of two into four random words w[0..3]:
//     key     = (k mod 2^32, k / 2^32)               k = seed + the operand `key`, 64 bits, as unsigned
//     counter = (b mod 2^32, b / 2^32, 0, 0)         b is the number of the block, 64 bits
// Types up to 32 bits (f32, f16, bf16) take one word per element:   word(i)  = block i / 4, w[i mod 4].
// f64 takes two:   word64(i) = block i / 2, w[2 (i mod 2)] + 2^32 w[2 (i mod 2) + 1].
//
// Unit numbers, uniform in [0, 1), all exact:
//     unit(i) = (word(i) >> 8) * 2^-24       f32, f16, bf16
//     unit(i) = (word64(i) >> 11) * 2^-53    f64
//
// random_uniform   low + (high - low) * unit(i), computed in f32 (f64 for f64) and rounded to the type. Where rounding
//                  gives `high` or more, the largest value of the type below `high` takes its place, if low < high.
// random_normal    Box-Muller on the pair (i, i + 1), i even:
//                      r = sqrt(-2 ln(unit(i) + 2^-24)),  t = 2 pi unit(i + 1)     (f64: + 2^-53)
//                      element i = mean + stddev * r * cos(t),  element i + 1 = mean + stddev * r * sin(t)
//                  unit + 2^-24 lies in (0, 1], so r is finite. A last element without a partner is computed as if it
//                  had one. Both unit numbers come from one block: 4j, 4j+1 and 4j+2, 4j+3 (f64: 2j, 2j+1).
// random_integers  low + floor(word64(i) * (high - low) / 2^64), in 128 bits
// random_key       w[0] + 2^32 w[1] of the block and key that the two numbers of the generator are: (key, block)
// bernoulli        1 if unit(i) < probability, else 0; a NaN gives 0. Probabilities outside [0, 1] act as limited to
// it.
#pragma once
#include <array>
#include <cstdint>

namespace burin::ir::ref {

/// The four words of a block.
inline std::array<uint32_t, 4> philox(uint64_t seed, uint64_t block) {
  std::array<uint32_t, 4> x{uint32_t(block), uint32_t(block >> 32), 0, 0};
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53) * x[0], p1 = uint64_t(0xCD9E8D57) * x[2];
    x = {uint32_t(p1 >> 32) ^ x[1] ^ k0, uint32_t(p1), uint32_t(p0 >> 32) ^ x[3] ^ k1, uint32_t(p0)};
    k0 += 0x9E3779B9; // the golden ratio and sqrt(3) - 1
    k1 += 0xBB67AE85;
  }
  return x;
}

inline double unit32(uint64_t seed, uint64_t i) { return double(philox(seed, i / 4)[i % 4] >> 8) * 0x1p-24; }
inline uint64_t word64(uint64_t seed, uint64_t i) {
  auto words = philox(seed, i / 2);
  return words[2 * (i % 2)] | uint64_t(words[2 * (i % 2) + 1]) << 32;
}
inline double unit64(uint64_t seed, uint64_t i) { return double(word64(seed, i) >> 11) * 0x1p-53; }
/// The key of a generator's draw.
inline uint64_t drawKey(uint64_t seed, uint64_t draws) {
  auto words = philox(seed, draws);
  return words[0] | uint64_t(words[1]) << 32;
}

} // namespace burin::ir::ref
