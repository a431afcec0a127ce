// Sides of products in the form that kernels read.
#pragma once
#include "mlir/IR/Builders.h"
#include "passes/analysis/GraphBuilder.h"

namespace burin::passes {

/// Columns of a panel of this right side.
int64_t panelWidth(mlir::Value);
/// The 8-bit floats that are converted to x, an f32 matrix, in its shape; null if there are none.
mlir::Value float8Of(mlir::OpBuilder &, mlir::Value x);
/// A matrix [batch…, K, N] as panels of one column each, [batch…, N, K, 1]: a transpose. Tensor cores read bytes so,
/// which they multiply by words of four steps of the sum.
mlir::Value columnPanels(mlir::OpBuilder &, mlir::Location, mlir::Value x);
/// Who reads the sides of products: kernels for GPUs alone, or for CPUs alone, libraries that may compute products
/// instead of kernels, and CPUs whose tiles of sums have few rows.
struct Readers {
  bool onGpus = false, onCpus = false, libraries = false, withShortTiles = false;
  Readers withoutLibraries() const { return {onGpus, onCpus, false, withShortTiles}; }
};
/// Packs a right side, [batch…, K, N], or makes it the only panel, or its columns if it is of bytes. Kernels read 8-bit
/// floats from panels and convert them, so that weights keep their size. With few rows (`isThin`) all types have
/// panels.
mlir::Value pack(mlir::OpBuilder &, mlir::Location, mlir::Value x, Readers readers, bool isThin = false);

/// Rows of a panel of this left side [M, K] of a product with `columns` columns, which is a transpose that is packed
/// like a right side; 0 if kernels read it as it lies in memory. There, a step of the sum is a row of the matrix before
/// the transpose. If the length of such rows is a multiple of a large power of two, the steps share a few sets of a
/// cache, and each tile of sums reads them from the next one.
int64_t rowsOfLeftPanels(mlir::Value x, const Dim &columns);

} // namespace burin::passes
