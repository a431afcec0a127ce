// Resizing a dimension whose size is a symbol: positions and weights are computed when the model runs.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

struct ResizeRule {
  std::string mode, transform, rounding; // as in ONNX
  double cubic;
};

/// floor(size * scale), if the scale is a fraction of small numbers.
std::optional<Dim> scaledSize(const Dim &size, double scale);
/// x with `to` elements along the axis; `scale` (f64, one number) is what they are taken to be times the elements of x.
Tensor resizeSymbolic(const Tensor &x, int64_t axis, const Dim &to, const Tensor &scale, const ResizeRule &rule);

} // namespace burin::onnx
