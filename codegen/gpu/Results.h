// The results of a kernel, written by many threads at once.
#pragma once
#include "codegen/emit/PointEmitter.h"

namespace burin::codegen {

struct GpuResults {
  GpuResults() = default;
  GpuResults(mlir::Block &body, const passes::IterationSpace &, ArrayRef<Value> results);

  /// Values of the space, and where they go.
  SmallVector<std::pair<Value, Value>> stored;
  /// All before the first store: it may go to memory that the others are computed from. A value that lacks dimensions
  /// of the space is written where these are 0, as no two threads may write the same place.
  void write(PointEmitter &) const;
};

/// Whether all operands and results of a kernel begin at multiples of 16 bytes, what a thread moves at once.
Value operandsAligned(ElementEmitter &, mlir::Block &body, ArrayRef<Value> results);
/// Tells LLVM so, from here on.
void assumeOperandsAligned(ElementEmitter &, mlir::Block &body, ArrayRef<Value> results);

} // namespace burin::codegen
