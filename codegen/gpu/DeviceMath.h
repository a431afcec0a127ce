// The functions of the C library that kernels call, for targets that have none.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace burin::codegen {

/// Adds a body for each function of the C library that code in `module` calls, with the C standard's results for
/// special arguments; others are within one unit in the last place. f32 forms are computed in f64 and rounded.
void defineLibm(mlir::ModuleOp module);

} // namespace burin::codegen
