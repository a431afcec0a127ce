// What eager calls cost the caller, and what a call costs that has to be compiled.
#include "tools/bench/Bench.h"
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

/// What the caller pays: the calls return before the work is done.
void sums() {
  Tensor x = randn({32, 32}).wait(), y = randn({32, 32}).wait();
  constexpr int kCalls = 1000;
  std::vector<Tensor> results(kCalls);
  std::vector<double> times;
  for (int sample = 0; sample < 51; ++sample) {
    synchronize();
    times.push_back(secondsOf([&] {
                      for (Tensor &r : results)
                        r = x + y;
                    }) /
                    kCalls);
  }
  print("eager x + y of 32×32, on the caller's thread", times);
}

/// Attributes are part of the signature: each call compiles.
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
  newSignatures();
  std::filesystem::remove_all(cache);
}

} // namespace burin::bench
