// One reduction: its accumulators, and how they are updated, combined and finished. 16-bit floats are accumulated in
// f32; an accumulator is a scalar, or a vector of partial results.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

class Reducer {
public:
  Reducer(KernelBuilder &k, mlir::Operation *op);

  mlir::Operation *op;
  /// Number of values of an accumulator: one, or value and position for argmax and argmin.
  size_t size() const { return isArg ? 2 : 1; }
  /// Whether elements may be added in any order and repeatedly, as by vectors that overlap. (For zeros of both signs,
  /// ReduceMaxNumOp keeps the first.)
  bool isIdempotent() const { return !isArg && kind != Kind::Sum && kind != Kind::Product; }
  /// Whether the bits of the result depend on the order of the elements.
  bool dependsOnOrder() const { return isFloat(type) && (kind == Kind::Sum || kind == Kind::Product); }
  bool isSumOfF32() const { return kind == Kind::Sum && type == DType::f32; }
  /// An accumulator of `width` lanes over no elements.
  SmallVector<Value> identity(int64_t width);
  /// Adds `x` (lanes of the operand's type) at `position`; lanes where `mask` is off are ignored.
  SmallVector<Value> step(ArrayRef<Value> accumulator, Value x, const Index &position, Value mask);
  /// Joins two partial results.
  SmallVector<Value> combine(ArrayRef<Value> x, ArrayRef<Value> y);
  /// Combines the lanes of an accumulator in a fixed tree (halves, quarters, …), so that sums have the same bits on
  /// every target.
  SmallVector<Value> acrossLanes(ArrayRef<Value> accumulator);
  /// The result element from an accumulator over `count` elements.
  Value finish(ArrayRef<Value> accumulator, Value count);

private:
  enum class Kind { Sum, Product, Max, Min, Any, All };
  Value apply(Value x, Value y);
  /// Adds one element to a single-value accumulator.
  Value takeIn(Value accumulator, Value x);
  Value identityElement();

  KernelBuilder &k;
  Kind kind;
  bool isArg = false, squares = false, ignoresNaN = false; // argmax or argmin; a sum of squares; the maximum in softmax
  DType operandType, type;                                 // of the operand, of the accumulator
};

} // namespace burin::codegen
