// The loops of a contraction over its left operand: rows, outer rows, and the loops of the sum.
#pragma once
#include "codegen/emit/element/ElementEmitter.h"
#include "codegen/kernels/contraction/microkernel/Microkernel.h"

namespace burin::codegen {

struct ContractionLoopNest {
  struct Step { // a loop of the sum, or over rows
    Dim size;
    Dim stride;       // in elements of lhs
    size_t dim = 0;   // of lhs and the result
    bool cut = false; // windows of this dimension may reach beyond lhs
    size_t dims = 1;  // number of merged dimensions, from `dim` on
  };
  using Rows = Microkernel::Rows;

  /// Merges adjacent dimensions whose traversal is linear.
  ContractionLoopNest(ir::ContractOp op, StridedMemory left);

  ir::ContractOp op;
  StridedMemory left;
  SmallVector<Step> sum, outer;
  SmallVector<Step> sumAtEnds; // the sum without merged dimensions, for tiles at the ends of a row
  Step along;                  // the dimension that tiles run along
  SmallVector<Step> gathered;  // the dimensions merged into `along` if its rows have irregular offsets, else empty
  int64_t rowGroup = 1;        // adjacent rows with regular offsets even then; tiles contain whole groups
  Dim depth, lhsBatchStride, lhsStart;
  /// For products of pairs (see Bf16PairsOp), whose steps are pairs: the distance of the two elements in lhs.
  std::optional<Dim> pairs;
  Dim single; // 1 if the last step of a loop over channels has one element alone, else 0

  /// Whether the windows of these rows contain all their taps along the row.
  bool isInside(int64_t from, int64_t rows);
  /// The rows of a tile at `from` for which this tap lies inside lhs.
  Rows rowsSeeing(int64_t tap, int64_t from, int64_t rows);
  /// Taps [first, end), and the rows of a tile for which all of them lie inside.
  struct Taps {
    int64_t first, end;
    Rows seeing;
  };
  /// The taps along a row that lie inside for any row of a tile at `from`, in order; many taps with equal rows are one
  /// entry, others are single.
  SmallVector<Taps> tapsSeen(int64_t taps, int64_t from, int64_t rows);
  /// Unroll factor of the innermost loop. Rows of a window over an image of few channels overlap: a step of a row reads
  /// what a later step of the row before reads. Such steps are not unrolled together, as LLVM would keep all that they
  /// share in registers, which do not suffice.
  int64_t unrolled();
  /// Unroll factor of the innermost loop for tiles at the ends of a row. Each tap of a wide window has separate code
  /// there, so it is kept small.
  int64_t unrolledAtEnds();

  /// Whether the sum is so deep that it is computed by blocks of the outermost taps: a block's part of the panel stays
  /// in cache while all rows of a task pass. The order of the sum, and so its bits, do not change.
  /// `chunks`: adjacent chunks of columns of a tile, each from a panel.
  bool isDeepOverWindows(int64_t chunks);

  /// Offset of a row from row 0 of the current outer position, in elements of lhs.
  Value rowOffset(KernelBuilder &k, Value row) const;
  /// Offset of row r of a tile from its first row, `row`, if rows are gathered. Rows of a group share an address
  /// register. `before`: offsets of the previous rows.
  Value offsetInTile(KernelBuilder &k, Value row, int64_t r, ArrayRef<Value> before) const;
  /// The taps of the window at a position of a dimension that lie inside lhs.
  std::pair<Value, Value> tapsOf(KernelBuilder &k, size_t dim, Value position);

private:
  void mergeRows();
  void chooseAlong();
  bool gatherRows();
  void mergeSum();
};

} // namespace burin::codegen
