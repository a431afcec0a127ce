// How a contraction goes over its left side: rows, outer rows, and the loops of the sum.
#pragma once
#include "codegen/emit/ElementEmitter.h"
#include "codegen/kernels/contraction/Microkernel.h"

namespace burin::codegen {

struct ContractionLoopNest {
  struct Step { // one loop of the sum, or one outer loop over rows
    Dim size;
    Dim stride;       // in elements of lhs
    size_t dim = 0;   // of lhs and the result
    bool cut = false; // windows of this dimension may reach beyond lhs
    size_t dims = 1;  // merged dimensions, from `dim` on
  };
  using Rows = Microkernel::Rows;

  /// Neighbours are merged where the walk is linear.
  ContractionLoopNest(ir::ContractOp op, StridedMemory left);

  ir::ContractOp op;
  StridedMemory left;
  SmallVector<Step> sum, outer;
  SmallVector<Step> sumAtEnds; // the same sum, every dimension on its own
  Step along;                  // the dimension that tiles run along
  SmallVector<Step> gathered;  // what `along` is merged from if its rows do not lie evenly, else nothing
  int64_t rowGroup = 1;        // neighbouring rows that lie evenly even then: tiles hold whole groups
  Dim depth, lhsBatchStride, lhsStart;

  /// Whether the windows of these rows see all their taps along the row.
  bool isInside(int64_t from, int64_t rows);
  /// The rows of a tile from `from` on for which this tap lies inside lhs.
  Rows rowsSeeing(int64_t tap, int64_t from, int64_t rows);
  /// Taps [first, end), and the rows of a tile that see all of them.
  struct Taps {
    int64_t first, end;
    Rows seeing;
  };
  /// The taps along a row that any row of a tile from `from` on sees, in order: many that the same rows see together,
  /// others one by one.
  SmallVector<Taps> tapsSeen(int64_t taps, int64_t from, int64_t rows);
  /// Steps of the innermost loop that are written out for tiles at the ends of a row. Each tap of a wide window has
  /// code of its own there, which is kept short.
  int64_t unrolledAtEnds();

  /// Whether the sum is so deep that it goes by blocks of the outermost taps: a block's part of the panel stays in
  /// cache while all rows of a task pass it. This changes no bits: the order of the sum stays.
  bool isDeepOverWindows();

  /// How far a row lies behind row 0 of the current outer position, in elements of lhs.
  Value rowOffset(KernelBuilder &k, Value row) const;
  /// The same for row r of a tile behind its first one, `row`, where rows are gathered. Those of a group share a
  /// register for addresses. `before` has the offsets of the rows before.
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
