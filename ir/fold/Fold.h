// Constant folding: ops on constants become constants. The reference interpreter computes values; ops that only move
// elements work on the bytes of constants, so weights fold at the speed of a copy and bit for bit.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::ir {

/// The results of `op` for the operands `constants` (null: not constant). Fails, without a diagnostic, if an operand is
/// not constant, a size is symbolic, a result is larger than the interpreter allows, or the op is not in the table.
mlir::FailureOr<std::vector<mlir::ElementsAttr>> foldOp(mlir::Operation *op, llvm::ArrayRef<mlir::Attribute> constants);
/// The same with the constants that define the operands.
mlir::FailureOr<std::vector<mlir::ElementsAttr>> foldOp(mlir::Operation *op);

} // namespace burin::ir
