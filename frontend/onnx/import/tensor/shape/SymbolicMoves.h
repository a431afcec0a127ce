// Tile and pad by symbolic amounts, for which the ops of the same names need numbers.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

/// torch.tile with one amount per dimension.
Tensor tileSymbolic(const Tensor &x, const Shape &repeats);
/// Adds `low` elements before and `high` after dimension `axis`, by the modes of ONNX's Pad. Negative amounts crop.
Tensor padSymbolic(Node &n, const Tensor &x, int64_t axis, const Dim &low, const Dim &high, const std::string &mode,
                   double value);

} // namespace burin::onnx
