#include "frontend/onnx/import/neural/DeformConv.h"
#include "frontend/onnx/import/neural/Window.h"

namespace burin::onnx {

namespace {

/// The sampling positions along one dimension, [n, groups, taps, rows, columns].
struct Place {
  Tensor low, fraction, last; // floor of the position, its fractional part, and the largest index of the image
};

void requireShape(Node &n, const Shape &shape, const Shape &expected) {
  if (shape.size() != expected.size())
    n.fail("an input has the shape " + str(shape) + " instead of " + str(expected));
  for (size_t i = 0; i < shape.size(); ++i)
    requireEqual(shape[i], expected[i]);
}

/// Returns the sampling positions along `axis`. Without its offset, a tap is at window * stride - padding + tap *
/// dilation.
Place placeOf(const Window &window, size_t axis, const Dim &size, const Shape &positions, const Tensor &offset) {
  DType dtype = offset.dtype();
  std::vector<double> starts;
  for (int64_t row = 0; row < window.kernel[0]; ++row)
    for (int64_t column = 0; column < window.kernel[1]; ++column)
      starts.push_back(double((axis ? column : row) * window.dilations[axis] - window.padding[axis]));
  Tensor start = from_vector(starts, Shape{1, 1, int64_t(starts.size()), 1, 1}).to(dtype);
  Tensor at = iota(positions, dtype, int64_t(3 + axis)) * double(window.strides[axis]) + start + offset;
  Tensor low = floor(at);
  return {low, at - low, sizeTensor(size).to(dtype) - 1.0};
}

/// Returns the index of the lower or (`isBeyond`) upper neighbour of each position, and its weight in the
/// interpolation, which is 0 outside of the image.
std::pair<Tensor, Tensor> pixelOf(const Place &place, bool isBeyond) {
  Tensor at = isBeyond ? place.low + 1.0 : place.low;
  Tensor part = isBeyond ? place.fraction : 1.0 - place.fraction;
  Tensor isInside = logical_and(at >= 0.0, at <= place.last);
  return {clamp(at, zeros_like(place.last), place.last).to(DType::i64), where(isInside, part, 0.0)};
}

} // namespace

Values deformConv(Node &n) {
  Tensor x = n[0], weight = n[1], offset = n[2];
  Shape image = x.shape(), filter = weight.shape(), places = offset.shape();
  if (image.size() != 4 || filter.size() != 4 || places.size() != 4)
    n.unsupported("images of " + std::to_string(int64_t(image.size()) - 2) + " dimensions");
  Window window = windowOf(n, image, spatialSizes(n, filter));
  int64_t taps = window.kernel[0] * window.kernel[1], groups = n.attribute("group", int64_t(1)),
          offsets = n.attribute("offset_group", int64_t(1));
  Dim batch = image[0], channels = filter[1] * groups, rows = places[2], columns = places[3], count = rows * columns;
  bool fits = groups >= 1 && offsets >= 1 && isMultipleOf(filter[0], groups) && isMultipleOf(channels, offsets);
  if (!fits)
    n.fail("its weight " + str(filter) + " does not fit its groups");
  requireEqual(image[1], channels);
  requireShape(n, places, {batch, 2 * offsets * taps, rows, columns});
  for (size_t axis : {2, 3})
    requireEqual(max(image[axis], 1), image[axis]);

  Shape positions{batch, offsets, taps, rows, columns};
  Tensor pairs = reshape(offset, {batch, offsets, taps, 2, rows, columns});
  Place row = placeOf(window, 0, image[2], positions, squeeze(pairs.slice(3, 0, 1), {3}));
  Place column = placeOf(window, 1, image[3], positions, squeeze(pairs.slice(3, 1, 2), {3}));
  Dim perOffset = floordiv(channels, offsets), reads = count * taps;
  Tensor flat = reshape(x, {batch, offsets, perOffset, image[2] * image[3]}), sum;
  for (bool isBelow : {false, true})
    for (bool isRight : {false, true}) {
      auto [i, rowPart] = pixelOf(row, isBelow);
      auto [j, columnPart] = pixelOf(column, isRight);
      Tensor index = reshape(i * sizeTensor(image[3]) + j, {batch, offsets, 1, reads});
      Tensor part = reshape(rowPart * columnPart, {batch, offsets, 1, reads});
      Tensor read = gather(flat, broadcast_to(index, {batch, offsets, perOffset, reads}), 3) * part;
      sum = sum.defined() ? sum + read : read;
    }
  if (std::optional<Tensor> mask = n.optional(4)) {
    requireShape(n, mask->shape(), {batch, offsets * taps, rows, columns});
    sum = sum * reshape(*mask, {batch, offsets, 1, reads});
  }

  Dim outputs = floordiv(filter[0], groups);
  Tensor windows = reshape(sum, {batch, groups, filter[1] * taps, count});
  Tensor y = matmul(reshape(weight, {groups, outputs, filter[1] * taps}), windows);
  y = reshape(y, {batch, filter[0], rows, columns});
  std::optional<Tensor> bias = n.optional(3);
  return bias ? y + reshape(*bias, {filter[0], 1, 1}) : y;
}

} // namespace burin::onnx
