// Operands of attention, or of its gradient, on a GPU: sizes, positions of elements in query, key and value, and
// masking of scores.
#pragma once
#include "codegen/emit/element/Heads.h"
#include "codegen/emit/element/PointEmitter.h"
#include "codegen/scalar/base/Scalar.h"

namespace burin::codegen {

class AttentionSides {
public:
  AttentionSides(ElementEmitter &, ir::ScaledDotProductAttentionOp);
  AttentionSides(ElementEmitter &, ir::AttentionGradientOp);

  /// Sets the head; `head` is its row-major number in the leading dimensions.
  void goToHead(Value head);
  /// Position of element [row, 0] of the current head.
  Value rowStart(const StridedMemory &, Value row);
  /// Factor of the scores.
  Value scale();
  /// Applies the mask to `lanes` adjacent scaled scores of a row; -inf where the row may not see the key.
  Value masked(Value score, Value row, Value key, int64_t lanes);
  /// The element of the mask for a row and a key of the current head, which exist.
  Value maskAt(Value row, Value key);
  /// Scaled scores with elements of the mask; -inf where `sees` is false. Both may be null.
  Value shown(Value score, Value element, Value sees);
  /// Upper bound of the keys that rows before `end` may see.
  Value keysBefore(Value end);
  Value number(double c) { return mlir::arith::ConstantOp::create(k.b, k.loc, k.b.getF32FloatAttr(float(c))); }
  Scalar scalar(Value v) { return Scalar(k.b, k.loc, v, DType::f32); }
  Value isBelow(Value x, Value y) { return k.compare(mlir::arith::CmpIPredicate::slt, x, y); }

  ElementEmitter &e;
  KernelBuilder &k;
  const Value result; // of the op
  const Value mask;   // may be null
  const bool isCausal;
  const double givenScale; // 0: 1 / sqrt(depth)
  DType type;              // of the result
  Shape shape;
  size_t leading; // number of leading dimensions: heads
  Dim heads = 1, rows, width, keys, depth;
  StridedMemory query, key, value;
  SmallVector<Index> at; // position in the result

private:
  /// `shape`: that of the attention's result.
  template <class Op> AttentionSides(ElementEmitter &, Op, Shape shape);
  SmallVector<Index> maskPlace(Value row, Value key, int64_t lanes);
};

/// The larger of two numbers. It may drop a NaN, which makes its own weight, and so the sum, NaN.
Value largerOf(KernelBuilder &, Value x, Value y);

} // namespace burin::codegen
