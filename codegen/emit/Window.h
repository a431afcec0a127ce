// Window ops: where a window lies, and what is done with the elements that it sees. Pooling and depthwise convolution
// are the same walk.
#pragma once
#include "codegen/emit/ElementEmitter.h"

namespace burin::codegen {

/// The taps [first, second) of a window of `kernel` taps from `origin` on that lie inside [0, size).
std::pair<Value, Value> tapsInside(KernelBuilder &, Value origin, Value size, int64_t kernel, int64_t dilation);

/// Neighbouring tiles of equal size along a row.
struct TileRun {
  int64_t from, size, tiles, before; // first position, positions of each, how many, tiles of the row before them
  bool inside;                       // their windows see all their taps; a tile at an end of the row is alone
};
/// A row as so many tiles of nearly equal size. `isInside` tells it of positions [from, from + size).
SmallVector<TileRun> tilesOf(int64_t positions, int64_t tiles,
                             llvm::function_ref<bool(int64_t from, int64_t size)> isInside);

/// Geometry of a window op. The spatial dimensions of x start at `firstSpatial`; channels are last or second.
struct Window {
  Value x;
  size_t spatial, firstSpatial;
  SmallVector<int64_t> kernel, strides, low, high, dilations;
  bool ceilMode = false;

  bool channelsLast() const { return firstSpatial == 1; }
  /// Whether windows may reach beyond x.
  bool isOpen(size_t d) const { return low[d] > 0 || high[d] > 0 || ceilMode; }
  /// Where the window of a position of the result begins in x.
  Index origin(KernelBuilder &, size_t d, const Index &at) const;
  /// The taps of a window with this origin that lie inside x.
  std::pair<Value, Value> tapsInside(KernelBuilder &, size_t d, Value origin) const;
};

/// Of max_pool, avg_pool, and channels-last conv with one filter per channel.
std::optional<Window> windowOf(mlir::Operation *op);

/// What such an op does with the elements of a window, one after the other.
class WindowRule {
public:
  WindowRule(ElementEmitter &e, mlir::Operation *op);

  DType type, sumType; // 16-bit floats are computed in f32
  /// What the accumulator starts with, and what an element outside of x counts as: lanes of `sumType`.
  Value identity(int64_t lanes);
  /// `x`: lanes of `sumType`, of one position or of several side by side; `tap`: its position in the window; `channel`:
  /// of the result.
  Value step(Value accumulator, Value x, ArrayRef<Value> tap, const Index &channel);

private:
  ElementEmitter &e;
  KernelBuilder &k;
  mlir::Operation *op;
};

} // namespace burin::codegen
