#include "frontend/onnx/import/tensor/shape/SymbolicMoves.h"
#include <algorithm>

namespace burin::onnx {

Tensor tileSymbolic(const Tensor &x, const Shape &repeats) {
  Tensor y = x;
  for (int64_t axis = 0; axis < int64_t(repeats.size()); ++axis) {
    const Dim &count = repeats[size_t(axis)];
    if (count == Dim(1))
      continue;
    requireEqual(max(count, 0), count);
    Shape wide = y.shape(), joined = wide;
    wide.insert(wide.begin() + axis, count);
    joined[size_t(axis)] = joined[size_t(axis)] * count;
    y = reshape(broadcast_to(unsqueeze(y, {axis}), wide), joined);
  }
  return y;
}

/// The source positions, in [0, size), of the elements of the padded dimension.
static Tensor sourceOf(Node &n, const Dim &size, const Dim &low, const Dim &total, const std::string &mode) {
  Tensor i = iota({total}, DType::i64) - sizeTensor(low), last = sizeTensor(size) - 1;
  if (mode == "edge")
    return clamp(i, zeros({}, DType::i64), last);
  if (mode == "wrap")
    return remainder(i, sizeTensor(size));
  if (mode != "reflect")
    n.fail("the mode \"" + mode + "\" must be constant, edge, reflect or wrap");
  Tensor period = maximum(last * 2, 1), place = remainder(i, period);
  return minimum(place, period - place);
}

Tensor padSymbolic(Node &n, const Tensor &x, int64_t axis, const Dim &low, const Dim &high, const std::string &mode,
                   double value) {
  Dim size = x.shape()[size_t(axis)], total = size + low + high;
  if (low == Dim(0) && high == Dim(0))
    return x;
  requireEqual(max(total, 0), total);
  if (mode != "constant")
    return take(x, sourceOf(n, size, low, total, mode), axis);
  Tensor i = iota({total}, DType::i64) - sizeTensor(low), at = clamp(i, zeros({}, DType::i64), sizeTensor(size) - 1);
  Shape column(size_t(x.rank()), Dim(1));
  column[size_t(axis)] = total;
  Tensor isInside = reshape(logical_and(i >= 0, i < sizeTensor(size)), column);
  return where(isInside, take(x, at, axis), full({}, value, x.dtype()));
}

} // namespace burin::onnx
