// What the kernels of a scatter have in common.
#pragma once
#include "codegen/emit/KernelBuilder.h"

namespace burin::codegen {

/// Whether the result takes over the memory of the tensor that is scattered into.
bool isInPlace(ir::ScatterOp);
/// An element with one more update; of 16-bit floats, computed in f32. `reduction` is not "set".
Value combineUpdate(KernelBuilder &, llvm::StringRef reduction, Value element, Value update, DType);

} // namespace burin::codegen
