// Operands of attention, or of its gradient, on a GPU: sizes, positions of elements in query, key and value, and
// masking of scores.
#pragma once
#include "codegen/emit/element/Heads.h"
#include "codegen/emit/element/PointEmitter.h"
#include "codegen/scalar/base/Scalar.h"

namespace burin::codegen {

class AttentionOperands {
public:
  AttentionOperands(ElementEmitter &, ir::ScaledDotProductAttentionOp);
  AttentionOperands(ElementEmitter &, ir::AttentionGradientOp);

  /// Sets the head; `head` is its row-major number in the leading dimensions.
  void goToHead(Value head);
  /// Position of element [row, 0] of the current head.
  Value rowStart(const StridedMemory &, Value row);
  /// Factor of the scores.
  Value scale();
  /// Applies mask and causality to the scaled scores of a row and `lanes` adjacent keys; -inf where the row may not see
  /// a key.
  Value masked(Value score, Value row, Value firstKey, int64_t lanes);
  /// The element of the mask for a row and a key of the current head, which exist.
  Value maskAt(Value row, Value keyIndex);
  /// Adds an element of a float mask to a scaled score, or makes it -inf where one of a bool mask is false, and where
  /// `sees` is false. `element` and `sees` may be null.
  Value applyMask(Value score, Value element, Value sees);
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
  Shape shape;             // [..., L, V] of the attention's result, or [..., L, E] of the query for its gradient
  size_t leading;          // number of leading dimensions: heads
  Dim heads = 1, rows, width, keys, depth;
  StridedMemory query, key, value;
  SmallVector<Index> at; // an index per dimension of `shape`

private:
  template <class Op> AttentionOperands(ElementEmitter &, Op, Shape shape);
  SmallVector<Index> maskPlace(Value row, Value firstKey, int64_t lanes);
};

/// The larger of two scores, the other one if one is NaN. A NaN that is dropped here still makes the sum of weights
/// NaN, through exp(x - largest).
Value largerOf(KernelBuilder &, Value x, Value y);

} // namespace burin::codegen
