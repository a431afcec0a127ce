#include "tools/bench/Peak.h"
#include <chrono>
#include <immintrin.h>

namespace burin::bench {
namespace {

constexpr int kChains = 12; // more than latency times throughput on any x86
constexpr int kRounds = 100'000;

template <class Body> double flopsPerSecond(int lanes, Body body) {
  auto start = std::chrono::steady_clock::now();
  body();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return 2.0 * lanes * kChains * kRounds / seconds / 1e9;
}

volatile float sink;

[[gnu::target("avx512f")]] void chains512() {
  __m512 sums[kChains], factor = _mm512_set1_ps(0.999f);
  for (auto &s : sums)
    s = _mm512_set1_ps(1e-3f);
  for (int i = 0; i < kRounds; ++i) {
    for (auto &s : sums)
      s = _mm512_fmadd_ps(s, factor, factor);
    asm volatile("" ::: "memory");
  }
  __m512 all = sums[0];
  for (auto &s : sums)
    all = _mm512_add_ps(all, s);
  sink = _mm512_cvtss_f32(all);
}

[[gnu::target("avx2,fma")]] void chains256() {
  __m256 sums[kChains], factor = _mm256_set1_ps(0.999f);
  for (auto &s : sums)
    s = _mm256_set1_ps(1e-3f);
  for (int i = 0; i < kRounds; ++i) {
    for (auto &s : sums)
      s = _mm256_fmadd_ps(s, factor, factor);
    asm volatile("" ::: "memory");
  }
  __m256 all = sums[0];
  for (auto &s : sums)
    all = _mm256_add_ps(all, s);
  sink = _mm256_cvtss_f32(all);
}

} // namespace

double fmaPeak() {
  if (__builtin_cpu_supports("avx512f"))
    return flopsPerSecond(16, chains512);
  return flopsPerSecond(8, chains256);
}

} // namespace burin::bench
