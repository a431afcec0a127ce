// Data-dependent sizes: the ops that define them and the order that they impose.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// The value whose memory holds `v`: looks through reshapes and prefixes.
mlir::Value storedIn(mlir::Value v);

/// For each op with effects in a block, the previous op with effects; null for the first.
llvm::DenseMap<mlir::Operation *, mlir::Operation *> orderOfEffects(mlir::Block &block);
/// Sorts a block so that values are defined before they are used and effects keep their order.
void sortByDependence(mlir::Block &block);
/// Also defines size symbols before they are used, which operands do not show: full({n}, 0).
void sortBySizes(mlir::Block &block);

} // namespace burin::passes
