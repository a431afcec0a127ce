#include "ir/reference/ops/ReferenceRandom.h"
#include "ir/reference/ReferenceUtil.h"
#include <algorithm>
#include <cmath>
#include <numbers>

namespace burin::ir::ref {

namespace {

double unit(DType dtype, uint64_t seed, uint64_t i) { return dtype == DType::f64 ? unit64(seed, i) : unit32(seed, i); }
/// The key: the seed, plus operand `index` if present.
uint64_t keyOf(const RefCall &call, size_t index = 0) {
  return uint64_t(call.attr<int64_t>("seed")) + (call.has(index) ? uint64_t(call.in(index).ints()[0]) : 0);
}

/// The largest value of the type below x; x is a value of the type.
double valueBelow(DType dtype, double x) {
  if (dtype == DType::f64)
    return std::nextafter(x, -HUGE_VAL);
  // The first step that survives rounding is more than half and at most the whole distance to the neighbour.
  for (double step = std::max(std::fabs(x) * 0x1p-26, 0x1p-151);; step *= 2)
    if (double below = roundTo(dtype, x - step); below < x || !std::isfinite(x))
      return below;
}

bool uniform(RefCall &call) {
  std::vector<double> &to = call.out().reals();
  DType dtype = call.out().dtype;
  double low = call.attr<double>("low"), high = call.attr<double>("high");
  uint64_t key = keyOf(call);
  for (size_t i = 0; i < to.size(); ++i) {
    double x = low + (high - low) * unit(dtype, key, i);
    to[i] = low < high && roundTo(dtype, x) >= high ? valueBelow(dtype, roundTo(dtype, high)) : x;
  }
  return true;
}

bool normal(RefCall &call) {
  std::vector<double> &to = call.out().reals();
  DType dtype = call.out().dtype;
  double mean = call.attr<double>("mean"), stddev = call.attr<double>("stddev");
  double step = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  uint64_t key = keyOf(call);
  for (size_t i = 0; i < to.size(); ++i) {
    uint64_t pair = i & ~uint64_t(1);
    double r = std::sqrt(-2 * std::log(unit(dtype, key, pair) + step));
    double t = 2 * std::numbers::pi * unit(dtype, key, pair + 1);
    to[i] = mean + stddev * r * (i == pair ? std::cos(t) : std::sin(t));
  }
  return true;
}

bool bernoulli(RefCall &call) {
  std::vector<double> &to = call.out().reals();
  const std::vector<double> &probability = call.in().reals();
  uint64_t key = keyOf(call, 1);
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = unit(call.out().dtype, key, i) < probability[i];
  return true;
}

bool integers(RefCall &call) {
  std::vector<int64_t> &to = call.out().ints();
  uint64_t key = keyOf(call), low = uint64_t(call.attr<int64_t>("low"));
  uint64_t range = uint64_t(call.attr<int64_t>("high")) - low;
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = int64_t(low + uint64_t((__uint128_t(word64(key, i)) * range) >> 64));
  return true;
}

bool generatorKey(RefCall &call) {
  const std::vector<int64_t> &generator = call.in().ints();
  call.out().ints()[0] = int64_t(drawKey(uint64_t(generator[0]), uint64_t(generator[1])));
  return true;
}

constexpr RefKernelEntry kRandomKernels[] = {{"random_uniform", uniform},
                                             {"random_normal", normal},
                                             {"random_integers", integers},
                                             {"random_key", generatorKey},
                                             {"bernoulli", bernoulli}};

} // namespace

std::span<const RefKernelEntry> randomKernels() { return kRandomKernels; }

} // namespace burin::ir::ref
