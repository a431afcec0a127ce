// The C library's functions that kernels call, for targets without a C library.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace burin::codegen {

/// Adds a body for each C library function that `module` calls. Special arguments give the results of the C standard;
/// other results are within one unit in the last place. f32 forms compute in f64 and round.
void defineLibm(mlir::ModuleOp module);

} // namespace burin::codegen
