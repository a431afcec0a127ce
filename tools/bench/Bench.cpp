// The benchmark: what burin takes against what the machine can do, through the public API, on one thread. Each figure
// is measured in turn with the machine's peak (A B A B …), so that both see the same clock; medians are printed.
#include "tools/bench/Bench.h"
#include "tools/bench/Peak.h"
#include <algorithm>
#include <burin/burin.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

using namespace burin;
using Clock = std::chrono::steady_clock;

namespace {

double secondsOf(const std::function<void()> &body) {
  auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Quantiles {
  double p10, median, p90;
};
Quantiles quantiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  auto at = [&](double q) { return values[size_t(q * (values.size() - 1))]; };
  return {at(0.1), at(0.5), at(0.9)};
}

/// Times `body`, `inner` calls a sample, in turn with the FMA peak.
void measure(const char *name, double flops, int samples, int inner, const std::function<void()> &body) {
  for (int i = 0; i < 3; ++i)
    body();
  std::vector<double> times, peaks;
  for (int i = 0; i < samples; ++i) {
    peaks.push_back(bench::fmaPeak());
    times.push_back(secondsOf([&] {
                      for (int j = 0; j < inner; ++j)
                        body();
                    }) /
                    inner);
  }
  Quantiles t = quantiles(times);
  double peak = quantiles(peaks).median;
  std::printf("%-34s %10.2f %10.2f %10.2f", name, t.median * 1e6, t.p10 * 1e6, t.p90 * 1e6);
  if (flops)
    std::printf(" %9.1f %9.1f %7.2f", flops / t.median / 1e9, peak, flops / t.median / 1e9 / peak);
  std::printf("\n");
}

void gemm(int64_t m, int64_t k, int64_t n) {
  Tensor weight = randn({k, n}), x = randn({m, k}).wait();
  weight.wait();
  Artifact product = compile(trace([&](const Tensor &a) { return matmul(a, weight); }, {TensorSpec{f32, {m, k}}}));
  char name[64];
  std::snprintf(name, sizeof name, "matmul %jdx%jdx%jd f32, compiled", intmax_t(m), intmax_t(k), intmax_t(n));
  measure(name, 2.0 * m * k * n, 31, std::max<int>(1, int(2e8 / (2.0 * m * k * n))), [&] { product(x).wait(); });
}

void mlp() {
  auto net = nn::Sequential(nn::Linear(512, 256), nn::ReLU(), nn::Linear(256, 128), nn::ReLU(), nn::Linear(128, 2));
  Artifact artifact = compile(trace(net, {TensorSpec{f32, {Dim("batch"), 512}}}));
  Tensor x = randn({1, 512}).wait();
  double flops = 2.0 * (512 * 256 + 256 * 128 + 128 * 2);
  measure("MLP 512-256-128-2, batch 1", flops, 101, 100, [&] { artifact(x).wait(); });
}

void eager() {
  Tensor x = randn({32, 32}).wait(), y = randn({32, 32}).wait();
  constexpr int kCalls = 1000;
  std::vector<Tensor> results(kCalls);
  // What the caller pays: the calls return before the work is done.
  std::vector<double> times;
  for (int sample = 0; sample < 51; ++sample) {
    synchronize();
    times.push_back(secondsOf([&] {
                      for (Tensor &r : results)
                        r = x + y;
                    }) /
                    kCalls);
  }
  Quantiles t = quantiles(times);
  std::printf("%-34s %10.2f %10.2f %10.2f\n", "eager x + y, caller's thread", t.median * 1e6, t.p10 * 1e6, t.p90 * 1e6);
}

void newSignatures() {
  Tensor x = randn({8, 8}).wait();
  std::vector<double> times;
  auto time = [&](const std::function<Tensor()> &op) { times.push_back(secondsOf([&] { op().wait(); })); };
  // Attributes are part of the signature: each call compiles.
  for (int i = 1; i <= 11; ++i)
    time([&] { return leaky_relu(x, 0.001 * i); });
  Quantiles t = quantiles(times);
  std::printf("%-34s %10.0f %10.0f %10.0f\n", "new elementwise signature, eager", t.median * 1e6, t.p10 * 1e6,
              t.p90 * 1e6);
}

} // namespace

int burin::bench::measureAll() {
  setenv("BURIN_NUM_THREADS", "1", 1);
  auto cache = std::filesystem::temp_directory_path() /
               ("burin-bench-" + std::to_string(Clock::now().time_since_epoch().count()));
  setenv("BURIN_CACHE_DIR", cache.c_str(), 1);
  std::printf("%-34s %10s %10s %10s %9s %9s %7s\n", "one thread", "median µs", "p10", "p90", "GFLOP/s", "FMA peak",
              "ratio");
  for (int64_t n : {256, 512, 1024})
    gemm(n, n, n);
  gemm(511, 513, 255);
  mlp();
  eager();
  newSignatures();
  std::filesystem::remove_all(cache);
  return 0;
}
