// Cost of a step: for profiles, and to choose the number of threads of a step.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// Floating-point operations of a kernel. Movement counts 0, and so do ops whose count is too large an expression of
/// sizes.
Dim flopsOf(ir::KernelOp kernel);
/// Bytes that a kernel reads of an operand: all of it, or of a table only the selected rows.
Dim bytesRead(mlir::BlockArgument operand, mlir::Value source);
/// `size` with kTypicalSize for each symbol, as plans assume; 0 if that does not evaluate.
int64_t typicalSize(const Dim &size);
/// Bytes of a tensor.
Dim byteSize(mlir::Value v);

} // namespace burin::passes
