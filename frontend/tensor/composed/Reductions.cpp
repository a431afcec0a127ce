#include "burin/tensor/reductions.h"
#include "frontend/tensor/composed/Composed.h"
#include "frontend/tensor/functions/Creation.h"
#include <cmath>

namespace burin {

using namespace detail;

/// All elements as a vector.
static Tensor flattened(const Tensor &x) { return reshape(x, {elements(x.shape())}); }

Tensor argmax(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  return argmax(flattened(x), 0);
}
Tensor argmin(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  return argmin(flattened(x), 0);
}

Tensor stddev(const Tensor &x, Axes axes, bool keepdims, int64_t correction, Location where) {
  return sqrt(var(x, std::move(axes), keepdims, correction, where), where);
}

Tensor norm(const Tensor &given, double p, Axes axes, bool keepdims, Location where) {
  LocationScope scope(inScope(where));
  const Tensor x = asFloat(given);
  if (std::isnan(p))
    throw Error(inScope(where), "norm", "the order of a norm is a number, not NaN");
  if (p == 2)
    return sqrt(sum(x * x, axes, keepdims));
  if (p == 0)
    return sum((x != 0).to(x.dtype()), axes, keepdims);
  const Tensor sizes = abs(x);
  if (std::isinf(p))
    return p > 0 ? max(sizes, axes, keepdims) : min(sizes, axes, keepdims);
  return p == 1 ? sum(sizes, axes, keepdims) : pow(sum(pow(sizes, p), axes, keepdims), 1 / p);
}

Tensor normalize(const Tensor &x, double p, int64_t axis, double eps, Location where) {
  LocationScope scope(inScope(where));
  return x / maximum(norm(x, p, axis, true), eps);
}

Tensor cosine_similarity(const Tensor &x, const Tensor &y, int64_t axis, double eps, Location where) {
  LocationScope scope(inScope(where));
  return sum(x / maximum(norm(x, 2, axis, true), eps) * (y / maximum(norm(y, 2, axis, true), eps)), axis);
}

Tensor count_nonzero(const Tensor &x, Axes axes, Location where) {
  LocationScope scope(inScope(where));
  return sum((x != 0).to(DType::i64), std::move(axes));
}

Tensor nansum(const Tensor &x, Axes axes, bool keepdims, Location where) {
  LocationScope scope(inScope(where));
  return sum(burin::where(is_nan(x), 0, x), std::move(axes), keepdims);
}
Tensor nanmean(const Tensor &x, Axes axes, bool keepdims, Location where) {
  LocationScope scope(inScope(where));
  Tensor counted = sum((!is_nan(x)).to(x.dtype()), axes, keepdims);
  return nansum(x, std::move(axes), keepdims) / counted;
}

Tensor median(const Tensor &x, int64_t axis, bool keepdims, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "median");
  const Dim size = x.shape()[size_t(axis)];
  if (size == Dim(0))
    throw Error(inScope(where), "median", str(x.spec()) + " has no elements along axis " + std::to_string(axis));
  Tensor middle = reshape(sizeTensor(floordiv(size - 1, 2)), {1});
  Tensor result = take(sort(x, axis).values, middle, axis);
  if (isFloat(x.dtype()))
    result = burin::where(any(is_nan(x), axis, true), std::numeric_limits<double>::quiet_NaN(), result);
  return keepdims ? result : squeeze(result, axis);
}

Tensor median(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  return median(flattened(x), 0);
}

Tensor diff(const Tensor &x, int64_t n, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "diff");
  if (n < 0)
    throw Error(inScope(where), "diff", "n = " + std::to_string(n) + " must not be negative");
  Tensor result = x;
  for (int64_t i = 0; i < n; ++i) {
    const Dim size = result.shape()[size_t(axis)];
    if (size.isStatic()) {
      result = result.slice(axis, 1) - result.slice(axis, 0, -1);
    } else { // sizes of the slices would be equal, but not as expressions
      Tensor at = arange(size - 1);
      result = take(result, at + 1, axis) - take(result, at, axis);
    }
  }
  return result;
}

} // namespace burin
