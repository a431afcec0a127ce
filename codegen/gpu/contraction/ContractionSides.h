// Operands of `burin.contract` on a GPU: sizes, and positions of elements of both operands and of the result.
#pragma once
#include "codegen/emit/element/ElementEmitter.h"

namespace burin::codegen {

class ContractionSides {
public:
  ContractionSides(ElementEmitter &, ir::ContractOp);

  /// A row of the left operand, for all steps of the sum.
  struct Row {
    Value exists;              // i1
    Value start;               // position of the batch in lhs
    SmallVector<Value> begins; // of the window, per spatial dimension; negative in the padding
  };
  Row leftRow(Value batch, Value row);
  /// The position of an element in lhs, and whether it exists: row and step are in range, and the step is not in the
  /// padding.
  std::pair<Value, Value> leftPosition(const Row &row, Value step) { return leftPosition(row, step, {}, 0); }
  /// The same for step `from` + `at` of a slice of `slice` steps that begins at `from`, a step in range. If the
  /// channels are a multiple of `slice`, all steps of a slice belong to one tap (position in the window): the divisions
  /// that find the tap then depend on `from` only, which is the same in all threads.
  std::pair<Value, Value> leftPosition(const Row &, Value from, Value at, int64_t slice);
  /// The position in rhs of the element at column + at, and whether it exists. `column` is the first one of a panel.
  /// Columns that pad the last panel exist, and are zeros; a matrix that is not packed has no such columns.
  std::pair<Value, Value> rightPosition(Value batch, Value column, Value at, Value step);
  /// i1: whether both operands can be copied in pieces of 16 bytes, `piece` elements: channels are contiguous, and
  /// addresses and strides are multiples of 16 bytes. Null if sizes known at compile time rule that out.
  Value copiesPieces(int64_t piece);
  /// Index per dimension of the result; `batch` and `row` are row-major positions.
  SmallVector<Index> placeOf(Value batch, Value row, Value column);
  Value isBelow(Value x, Value y) { return k.compare(mlir::arith::CmpIPredicate::slt, x, y); }
  Value both(Value x, Value y) { return mlir::arith::AndIOp::create(k.b, k.loc, x, y); }

  KernelBuilder &k;
  ir::ContractOp op;
  StridedMemory left;
  Memory rhs;
  std::optional<Memory> tail; // last columns, computed as horizontal sums: rows of K elements
  DType type, sumType;        // of the result; of the accumulators
  int64_t panelWidth;         // columns; kPanelBytes of accumulators
  bool hasColumns;            // rhs has panels of one column, [batch…, N, K, 1], of bytes
  bool isPlain;               // rhs is a matrix [batch…, 1, K, N], not packed in panels
  Shape lhsShape, shape;
  size_t spatial;            // number of spatial dimensions
  Dim columns, panelColumns; // all columns; those in panels
  Dim rows = 1, depth, batches = 1;
  bool isCut = false; // some windows reach into padding

private:
  bool isCutAlong(size_t d);
  bool hasTaps();
};

} // namespace burin::codegen
