// The work of a step by the plan's account: for profiles, and for choosing how many threads it is worth.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// Floating-point operations of a kernel; moving data counts none, nor does what is too large an expression of sizes.
Dim flopsOf(ir::KernelOp kernel);
/// Bytes that a kernel reads of one operand: all of it, but of a table only the rows that are taken.
Dim bytesRead(mlir::BlockArgument operand, mlir::Value source);
/// The size where each symbol is 8, which is what plans are made for; 0 if that is impossible.
int64_t typicalSize(const Dim &size);
/// Bytes of a tensor.
Dim byteSize(mlir::Value v);

} // namespace burin::passes
