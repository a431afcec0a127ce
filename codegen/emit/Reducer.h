// One reduction, step by step: its accumulators and how they are updated, combined and finished.
#pragma once
#include "codegen/emit/KernelBuilder.h"

namespace burin::codegen {

class Reducer {
public:
  Reducer(KernelBuilder &k, mlir::Operation *op);

  mlir::Operation *op;
  /// Values an accumulator consists of: one, or value and position for argmax and argmin.
  size_t size() const { return isArg ? 2 : 1; }
  /// Whether elements may come in any order, and more than once. (Only of zeros of both signs does ReduceMaxNumOp take
  /// the one that came first.)
  bool isIdempotent() const { return !isArg && kind != Kind::Sum && kind != Kind::Product; }
  bool isSumOfF32() const { return kind == Kind::Sum && type == DType::f32; }
  SmallVector<Value> identity(int64_t width);
  /// Takes in `x` (lanes of the operand's type), found at `position`; lanes where `mask` is off are left out.
  SmallVector<Value> step(ArrayRef<Value> accumulator, Value x, const Index &position, Value mask);
  SmallVector<Value> combine(ArrayRef<Value> x, ArrayRef<Value> y);
  /// Combines the lanes of an accumulator in a fixed tree: halves, quarters, …
  SmallVector<Value> acrossLanes(ArrayRef<Value> accumulator);
  /// The result element from an accumulator over `count` elements.
  Value finish(ArrayRef<Value> accumulator, Value count);

private:
  enum class Kind { Sum, Product, Max, Min, Any, All };
  Value apply(Value x, Value y);
  /// The accumulator with one more element.
  Value takeIn(Value accumulator, Value x);
  Value identityElement();

  KernelBuilder &k;
  Kind kind;
  bool isArg = false, squares = false, ignoresNaN = false;
  DType operandType, type; // of the operand, of the accumulator
};

} // namespace burin::codegen
