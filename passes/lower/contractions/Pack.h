// Sides of products in the form that kernels read, and contractions of them.
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

/// Whether a left side [rows, …] of a product with `columns` columns is packed in panels of rows for CPUs with short
/// tiles: a transpose whose rows are the last dimension in memory, where a step of the sum reads a line of the cache
/// for each tile. In a matrix, the steps are rows before the transpose: if their length is a multiple of a large power
/// of two, they share a few sets of a cache, which does not hold them for the next tile. Steps through the images of a
/// batch are far apart anyway.
bool isPackedLeft(mlir::Value x, const Dim &columns);
/// Packs it: [rows, …] becomes [panels, rows of a panel, …], which lies in memory as [panels, …, rows of a panel].
mlir::Value packLeft(GraphBuilder &, mlir::Value x);

/// The windows of a contraction; by default those of a matrix product.
struct Windows {
  std::vector<int64_t> kernel{1}, strides{1}, dilations{1};
  std::vector<int64_t> padding; // empty, or the starts of all dimensions and then their ends
  /// The same windows over a packed left side, which has two dimensions instead of the first one.
  Windows byPanels() const;
};
/// A contraction of a left side and packed right sides, of which `tail` (or null) has the last columns as rows.
mlir::Value contract(mlir::OpBuilder &, mlir::Location, mlir::Value lhs, mlir::Value packed, mlir::Value tail,
                     int64_t batch, Dim columns, Windows, bool wide = false);

} // namespace burin::passes
