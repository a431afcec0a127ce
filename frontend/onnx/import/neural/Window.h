// Windows of convolutions and pooling by ONNX's attributes.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

/// A window over the spatial dimensions of [N, C, spatial…].
struct Window {
  std::vector<int64_t> kernel, strides, dilations, padding; // padding: all starts, then all ends
  /// Padding that depends on a symbolic size, instead of that in `padding`; at most `most` on each side.
  struct Around {
    size_t axis; // of the input
    Dim low, high;
    int64_t most;
  };
  std::vector<Around> around;

  /// The input with this padding, of `value`; the rest is in `padding`.
  Tensor extended(const Tensor &x, double value) const;
};

/// Reads the attributes of the node, for an input of this shape; resolves auto_pad. If auto_pad needs padding that
/// depends on a symbolic size, and `mayExtend` is false, the node is refused.
Window windowOf(Node &n, const Shape &shape, std::vector<int64_t> kernel, bool mayExtend = false);

/// The sizes of a weight after the first two, which must be static.
std::vector<int64_t> spatialSizes(Node &n, const Shape &weight);

} // namespace burin::onnx
