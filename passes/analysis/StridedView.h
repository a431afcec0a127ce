// Values whose elements are strided in memory: transposed operands, and kernels that transpose.
#pragma once
#include "passes/analysis/IterationSpace.h"

namespace burin::passes {

/// Strides of a dense row-major tensor, in elements, per dimension.
llvm::SmallVector<Dim> rowMajorStrides(const Shape &);

/// Whether an op is a slice in steps of 1.
bool isUnitSlice(mlir::Operation *op);
/// Whether an op is a slice from the first element of each dimension on, in steps of 1: its elements keep their places
/// in memory.
bool isPrefixSlice(mlir::Operation *op);
/// Whether an op is a reshape that changes the first size at most, such as its name: strides stay.
bool keepsStrides(mlir::Operation *op);

/// Whether an op repeats matrices, the last two dimensions, along the dimensions before them.
bool repeatsMatrices(mlir::Operation *op);
/// Whether an op is a reshape that only adds sizes of 1.
bool addsUnits(mlir::Operation *op);

/// A value as a strided view of `base`, which is reshaped, then sliced, transposed and repeated, with strides of 0. A
/// reshape of a slice may split dimensions.
struct StridedView {
  mlir::Value base;
  llvm::SmallVector<Dim> strides; // in elements, per dimension of the value
  Dim offset = 0;                 // of the first element
};
StridedView stridedViewOf(mlir::Value v);

/// Whether an op joins a few tensors along the last dimension but one, the rows of matrices.
bool joinsRows(mlir::Operation *op);
/// Whether an op is a view that keeps the last two dimensions: adds sizes of 1 before them, or repeats them.
bool keepsMatrices(mlir::Operation *op);
/// Adjacent rows of matrices in one tensor.
struct RowsView {
  StridedView view;
  Dim rows;
};
/// All rows of `v`: in several tensors if joinsRows() made it, perhaps behind keepsMatrices(); else as stridedViewOf().
llvm::SmallVector<RowsView> rowsViewsOf(mlir::Value v);

/// A copy between two orders of dimensions, with the strides of source and result.
struct StridedCopy {
  struct Along {
    Dim size;
    Dim from, to; // strides in the source and in the result, in elements
  };
  llvm::SmallVector<Along> dims;
  mlir::Value source; // an operand of the kernel
  DType type;
  int inner = -1;     // dimension along which the source is contiguous; the result is contiguous along the last one
  Dim filled;         // for a packed matrix: columns in all panels; the remaining columns are zero
  int64_t panels = 0; // for a packed matrix: panel width, else 0
};
/// Matches a kernel that only transposes an operand, or transposes and packs it. nullopt for other bodies, and if
/// source and result are contiguous along the same dimension or along ones known to be shorter than `leastSide`; the
/// default is the shortest worth transposing squares in registers.
std::optional<StridedCopy> transposingCopyOf(mlir::Block &body, int64_t leastSide = 8);

/// Transposed operands of an elementwise kernel that are contiguous along a dimension of its space other than the last.
struct TransposedReads {
  int along = -1; // the dimension that they are contiguous along
  llvm::SmallVector<mlir::Value> values;
};
/// nullopt if there are none, or if the two dimensions are too short for transposes in registers.
std::optional<TransposedReads> transposedReadsOf(mlir::Block &body, const IterationSpace &);

/// A dimension of an elementwise kernel's space along which a transposed operand is contiguous, but which is too short
/// for transposes in registers: rows that are neighbours along it read the same cache lines. -1 if there is none.
int interleavedDimension(mlir::Block &body, const IterationSpace &);

/// The takes of an elementwise kernel whose indices run along the last dimension of its space, as those of a resize
/// along columns: every row reads at the same positions. Empty for other kernels.
llvm::SmallVector<ir::TakeOp> takesOfColumns(mlir::Block &body, const IterationSpace &);

} // namespace burin::passes
