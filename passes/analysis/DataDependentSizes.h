// Sizes that depend on data: which ops define them, and who has to wait for that.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// The value in whose memory `v` lies: reshapes and prefixes are looked through.
mlir::Value storedIn(mlir::Value v);

/// For each op of a block that has effects, the one before it; null for the first.
llvm::DenseMap<mlir::Operation *, mlir::Operation *> orderOfEffects(mlir::Block &block);
/// Sorts a block: values are defined before they are used, and effects keep their order.
void sortByDependence(mlir::Block &block);
/// Sorts a block: values are defined before they are used, and sizes too, which operands do not tell: full({n}, 0).
void sortBySizes(mlir::Block &block);

} // namespace burin::passes
