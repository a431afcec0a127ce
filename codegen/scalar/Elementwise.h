// Lowers elementwise burin ops to arithmetic on lanes.
#pragma once
#include "burin/dtype.h"
#include "mlir/IR/Builders.h"

namespace burin::codegen {

/// Computes the elementwise op `op` on one lane value per operand (scalars, or 1-D vectors of equal length, with
/// element types as laneType) and returns the lane value of the result. 16-bit floats are widened to f32 before and
/// rounded after each op, so that fused chains give the same bits as single ops.
mlir::Value emitElementwise(mlir::OpBuilder &, mlir::Location, mlir::Operation *op, mlir::ValueRange lanes);

/// Converts a lane value as burin.cast does.
mlir::Value castLanes(mlir::OpBuilder &, mlir::Location, mlir::Value, DType from, DType to);

} // namespace burin::codegen
