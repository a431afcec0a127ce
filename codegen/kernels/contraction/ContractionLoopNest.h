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
  };
  using Rows = Microkernel::Rows;

  /// Neighbours are merged where the walk is linear.
  ContractionLoopNest(ir::ContractOp op, StridedMemory left);

  ir::ContractOp op;
  StridedMemory left;
  SmallVector<Step> sum, outer;
  SmallVector<Step> sumAtEnds; // the same sum, every dimension on its own
  Step along;                  // the dimension that tiles run along
  Dim depth, lhsBatchStride, lhsStart;

  /// Whether the windows of these rows see all their taps along the row.
  bool isInside(int64_t from, int64_t rows);
  /// The rows of a tile from `from` on for which this tap lies inside lhs.
  Rows rowsSeeing(int64_t tap, int64_t from, int64_t rows);

private:
  void mergeRows();
  void mergeSum();
};

} // namespace burin::codegen
