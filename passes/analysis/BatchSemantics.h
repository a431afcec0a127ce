// Which ops work on each part of a batch alone.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// Whether dimension 0 is a multiple of `parts`.
bool hasParts(mlir::Value v, const Dim &parts);

/// If a part of the results along dimension 0 can be computed from the same part of some operands and all of the
/// others: for each operand whether it is one of the former. `op` must have at least one result.
std::optional<llvm::SmallVector<bool>> slicedOperands(mlir::Operation *op, const Dim &parts);

/// The op that computes one of `parts` parts of what `op` does. `operands` are the parts, or whole, as above.
mlir::Operation *createPart(mlir::OpBuilder &, mlir::Operation *op, mlir::ValueRange operands, const Dim &parts);

/// The type of one of `parts` parts.
mlir::Type partType(mlir::Value whole, const Dim &parts);

} // namespace burin::passes
