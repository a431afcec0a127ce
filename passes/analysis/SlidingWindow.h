// Geometry of sliding windows: pooling and depthwise convolution.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// The windows of an op. The spatial dimensions of x start at `firstSpatial`; channels are last or second.
struct Window {
  mlir::Value x;
  size_t spatial, firstSpatial;
  llvm::SmallVector<int64_t> kernel, strides, low, high, dilations;
  bool ceilMode = false;

  bool channelsLast() const { return firstSpatial == 1; }
  /// Whether windows may reach beyond x.
  bool isOpen(size_t d) const { return low[d] > 0 || high[d] > 0 || ceilMode; }
};

/// Of max_pool, avg_pool, and channels-last conv with one filter per channel; nullopt for other ops.
std::optional<Window> windowOf(mlir::Operation *op);

/// What the elements of windows of this type are accumulated in: 16-bit floats in f32.
DType sumTypeOf(DType type);

} // namespace burin::passes
