// Element values of tensors as numbers: random inputs, summaries, comparison.
#pragma once
#include "runtime/npy/Npy.h"
#include <cstdint>
#include <span>
#include <string>

namespace burin::run {

/// A view of a dense tensor.
struct Values {
  DType dtype;
  std::span<const int64_t> shape;
  const std::byte *data;

  int64_t count() const;
  double operator[](int64_t i) const;
};

/// A tensor filled with one number.
rt::NpyArray filled(DType dtype, std::vector<int64_t> shape, double value);

/// Reproducible from the seed: normal(0, 1) for floats, uniform in [0, 10) for integers, 0 or 1 for bool.
rt::NpyArray random(DType dtype, std::vector<int64_t> shape, uint64_t seed);

/// The input `i` of a model for which no value is given.
inline rt::NpyArray randomInput(DType dtype, std::vector<int64_t> shape, uint64_t seed, size_t i) {
  return random(dtype, std::move(shape), seed * 0x9e3779b97f4a7c15 + i);
}

/// "f32[7, 2]"
std::string typeText(DType dtype, std::span<const int64_t> shape);

struct Summary {
  double min = 0, mean = 0, max = 0;
  int64_t notFinite = 0; // excluded from the three statistics above
};
Summary summarize(const Values &values);

/// The element with the largest |a - b| - rtol |b|. Equal infinities count as equal, and so do two NaNs.
struct Difference {
  int64_t index = -1; // -1: all elements are within the tolerance
  double got = 0, expected = 0, worstAbsolute = 0;
  double worstRelative = 0; // only over elements of at least `atol`, as relative errors near zero mean little
};
Difference compare(const Values &got, const Values &expected, double rtol, double atol);

} // namespace burin::run
