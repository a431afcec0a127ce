// Right sides of products in the form that kernels read.
#pragma once
#include "mlir/IR/Builders.h"
#include "passes/analysis/GraphBuilder.h"

namespace burin::passes {

/// Columns of a panel of this right side.
int64_t panelWidth(mlir::Value);
/// The 8-bit floats that are converted to x, an f32 matrix, in its shape; null if there are none.
mlir::Value float8Of(mlir::OpBuilder &, mlir::Value x);
/// Packs a right side, [batch…, K, N], or makes it the only panel. Kernels read 8-bit floats from panels and convert
/// them, so that weights keep their size.
mlir::Value pack(mlir::OpBuilder &, mlir::Location, mlir::Value x, bool onGpus);

} // namespace burin::passes
