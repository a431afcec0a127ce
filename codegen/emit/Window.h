// Window ops: where a window lies in loops, and what is done with the elements that it sees. Pooling and depthwise
// convolution are the same walk; passes/analysis/SlidingWindow.h has their geometry.
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

/// Where the window of a position of the result begins in x.
Index originOf(KernelBuilder &, const Window &, size_t d, const Index &at);
/// The taps of a window with this origin that lie inside x.
std::pair<Value, Value> tapsInside(KernelBuilder &, const Window &, size_t d, Value origin);

/// What a window op does with the elements of a window, one after the other.
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
