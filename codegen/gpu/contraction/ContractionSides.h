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
  /// The same for step `from` + `at` of a slice that begins at `from` and has `slice` steps: if channels are a multiple
  /// of these, all threads compute one tap.
  std::pair<Value, Value> leftPosition(const Row &, Value from, Value at, int64_t slice);
  /// The position in rhs of the element at column + at, and whether it exists. `column` is the first one of a panel;
  /// columns of a panel beyond the last one exist, and are zeros.
  std::pair<Value, Value> rightPosition(Value batch, Value column, Value at, Value step);
  /// Whether both operands can be copied in pieces of 16 bytes, `piece` elements: channels are contiguous, and lines
  /// start at multiples of 16 bytes. Null: never.
  Value copiesPieces(int64_t piece);
  /// The position in the result.
  SmallVector<Index> placeOf(Value batch, Value row, Value column);
  Value isBelow(Value x, Value y) { return k.compare(mlir::arith::CmpIPredicate::slt, x, y); }
  Value both(Value x, Value y) { return mlir::arith::AndIOp::create(k.b, k.loc, x, y); }

  KernelBuilder &k;
  ir::ContractOp op;
  StridedMemory left;
  Memory rhs;
  std::optional<Memory> tail;
  DType type, sumType; // of the result; of the accumulators
  int64_t panelWidth;  // columns
  bool hasColumns;     // rhs has panels of one column, [batch…, N, K, 1], of bytes
  bool isPlain;        // rhs is a matrix [batch…, 1, K, N], not packed in panels
  Shape lhsShape, shape;
  size_t spatial;            // number of spatial dimensions
  Dim columns, panelColumns; // all columns; those in panels
  Dim rows = 1, depth, batches = 1;
  bool isCut = false; // windows reach into padding

private:
  bool isCutAlong(size_t d);
  bool hasTaps();
};

} // namespace burin::codegen
