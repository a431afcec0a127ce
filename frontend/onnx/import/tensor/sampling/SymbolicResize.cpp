#include "frontend/onnx/import/tensor/sampling/SymbolicResize.h"
#include <cmath>

namespace burin::onnx {

std::optional<Dim> scaledSize(const Dim &size, double scale) {
  constexpr int64_t kMostDivisor = 64;
  for (int64_t divisor = 1; divisor <= kMostDivisor; ++divisor)
    if (double whole = scale * double(divisor); whole == std::floor(whole) && whole > 0 && whole < 0x1p31)
      return floordiv(size * Dim(int64_t(whole)), divisor);
  return std::nullopt;
}

/// The positions in x of the elements of the result.
static Tensor positions(const Dim &from, const Dim &to, const Tensor &scale, const std::string &transform) {
  Tensor i = iota({to}, DType::f64), before = sizeTensor(from).to(DType::f64), after = sizeTensor(to).to(DType::f64);
  if (transform == "asymmetric")
    return i / scale;
  if (transform == "tf_half_pixel_for_nn")
    return (i + 0.5) / scale;
  Tensor width = before * scale;
  if (transform == "align_corners")
    return where(width == 1, zeros_like(i), i * (before - 1) / (width - 1));
  Tensor x = (i + 0.5) / scale - 0.5;
  if (transform == "half_pixel_symmetric")
    return x + before / 2 * (1 - after / width);
  return transform == "pytorch_half_pixel" ? where(after == 1, zeros_like(x), x) : x;
}

static Tensor rounded(const Tensor &x, const std::string &rounding) {
  if (rounding == "floor")
    return floor(x);
  if (rounding == "ceil")
    return ceil(x);
  return rounding == "round_prefer_floor" ? ceil(x - 0.5) : floor(x + 0.5);
}

/// The weights of elements at these distances.
static Tensor weightsAt(const Tensor &distance, const ResizeRule &rule) {
  Tensor d = abs(distance);
  if (rule.mode == "linear")
    return maximum(1 - d, 0.0);
  double a = rule.cubic;
  Tensor near = ((a + 2) * d - (a + 3)) * d * d + 1, far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return where(d < 1, near, where(d < 2, far, zeros_like(d)));
}

Tensor resizeSymbolic(const Tensor &x, int64_t axis, const Dim &to, const Tensor &scale, const ResizeRule &rule) {
  Tensor at = positions(x.shape()[size_t(axis)], to, scale, rule.transform);
  Tensor last = sizeTensor(x.shape()[size_t(axis)]).to(DType::f64) - 1;
  auto taken = [&](const Tensor &place) { return take(x, minimum(maximum(place, 0.0), last).to(DType::i64), axis); };
  if (rule.mode == "nearest")
    return taken(rounded(at, rule.rounding));
  int64_t reach = rule.mode == "linear" ? 1 : 2;
  Shape column(size_t(x.rank()), Dim(1));
  column[size_t(axis)] = to;
  Tensor first = floor(at) - double(reach - 1), sum;
  for (int64_t k = 0; k < 2 * reach; ++k) {
    Tensor place = first + double(k);
    Tensor part = taken(place) * reshape(weightsAt(place - at, rule), column).to(x.dtype());
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

} // namespace burin::onnx
