// From elementwise burin ops to arithmetic on lanes.
#pragma once
#include "burin/dtype.h"
#include "mlir/IR/Builders.h"

namespace burin::codegen {

/// Computes `op`, a burin elementwise op, on one lane value per operand (scalars or 1-D vectors of one length, typed as
/// laneType says) and returns the result's lane. 16-bit floats are widened to f32 before and rounded after each op, so
/// a fused chain gives the bits of its ops run one by one.
mlir::Value emitElementwise(mlir::OpBuilder &, mlir::Location, mlir::Operation *op, mlir::ValueRange lanes);

/// Converts a lane as burin.cast does.
mlir::Value castLanes(mlir::OpBuilder &, mlir::Location, mlir::Value, DType from, DType to);

} // namespace burin::codegen
