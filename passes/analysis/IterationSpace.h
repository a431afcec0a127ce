// How the values of a kernel line up with one iteration space.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// The iteration space of a kernel and, for each value computed point by point in it, which dimension of the space each
/// of its dimensions runs along. Reductions run along the full space of their operand.
struct IterationSpace {
  /// Dimensions of the space after merging neighbours that every value treats alike; sizes of 1 are gone.
  Shape space;
  llvm::SmallVector<bool> reduced; // per dimension of `space`

  /// Dimension of the space per dimension of the value, -1 for a size of 1. Several dimensions of a value may share
  /// one: they were merged, and the value has all of them, next to each other.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<int>> dims;

  bool contains(mlir::Value v) const { return dims.contains(v); }
};

/// Aligns the values of a kernel's body with the space of its reductions, its contraction or its results.
/// nullopt if they do not line up. Composites (softmax, norms) count as the reductions that they become.
std::optional<IterationSpace> inferIterationSpace(mlir::Block &body);

/// The value whose bytes are those of `v`: reshapes are looked through.
mlir::Value skipReshapes(mlir::Value v);
/// The reduced dimensions of a reduction; empty for other ops.
llvm::SmallVector<int64_t> reducedAxes(mlir::Operation *op);
/// The dimensions that a reduction, softmax or norm reduces over; empty for other ops.
llvm::SmallVector<int64_t> rowAxes(mlir::Operation *op);
/// A reshape that only adds or drops dimensions of size 1: for each dimension of the result, the one of the operand it
/// comes from, or -1 for an added one.
std::optional<llvm::SmallVector<int>> unitReshape(mlir::Operation *op);

} // namespace burin::passes
