// The results of a kernel, stored by many threads concurrently.
#pragma once
#include "codegen/emit/element/PointEmitter.h"

namespace burin::codegen {

struct GpuResults {
  GpuResults() = default;
  GpuResults(mlir::Block &body, const passes::IterationSpace &, ArrayRef<Value> results);

  /// Values that the kernel yields, without reshapes, each with the pointer of its result.
  SmallVector<std::pair<Value, Value>> stored;
  /// Computes the values of a thread before its first store, which may overwrite an element that another of them reads:
  /// a result may share the memory of an input. A value without some dimensions of the space is stored where these are
  /// 0, so that no two threads store the same element.
  void write(PointEmitter &) const;
};

} // namespace burin::codegen
