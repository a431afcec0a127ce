// Resizing of a dimension with symbolic size: a run computes positions and weights.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

struct ResizeRule {
  std::string mode, transform, rounding; // as in ONNX
  double cubic;
};

/// floor(size * scale), if the scale is a fraction of small numbers.
std::optional<Dim> scaledSize(const Dim &size, double scale);
/// Resizes the axis to `to` elements; `scale` (f64, one number) is the assumed ratio to the elements of x.
Tensor resizeSymbolic(const Tensor &x, int64_t axis, const Dim &to, const Tensor &scale, const ResizeRule &rule);

} // namespace burin::onnx
