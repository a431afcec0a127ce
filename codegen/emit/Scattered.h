// Shared code of scatter kernels.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

/// Whether the result uses the buffer of x.
bool isInPlace(ir::ScatterOp);
/// Applies one update to an element; 16-bit floats are computed in f32. `reduction` is not "set".
Value combineUpdate(KernelBuilder &, llvm::StringRef reduction, Value element, Value update, DType);

} // namespace burin::codegen
