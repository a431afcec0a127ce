// Ops that may find values which are not allowed while they run: an index out of range, a condition that does not hold.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

bool mayFindError(mlir::Operation *op);
/// Those of a kernel, in order.
llvm::SmallVector<mlir::Operation *> checksOf(ir::KernelOp kernel);
/// Whether a step may end a run: a kernel with such ops, a step that runs functions with them, a size that is computed.
bool canFail(mlir::Operation *op);
/// What the error of such an op says.
std::string errorOf(mlir::Operation *op);

} // namespace burin::passes
