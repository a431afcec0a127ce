// Batch semantics of ops: which ops can compute a part of their result from the same part of their operands.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// Whether dimension 0 is a multiple of `parts`.
bool hasParts(mlir::Value v, const Dim &parts);

/// Whether a part of the results along dimension 0 can be computed from the same part of some operands and from the
/// other operands as a whole. Returns for each operand whether it is sliced; nullopt if that is impossible. `op` must
/// have a result.
std::optional<llvm::SmallVector<bool>> slicedOperands(mlir::Operation *op, const Dim &parts);

/// Creates the op that computes one of `parts` parts of the results of `op`. Operands are parts or whole tensors, as
/// returned by slicedOperands.
mlir::Operation *createPart(mlir::OpBuilder &, mlir::Operation *op, mlir::ValueRange operands, const Dim &parts);

/// The type of one of `parts` parts.
mlir::Type partType(mlir::Value whole, const Dim &parts);

} // namespace burin::passes
