// The schedule of a contraction on a CPU: the split of its result into tasks and register tiles. It is computed before
// any code is emitted, and can be printed.
#pragma once
#include "codegen/kernels/contraction/ContractionTiling.h"
#include "codegen/kernels/contraction/microkernel/ContractionLoopNest.h"

namespace burin::codegen {

/// The target as a contraction of few columns uses it: if all of them fit in half of a vector of AVX-512, vectors are
/// half as wide. Processors multiply two of those per cycle, but Zen 4 only one whole vector.
Target targetOfColumns(ir::ContractOp op, const Target &target);

/// A tile is up to `tileRows` rows times a chunk of columns, held in vector accumulators over the whole sum. The right
/// operand is packed in panels (see PackOp); a chunk is the part of a panel's width that one tile uses.
struct ContractionSchedule : ContractionLoopNest {
  ContractionSchedule(ir::ContractOp op, StridedMemory left, const Target &target);

  DType sumType;             // of the accumulators
  int64_t lanes;             // of a vector of accumulators
  int64_t panelWidth;        // in columns
  bool isPacked;             // otherwise the right side is one panel of all columns, which may be less than a vector
  int64_t chunkWidth;        // in columns
  int64_t sumsOfTile;        // limit, in vectors
  int64_t tileRows;          // limit for tiles of one chunk
  int64_t tileChunks;        // adjacent chunks of a tile, with fewer rows
  Dim allColumns, columns;   // of the result; those in panels
  int64_t tailColumns = 0;   // the other columns, computed as horizontal sums (see TailColumns.h)
  int64_t narrowVectors = 0; // of a partial last chunk, else 0
  bool skipsZeros;           // tasks of one row may skip its zeros (see CompressedRow.h)

  Dim batches;
  bool byRows; // tasks are blocks of rows; otherwise of outer positions with all their rows
  Dim units;   // rows, or outer positions
  ContractionTiling tiling;
  Dim rowsOfTask;
  bool keepsSums;   // the sum is computed block by block, with partial sums in scratch memory (see KeptSums.h)
  bool staysCached; // tiles find panels in L2: those of a small function, or a block's part after its first tile

  int64_t chunkVectors() const { return chunkWidth / lanes; }
  /// The most rows of a tile of so many vectors of columns.
  int64_t rowsOf(int64_t vectors) const;
  /// The fewest rows of a block for tiles of several chunks.
  int64_t leastRows() const;
  /// Whether the product is in the body of a loop (or a branch), which is a private function.
  bool isInLoop();
  int64_t chunksPerPanel() const { return (panelWidth + chunkWidth - 1) / chunkWidth; }
  Dim tasks() const;
  Dim scratchBytes() const; // per worker
  /// Tasks, tiles and loops of the sum in readable form.
  std::string text() const;

private:
  void chooseTile(const Target &);
  void cutColumns(const Target &);
  void cutTasks();
  void chooseChunks();
  bool rightSidesStayCached();
};

} // namespace burin::codegen
