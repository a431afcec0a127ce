#include "frontend/onnx/import/tensor/sampling/RoiAlign.h"
#include <algorithm>

namespace burin::onnx {

namespace {

/// The bilinear samples of one dimension: [regions, bins * samples] each.
struct Samples {
  Tensor low, high;             // i64
  Tensor lowWeight, highWeight; // 0 for samples outside of the image
};

/// `from` and `to`: bounds of the regions, [regions, 1].
Samples samplesOf(const Tensor &from, const Tensor &to, const Dim &size, int64_t bins, int64_t samples) {
  Tensor i = iota({1, bins * samples}, from.dtype(), 1);
  Tensor at = from + (to - from) * ((i + 0.5) / double(bins * samples));
  Tensor count = sizeTensor(size).to(from.dtype()), last = count - 1.0;
  Tensor isInside = logical_and(at >= -1.0, at <= count);
  at = minimum(maximum(at, 0.0), last);
  Tensor low = floor(at), part = at - low;
  return {low.to(DType::i64), minimum(low + 1.0, last).to(DType::i64), where(isInside, 1.0 - part, 0.0),
          where(isInside, part, 0.0)};
}

} // namespace

Values roiAlign(Node &n) {
  Tensor x = n[0], regions = n[1];
  Shape shape = n.shape();
  std::string mode = n.attribute("mode", "avg");
  int64_t height = n.attribute("output_height", int64_t(1)), width = n.attribute("output_width", int64_t(1));
  int64_t samples = n.attribute("sampling_ratio", int64_t(0));
  if (samples < 1)
    n.unsupported("a sampling_ratio of 0, which takes as many samples as the data says");
  if (height < 1 || width < 1 || height * samples > 4096 || width * samples > 4096)
    n.fail("its output has " + std::to_string(height) + " x " + std::to_string(width) + " bins");
  bool isHalfPixel = n.opset() >= 16 && n.attribute("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  regions = regions * n.attribute("spatial_scale", 1.0) - (isHalfPixel ? 0.5 : 0.0);
  auto corner = [&](int64_t i) { return part(regions, 1, i, i + 1); };
  auto along = [&](int64_t first, const Dim &size, int64_t bins) {
    Tensor from = corner(first), to = corner(first + 2);
    return samplesOf(from, isHalfPixel ? to : maximum(to, from + 1.0), size, bins, samples);
  };
  Samples rows = along(1, shape[2], height), columns = along(0, shape[3], width);

  // The pixels of all images as rows of channels; each sample reads four of them.
  Tensor pixels = reshape(transpose(x, {0, 2, 3, 1}), {shape[0] * shape[2] * shape[3], shape[1]});
  Tensor image = reshape(n[2].to(DType::i64), {n.shape(2)[0], 1, 1}) * sizeTensor(shape[2]);
  auto sampled = [&](const Tensor &row, const Tensor &column, const Tensor &weight, const Tensor &otherWeight) {
    Tensor at = (image + unsqueeze(row, {2})) * sizeTensor(shape[3]) + unsqueeze(column, {1});
    return take(pixels, at, 0) * unsqueeze(unsqueeze(weight, {2}) * unsqueeze(otherWeight, {1}), {3});
  };
  Tensor corners[] = {sampled(rows.low, columns.low, rows.lowWeight, columns.lowWeight),
                      sampled(rows.low, columns.high, rows.lowWeight, columns.highWeight),
                      sampled(rows.high, columns.low, rows.highWeight, columns.lowWeight),
                      sampled(rows.high, columns.high, rows.highWeight, columns.highWeight)};
  Shape split{n.shape(1)[0], height, samples, width, samples, shape[1]};
  if (mode == "max") { // over weighted pixels, not their sums, as in ONNX's reference
    Tensor largest = maximum(maximum(corners[0], corners[1]), maximum(corners[2], corners[3]));
    return transpose(reduce_max(reshape(largest, split), {2, 4}), {0, 3, 1, 2});
  }
  Tensor sum = corners[0] + corners[1] + corners[2] + corners[3];
  return transpose(reduce_mean(reshape(sum, split), {2, 4}), {0, 3, 1, 2});
}

} // namespace burin::onnx
