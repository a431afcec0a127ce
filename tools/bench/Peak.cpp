#include "tools/bench/Peak.h"
#include <chrono>

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

using Vector16 [[gnu::vector_size(64)]] = float;
using Vector8 [[gnu::vector_size(32)]] = float;

template <class Vector> [[gnu::always_inline]] inline void chains() {
  Vector sums[kChains], factor = Vector{} + 0.999f;
  for (Vector &s : sums)
    s = Vector{} + 1e-3f;
  for (int i = 0; i < kRounds; ++i) {
    for (Vector &s : sums)
      s = __builtin_elementwise_fma(s, factor, factor);
    asm volatile("" ::: "memory");
  }
  Vector all = sums[0];
  for (Vector &s : sums)
    all += s;
  sink = all[0];
}
[[gnu::target("avx512f")]] void chains512() { chains<Vector16>(); }
[[gnu::target("avx2,fma")]] void chains256() { chains<Vector8>(); }

} // namespace

double fmaPeak() {
  if (__builtin_cpu_supports("avx512f"))
    return flopsPerSecond(16, chains512);
  return flopsPerSecond(8, chains256);
}

} // namespace burin::bench
