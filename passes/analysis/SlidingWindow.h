// Geometry of sliding windows: pooling and depthwise convolution.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// The windows of an op. Spatial dimensions of x start at `firstSpatial`; channels are the last or the second
/// dimension.
struct Window {
  mlir::Value x;
  size_t spatial, firstSpatial;
  llvm::SmallVector<int64_t> kernel, strides, low, high, dilations;
  bool ceilMode = false;

  bool channelsLast() const { return firstSpatial == 1; }
  /// Whether windows may reach beyond x along spatial dimension d.
  bool isOpen(size_t d) const { return low[d] > 0 || high[d] > 0 || ceilMode; }
};

/// Windows of max_pool, avg_pool, and channels-last depthwise conv; nullopt for other ops.
std::optional<Window> windowOf(mlir::Operation *op);

/// Element type of the accumulators of a window: f32 for 16-bit floats.
DType sumTypeOf(DType type);

} // namespace burin::passes
