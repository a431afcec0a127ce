// Windows of convolutions and pooling by ONNX's attributes.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

/// A window over the spatial dimensions of [N, C, spatial…].
struct Window {
  std::vector<int64_t> kernel, strides, dilations, padding; // padding: all starts, then all ends
};

/// Reads the attributes of the node, for an input of this shape; resolves auto_pad.
Window windowOf(Node &n, const Shape &shape, std::vector<int64_t> kernel);

/// The sizes of a weight after the first two, which must be static.
std::vector<int64_t> spatialSizes(Node &n, const Shape &weight);

} // namespace burin::onnx
