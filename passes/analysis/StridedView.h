// Values whose elements lie in memory in another order than their own: transposed operands, and kernels that transpose.
#pragma once
#include "passes/analysis/IterationSpace.h"

namespace burin::passes {

/// Elements from one index to the next, per dimension of a dense tensor.
llvm::SmallVector<Dim> rowMajorStrides(const Shape &);

/// A value seen in the memory of another one: `base`, reshaped, and perhaps transposed then.
struct StridedView {
  mlir::Value base;
  llvm::SmallVector<Dim> strides; // in elements, per dimension of the value
};
StridedView stridedViewOf(mlir::Value v);

/// A copy between two orders of dimensions: the result as it lies in memory, and where its elements come from.
struct StridedCopy {
  struct Along {
    Dim size;
    Dim from, to; // elements of the source, of the result, from one index to the next
  };
  llvm::SmallVector<Along> dims;
  mlir::Value source; // an operand of the kernel
  DType type;
  int inner = -1;     // the dimension that the source is contiguous along; the result is along the last
  Dim filled;         // of a packed matrix: columns that are there, over all panels; the others are zero
  int64_t panels = 0; // of a packed matrix: how wide, else 0
};
/// Of a kernel that only transposes an operand, or packs one that it transposes; nullopt for other bodies, and where
/// source and result are contiguous along the same dimension or along short ones.
std::optional<StridedCopy> transposingCopyOf(mlir::Block &body);

/// Transposed operands of an elementwise kernel that lie contiguous along one dimension of its space, not the last.
struct TransposedReads {
  int along = -1; // that dimension
  llvm::SmallVector<mlir::Value> values;
};
/// nullopt where there are none, or squares along the two dimensions are not worth it.
std::optional<TransposedReads> transposedReadsOf(mlir::Block &body, const IterationSpace &);

} // namespace burin::passes
