// Measures the overhead of eager calls: of a cached call, of recording for gradients, and of a call that compiles.
#include "tools/bench/programs/Bench.h"
#include <algorithm>
#include <burin/burin.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

namespace burin::bench {
namespace {

using Clock = std::chrono::steady_clock;

double secondsOf(const std::function<void()> &body) {
  auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void print(const char *name, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  auto us = [&](double q) { return seconds[size_t(q * double(seconds.size() - 1))] * 1e6; };
  std::printf("%s: %.2f µs (p10 %.2f, p90 %.2f)\n", name, us(0.5), us(0.1), us(0.9));
}

constexpr int kCalls = 1000;

/// Returns the seconds per call that the calling thread spends in `call`. Calls are asynchronous: the work itself may
/// still be running when the last one returns.
double secondsOfCall(const std::function<Tensor()> &call) {
  static std::vector<Tensor> results(kCalls);
  synchronize();
  return secondsOf([&] {
           for (Tensor &r : results)
             r = call();
         }) /
         kCalls;
}

void sums() {
  Tensor x = randn({32, 32}).wait(), y = randn({32, 32}).wait();
  std::vector<double> times;
  for (int sample = 0; sample < 51; ++sample)
    times.push_back(secondsOfCall([&] { return x + y; }));
  print("eager x + y of 32×32, on the caller's thread", times);
}

/// Prints the ratio of the time of a recorded call (one operand requires a gradient) to that of a plain call. Both are
/// measured alternately. As in a training loop, the recorded operations of the previous sample are freed meanwhile.
void recording(const char *what, const std::function<Tensor(const Tensor &, const Tensor &)> &op) {
  Tensor x = randn({32, 32}).wait(), y = randn({32, 32}).wait(), leaf = randn({32, 32}).wait();
  leaf.requires_grad_();
  std::vector<double> ratios;
  for (int sample = 0; sample < 101; ++sample) {
    const double plain = secondsOfCall([&] { return op(x, y); }), recorded = secondsOfCall([&] { return op(leaf, y); });
    if (sample) // the first sample compiles
      ratios.push_back(recorded / plain);
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf("a recorded eager %s of 32×32, over the plain call: %.2f times (p10 %.2f, p90 %.2f)\n", what,
              ratios[ratios.size() / 2], ratios[ratios.size() / 10], ratios[ratios.size() * 9 / 10]);
}

/// Every value of an attribute is a new signature, so each of these calls compiles.
void newSignatures() {
  Tensor x = randn({8, 8}).wait();
  std::vector<double> times;
  for (int i = 1; i <= 11; ++i)
    times.push_back(secondsOf([&] { leaky_relu(x, 0.001 * i).wait(); }));
  print("an eager call of a new signature, compiled", times);
}

} // namespace

void measureEager() {
  auto cache = std::filesystem::temp_directory_path() /
               ("burin-bench-" + std::to_string(Clock::now().time_since_epoch().count()));
  setenv("BURIN_CACHE_DIR", cache.c_str(), 1);
  sums();
  recording("x + y", [](const Tensor &x, const Tensor &y) { return x + y; });
  recording("x * y", [](const Tensor &x, const Tensor &y) { return x * y; });
  recording("tanh(x)", [](const Tensor &x, const Tensor &) { return tanh(x); });
  newSignatures();
  std::filesystem::remove_all(cache);
}

} // namespace burin::bench
