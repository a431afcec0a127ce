// Random tensors drawn from the process's sequence of seeds. The formulas are those of the random ops.
#include "burin/creation.h"
#include "burin/ops.h"
#include "frontend/tensor/Creation.h"
#include "frontend/tensor/LocationScope.h"
#include "frontend/trace/Trace.h"
#include "ir/reference/ReferenceTensor.h"
#include "ir/reference/ops/ReferenceRandom.h"
#include <cmath>
#include <numbers>

namespace burin {

using namespace detail;

static std::mutex seedMutex;
static uint64_t seed = 0, drawn = 0;

void manual_seed(uint64_t value) {
  std::lock_guard lock(seedMutex);
  seed = value;
  drawn = 0;
}

int64_t next_seed(Location where) {
  if (Trace::active())
    throw Error(
        inScope(where), "random",
        "this draws new numbers on each call, but a traced graph would repeat them.\n"
        "Draw outside of the traced function and pass the numbers in, or fix them with random_uniform(shape, seed)");
  std::lock_guard lock(seedMutex);
  auto words = ir::ref::philox(seed, drawn++);
  return int64_t(uint64_t(words[0]) | uint64_t(words[1]) << 32);
}

static double unit(DType dtype, uint64_t seed, uint64_t i) {
  return dtype == DType::f64 ? ir::ref::unit64(seed, i) : ir::ref::unit32(seed, i);
}

/// Elements that each depend on the seed and their own position only.
template <class Element>
static Tensor draw(const Shape &shape, DType dtype, const char *op, const Location &where, Element element) {
  const Location place = inScope(where);
  requireSizes(shape, op, place);
  if (!isFloat(dtype))
    throw Error(place, op,
                "random numbers are f32, f64, f16 or bf16, not " + std::string(name(dtype)) + "; use randint");
  auto fill = [=, from = uint64_t(next_seed(place))](void *data, int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) {
      double value = element(from, uint64_t(i));
      convertElements(&value, DType::f64, static_cast<char *>(data) + i * byteWidth(dtype), dtype, 1);
    }
  };
  return fillLater({dtype, shape}, fill, place);
}

Tensor uniform(const Shape &shape, double low, double high, DType dtype, Location where) {
  return draw(shape, dtype, "uniform", where, [=](uint64_t from, uint64_t i) {
    double value = low + (high - low) * unit(dtype, from, i);
    // Rounding to the type may reach `high`, which does not belong to the interval.
    return low < high && ir::roundTo(dtype, value) >= high ? low : value;
  });
}
Tensor rand(const Shape &shape, DType dtype, Location where) { return uniform(shape, 0, 1, dtype, where); }

Tensor normal(const Shape &shape, double mean, double deviation, DType dtype, Location where) {
  return draw(shape, dtype, "normal", where, [=](uint64_t from, uint64_t i) {
    uint64_t pair = i & ~uint64_t(1);
    double least = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
    double radius = std::sqrt(-2 * std::log(unit(dtype, from, pair) + least));
    double angle = 2 * std::numbers::pi * unit(dtype, from, pair + 1);
    return mean + deviation * radius * (i == pair ? std::cos(angle) : std::sin(angle));
  });
}
Tensor randn(const Shape &shape, DType dtype, Location where) { return normal(shape, 0, 1, dtype, where); }

Tensor randint(int64_t low, int64_t high, const Shape &shape, DType dtype, Location where) {
  const Location place = inScope(where);
  requireSizes(shape, "randint", place);
  if (low >= high)
    throw Error(place, "randint", "there is no integer in [" + std::to_string(low) + ", " + std::to_string(high) + ")");
  uint64_t range = uint64_t(high) - uint64_t(low);
  auto fill = [=, from = uint64_t(next_seed(place))](void *data, int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) {
      auto words = ir::ref::philox(from, uint64_t(i));
      uint64_t word = words[0] | uint64_t(words[1]) << 32;
      int64_t value = int64_t(uint64_t(low) + uint64_t((__uint128_t(word) * range) >> 64)); // no bias worth the name
      convertElements(&value, DType::i64, static_cast<char *>(data) + i * byteWidth(dtype), dtype, 1);
    }
  };
  return fillLater({dtype, shape}, fill, place);
}

Tensor randperm(int64_t n, Location where) {
  const Location place = inScope(where);
  requireSizes({n}, "randperm", place);
  uint64_t from = uint64_t(next_seed(place));
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    order[i] = i;
  for (int64_t i = n - 1; i > 0; --i) { // Fisher and Yates
    auto words = ir::ref::philox(from, uint64_t(i));
    uint64_t word = words[0] | uint64_t(words[1]) << 32;
    std::swap(order[i], order[int64_t((__uint128_t(word) * uint64_t(i + 1)) >> 64)]);
  }
  return copyOf(order.data(), {DType::i64, {n}}, place);
}

} // namespace burin
