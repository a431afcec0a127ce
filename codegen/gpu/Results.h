// The results of a kernel, stored by many threads concurrently.
#pragma once
#include "codegen/emit/element/PointEmitter.h"

namespace burin::codegen {

struct GpuResults {
  GpuResults() = default;
  GpuResults(mlir::Block &body, const passes::IterationSpace &, ArrayRef<Value> results);

  /// Values of the space and the pointers of their results.
  SmallVector<std::pair<Value, Value>> stored;
  /// Computes all values before the first store, which may overwrite memory that others are computed from. A value
  /// without some dimensions of the space is stored where these are 0, so that no two threads store the same element.
  void write(PointEmitter &) const;
};

/// Whether all operands and results are aligned to 16 bytes, the size of a thread's loads and stores.
Value operandsAligned(ElementEmitter &, mlir::Block &body, ArrayRef<Value> results);
/// Tells LLVM that they are, from here on.
void assumeOperandsAligned(ElementEmitter &, mlir::Block &body, ArrayRef<Value> results);

} // namespace burin::codegen
