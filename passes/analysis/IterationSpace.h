// Maps the values of a kernel to the iteration space of its loops, and knows which sizes are equal in every run.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// Classes of sizes that a function checks to be equal before its kernels run, such as floordiv(h, 2)*2 and h where the
/// results of a pool and of an upsampling are added. Sizes that are equal to a number have none.
class SizeClasses {
public:
  SizeClasses() = default;
  /// The classes of the function around `op`.
  explicit SizeClasses(mlir::Operation *op);

  /// Returns the representative of the size's class; the size itself if it is in none.
  Dim of(const Dim &size) const;
  bool areSame(const Dim &x, const Dim &y) const { return x == y || of(x) == of(y); }
  bool areSame(const Shape &x, const Shape &y) const;
  bool empty() const { return members.empty(); }

private:
  std::vector<std::pair<Dim, Dim>> members; // each with the representative of its class
};

/// Whether the op is a reshape that keeps the rank but not all sizes, as those that only give sizes other names do.
bool mayRename(mlir::Operation *op);
/// Whether the op is a reshape that only gives sizes other names: each is in one class with the size that it replaces.
bool isRenaming(mlir::Operation *op, const SizeClasses &);

/// The iteration space of a kernel and, for each value that is computed pointwise in it, the dimension of the space
/// that each of its dimensions runs along. A reduction runs over the space of its operand.
struct IterationSpace {
  /// Dimensions of the space. Neighbours that all values treat alike are merged; dimensions of size 1 are dropped.
  Shape space;
  llvm::SmallVector<bool> reduced; // per dimension of `space`

  /// Dimension of the space for each dimension of the value; -1 for size 1. Several dimensions of a value may map to
  /// one merged dimension; they are adjacent then.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<int>> dims;

  bool contains(mlir::Value v) const { return dims.contains(v); }
};

/// Infers the space from the body's reductions, its contraction or its results, and maps the values to it. Returns
/// nullopt if they do not fit one space. Softmax and norms count as the reductions that they are decomposed into.
/// `classes` are those of the function that the kernel is in.
std::optional<IterationSpace> inferIterationSpace(mlir::Block &body, const SizeClasses &classes);
std::optional<IterationSpace> inferIterationSpace(mlir::Block &body);
/// The space of the body, of which one is given, in runs in which these sizes are 1.
IterationSpace withOnes(mlir::Block &body, const IterationSpace &, llvm::ArrayRef<Dim> ones);

/// Looks through reshapes to the value that has the same bytes as `v`.
mlir::Value skipReshapes(mlir::Value v);
/// The reduced dimensions of a reduction; empty for other ops.
llvm::SmallVector<int64_t> reducedAxes(mlir::Operation *op);
/// The dimensions that a reduction, softmax or norm reduces over; empty for other ops.
llvm::SmallVector<int64_t> rowAxes(mlir::Operation *op);
/// Attribute of reductions over several dimensions that may be computed in the order of memory, until kernels are made.
inline constexpr llvm::StringLiteral kMemoryOrder = "burin.memory_order";
/// For a reshape that only adds or drops dimensions of size 1: for each dimension of the result, the dimension of the
/// operand, or -1 for an added one. nullopt for other reshapes.
std::optional<llvm::SmallVector<int>> unitReshape(mlir::Operation *op, const SizeClasses &classes = {});
/// Whether the op, a broadcast or a unit reshape, gives its operand's element at the same point of the space.
bool isAtPoint(const IterationSpace &, mlir::Operation *op);

} // namespace burin::passes
