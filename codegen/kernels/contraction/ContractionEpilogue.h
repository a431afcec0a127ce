// The epilogue of a contraction kernel: elementwise ops on finished sums, and the stores.
#pragma once
#include "codegen/emit/element/PointEmitter.h"
#include "codegen/kernels/contraction/microkernel/ContractionLoopNest.h"

namespace burin::codegen {

class ContractionEpilogue {
public:
  /// `sumType`: type of the sums; `nest`: the loops of the contraction in `body`; `results[i]`: memory of the i-th
  /// yielded value.
  ContractionEpilogue(ElementEmitter &e, const ContractionLoopNest &nest, DType sumType, mlir::Block &body,
                      const passes::IterationSpace &space, ArrayRef<Value> results);

  /// Adjacent rows of a tile.
  struct Rows {
    Value first;
    int64_t count;
    Value batch;
    Value end;             // rows from here on do not exist; null: all exist
    int64_t sure;          // number of leading rows that exist for certain
    ArrayRef<Value> outer; // positions in the outer dimensions
  };
  /// `sums` has `vectors` vectors of columns from `column` on, per row. Columns from `bound` on are not stored;
  /// `allThere` says that there are none.
  void finish(const Rows &rows, Value column, int64_t vectors, const Dim &bound, bool allThere, ArrayRef<Value> sums);

private:
  void finishRow(const Rows &rows, Value row, Value column, int64_t vectors, const Dim &bound, bool partial,
                 ArrayRef<Value> sums);
  void finishInLoop(const Rows &rows, Value column, int64_t vectors, const Dim &bound, bool partial,
                    ArrayRef<Value> sums);
  void placeRow(Value row, ArrayRef<Value> outer);
  void placeBatch(Value batch);
  void place(size_t resultDim, Index at);

  ElementEmitter &e;
  KernelBuilder &k;
  const ContractionLoopNest &nest;
  ir::ContractOp op;
  PointEmitter p;
  mlir::Block &body;
  ArrayRef<Value> results;
  DType type, sumType;
  int64_t lanes;
  Shape shape;    // of the contraction's result
  Value tileSums; // on the stack: the sums of a tile; null: not used yet
};

} // namespace burin::codegen
