#include "tools/machine/Machine.h"
#include "tools/machine/Together.h"
#include <cstring>
#include <immintrin.h>

namespace burin::machine {
namespace {

constexpr int kChains = 12; // exceeds latency times throughput on all x86 processors
constexpr int64_t kRounds = 50'000;
/// Not zero: multiplying zeros takes less power and so runs at a higher clock than real data.
constexpr float kFactor = 0.75f;
thread_local volatile char sink;

// Defines a loop of independent chains of one instruction. The factor is opaque to the compiler, so that nothing is
// folded.
#define BURIN_CHAINS(NAME, ISA, VECTOR, FACTOR, STEP)                                                                  \
  [[gnu::target(ISA)]] void NAME() {                                                                                   \
    VECTOR sums[kChains], factor = (VECTOR)FACTOR;                                                                     \
    asm volatile("" : "+v"(factor));                                                                                   \
    for (VECTOR &sum : sums)                                                                                           \
      sum = factor;                                                                                                    \
    for (int64_t i = 0; i < kRounds; ++i)                                                                              \
      for (VECTOR &sum : sums)                                                                                         \
        sum = STEP;                                                                                                    \
    char bytes[sizeof sums];                                                                                           \
    std::memcpy(bytes, sums, sizeof sums);                                                                             \
    for (char byte : bytes)                                                                                            \
      sink = byte;                                                                                                     \
  }

BURIN_CHAINS(f32x16, "avx512f", __m512, _mm512_set1_ps(kFactor), _mm512_fmadd_ps(sum, factor, factor))
BURIN_CHAINS(f32x8, "avx2,fma", __m256, _mm256_set1_ps(kFactor), _mm256_fmadd_ps(sum, factor, factor))
BURIN_CHAINS(f16x32, "avx512fp16", __m512h, _mm512_set1_ph(kFactor), _mm512_fmadd_ph(sum, factor, factor))
BURIN_CHAINS(bf16x32, "avx512bf16,avx512bw", __m512, _mm512_set1_epi16(0x3f40),
             _mm512_dpbf16_ps(sum, (__m512bh)factor, (__m512bh)factor))
BURIN_CHAINS(int8x64, "avx512vnni,avx512bw", __m512i, _mm512_set1_epi8(77), _mm512_dpbusd_epi32(sum, factor, factor))
BURIN_CHAINS(int8x32, "avxvnni", __m256i, _mm256_set1_epi8(77), _mm256_dpbusd_avx_epi32(sum, factor, factor))
#undef BURIN_CHAINS

struct Kind {
  const char *type;
  bool isThere;
  void (*loop)();
  int products; // multiplications per instruction
};

std::vector<Kind> kinds() {
  return {{"f32", bool(__builtin_cpu_supports("avx512f")), f32x16, 16},
          {"f32", bool(__builtin_cpu_supports("fma")), f32x8, 8},
          {"f16", bool(__builtin_cpu_supports("avx512fp16")), f16x32, 32},
          {"bf16 dot", bool(__builtin_cpu_supports("avx512bf16")), bf16x32, 32},
          {"int8 dot", bool(__builtin_cpu_supports("avx512vnni")), int8x64, 64},
          {"int8 dot", bool(__builtin_cpu_supports("avxvnni")), int8x32, 32}};
}

} // namespace

double peak(const std::string &type, int threads, Care care) {
  int tries = care == Care::Quick ? 2 : 25;
  for (const Kind &kind : kinds())
    if (kind.isThere && type == kind.type) {
      double seconds = bestSeconds(threads, tries, [&](int) { kind.loop(); });
      return 2.0 * kind.products * kChains * kRounds * threads / seconds / 1e9;
    }
  return 0;
}

} // namespace burin::machine
