// Ops that check values at run time: indices out of range, and conditions that do not hold.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

bool mayFindError(mlir::Operation *op);
/// The checking ops of a kernel, in order.
llvm::SmallVector<mlir::Operation *> checksOf(ir::KernelOp kernel);
/// Whether a step may end a run with an error: a kernel with checking ops, a step that runs functions with them, a
/// computed size.
bool canFail(mlir::Operation *op);
/// Whether the result is known to have all elements of the only operand, so that a check of one is a check of the
/// other.
bool keepsAllElements(mlir::Operation *op);
/// Error message of a checking op.
std::string errorOf(mlir::Operation *op);

} // namespace burin::passes
