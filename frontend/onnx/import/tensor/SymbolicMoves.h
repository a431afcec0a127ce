// Repeating and padding by amounts that are sizes, which the ops of the same names take as numbers.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

/// torch.tile; one amount for each dimension.
Tensor tileSymbolic(const Tensor &x, const Shape &repeats);
/// Adds `low` elements before and `high` behind dimension `axis`, by the modes of ONNX's Pad. Amounts below 0 cut off.
Tensor padSymbolic(Node &n, const Tensor &x, int64_t axis, const Dim &low, const Dim &high, const std::string &mode,
                   double value);

} // namespace burin::onnx
