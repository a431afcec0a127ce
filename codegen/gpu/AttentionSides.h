// An attention on a GPU: its sizes, where the elements of query, key and value lie, and what becomes of a score.
#pragma once
#include "codegen/emit/PointEmitter.h"
#include "codegen/scalar/Scalar.h"

namespace burin::codegen {

class AttentionSides {
public:
  AttentionSides(ElementEmitter &, ir::ScaledDotProductAttentionOp);

  /// Goes to a head, whose number is the row-major position in the leading dimensions.
  void goToHead(Value head);
  /// The position of element [row, 0] of the head.
  Value rowStart(const StridedMemory &, Value row);
  /// What scores are multiplied with.
  Value scale();
  /// Neighbouring scores of a row, which have been scaled, with the mask; -inf where the row does not see the key.
  Value masked(Value score, Value row, Value key, int64_t lanes);
  /// Keys that rows before `end` may see.
  Value keysBefore(Value end);
  Value number(double c) { return mlir::arith::ConstantOp::create(k.b, k.loc, k.b.getF32FloatAttr(float(c))); }
  Scalar scalar(Value v) { return Scalar(k.b, k.loc, v, DType::f32); }
  Value isBelow(Value x, Value y) { return k.compare(mlir::arith::CmpIPredicate::slt, x, y); }

  ElementEmitter &e;
  KernelBuilder &k;
  ir::ScaledDotProductAttentionOp op;
  DType type; // of the result
  Shape shape;
  size_t leading; // dimensions: heads
  Dim heads = 1, rows, width, keys, depth;
  StridedMemory query, key, value;
  SmallVector<Index> at; // in the result
};

/// The larger of two numbers; a NaN may be lost: it makes its own weight NaN, and with it the sum.
Value largerOf(KernelBuilder &, Value x, Value y);

} // namespace burin::codegen
