// Windows of convolutions and pools, as ONNX describes them.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

/// Over the spatial dimensions of [N, C, spatial…].
struct Window {
  std::vector<int64_t> kernel, strides, dilations, padding; // padding: all starts, then all ends
};

/// From the node's attributes, for an input of this shape; auto_pad is resolved.
Window windowOf(Node &n, const Shape &shape, std::vector<int64_t> kernel);

/// The sizes of a weight beyond its first two, which must be known.
std::vector<int64_t> spatialSizes(Node &n, const Shape &weight);

} // namespace burin::onnx
