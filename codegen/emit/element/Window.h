// Window ops: positions of windows in loops, and their accumulation. Pooling and depthwise convolution share the loop
// nest; passes/analysis/SlidingWindow.h has the geometry.
#pragma once
#include "codegen/emit/element/ElementEmitter.h"

namespace burin::codegen {

/// The taps [first, second) of a window of `kernel` taps at `origin` that lie inside [0, size).
std::pair<Value, Value> tapsInside(KernelBuilder &, Value origin, Value size, int64_t kernel, int64_t dilation);

/// Adjacent tiles of equal size in a row.
struct TileRun {
  int64_t from, size, tiles, before; // first position, positions per tile, tiles, tiles of the row before
  bool inside;                       // no taps are outside; tiles at the ends of the row are single
};
/// Splits a row into `tiles` tiles of nearly equal size. `isInside` answers for positions [from, from + size).
SmallVector<TileRun> tilesOf(int64_t positions, int64_t tiles,
                             llvm::function_ref<bool(int64_t from, int64_t size)> isInside);

/// Position in x of the first tap of the window at `at`.
Index originOf(KernelBuilder &, const Window &, size_t d, const Index &at);
/// The taps of a window at this origin that lie inside x.
std::pair<Value, Value> tapsInside(KernelBuilder &, const Window &, size_t d, Value origin);

/// The accumulation of a window op, tap by tap.
class WindowRule {
public:
  WindowRule(ElementEmitter &e, mlir::Operation *op);

  DType type, sumType; // f32 for 16-bit floats
  /// Initial accumulator, also the value of elements outside of x: lanes of `sumType`.
  Value identity(int64_t lanes);
  /// Adds a tap. `x`: lanes of `sumType`, of one or several adjacent positions; `tap`: its position in the window;
  /// `channel`: channel of the result.
  Value step(Value accumulator, Value x, ArrayRef<Value> tap, const Index &channel);

private:
  ElementEmitter &e;
  KernelBuilder &k;
  mlir::Operation *op;
};

} // namespace burin::codegen
