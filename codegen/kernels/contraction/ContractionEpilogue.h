// What a contraction kernel does with finished sums: the ops fused behind the product, and the stores.
#pragma once
#include "codegen/emit/PointEmitter.h"
#include "codegen/kernels/contraction/ContractionLoopNest.h"

namespace burin::codegen {

class ContractionEpilogue {
public:
  /// Sums of `sumType`, of the contraction in `body` that `nest` goes over; `results[i]` is where the i-th yielded
  /// value goes.
  ContractionEpilogue(ElementEmitter &e, const ContractionLoopNest &nest, DType sumType, mlir::Block &body,
                      const passes::IterationSpace &space, ArrayRef<Value> results);

  /// Neighbouring rows of a tile.
  struct Rows {
    Value first;
    int64_t count;
    Value batch;
    Value end;             // those from there on are not there; null: all are
    int64_t sure;          // of them, from the first on, that are there even then
    ArrayRef<Value> outer; // positions in the outer dimensions
  };
  /// `sums` has `vectors` vectors of columns from `column` on for each row. Columns from `bound` on are not stored;
  /// `allThere` says that there are none.
  void finish(const Rows &rows, Value column, int64_t vectors, const Dim &bound, bool allThere, ArrayRef<Value> sums);

private:
  void finishRow(const Rows &rows, int64_t row, Value column, int64_t vectors, const Dim &bound, bool partial,
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
  Shape shape; // of the contraction's result
};

} // namespace burin::codegen
