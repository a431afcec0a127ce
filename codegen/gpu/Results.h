// The results of a kernel, stored by many threads concurrently.
#pragma once
#include "codegen/emit/element/PointEmitter.h"

namespace burin::codegen {

struct GpuResults {
  GpuResults() = default;
  GpuResults(mlir::Block &body, const passes::IterationSpace &, ArrayRef<Value> results);

  /// Values that the kernel yields, each with the pointer of its result; instead of a reshape that is not in the space,
  /// its operand.
  SmallVector<std::pair<Value, Value>> stored;
  /// Computes all values of a thread, then stores them: a result may share the memory of an input that another value
  /// still reads. A value that lacks dimensions of the space is stored by the thread whose indices along these are 0
  /// alone.
  void write(PointEmitter &) const;
};

} // namespace burin::codegen
