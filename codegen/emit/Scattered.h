// Scatter ops: code that kernels for CPUs and GPUs share.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

/// Whether the scatter writes its updates into the buffer of its operand x, so that x is not copied to the result
/// first.
bool updatesInPlace(ir::ScatterOp);
/// The value of an element after one update by `reduction`, one of "add", "mul", "min" and "max". 16-bit floats are
/// widened to f32 and rounded once.
Value combineUpdate(KernelBuilder &, llvm::StringRef reduction, Value element, Value update, DType);

} // namespace burin::codegen
