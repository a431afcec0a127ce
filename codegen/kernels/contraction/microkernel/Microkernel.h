// The microkernel of products: sums of rows of the left operand times vectors of columns of the right operand, all held
// in registers.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

constexpr int64_t kUnrolledSteps = 4; // unroll factor of the loop over steps of the sum

class Microkernel {
public:
  /// Returns vector `vector` of columns of the right operand at a step of the sum, in the type of the sums.
  using Right = llvm::function_ref<Value(int64_t vector, Value step)>;
  /// Called before a step, which is number `ahead` of an unrolled iteration.
  using Fetch = llvm::function_ref<void(int64_t ahead, Value step)>;
  using Rows = std::pair<int64_t, int64_t>; // of the tile, [first, second)

  /// The left operand; with `pairs`, a step takes two elements of bf16 that are as many elements apart.
  struct Left {
    Memory memory;
    SmallVector<Value> rows; // offset of each row from the first one, in elements
    Dim stride;              // distance of consecutive steps
    std::optional<Dim> pairs = {};
    bool isScattered = false; // rows may lie in other memory, at the same distance from `memory`
  };
  Microkernel(KernelBuilder &k, Left left, DType sumType, int64_t vectors, Right right, Fetch fetch = {});

  /// One accumulator per row and vector, row by row.
  SmallVector<Value> zeros();
  /// Adds the products of `count` steps from `step` on to the sums of the rows `seeing`; `leftAt` is the position of
  /// the first row. Each sum adds them in order, so a row's result does not depend on its tile.
  SmallVector<Value> add(Value leftAt, Value step, Value count, ValueRange sums, Rows seeing, int64_t unrolled);
  SmallVector<Value> add(Value leftAt, Value step, Value count, ValueRange sums) {
    return add(leftAt, step, count, sums, {0, int64_t(rows.size())}, kUnrolledSteps);
  }
  /// Adds a step of pairs that has the first element of the left operand alone.
  SmallVector<Value> addSingle(Value leftAt, Value step, ValueRange sums, Rows seeing);

private:
  SmallVector<Value> addSome(Value leftAt, Value step, int64_t count, ValueRange sums, Rows seeing);
  SmallVector<Value> addStep(ArrayRef<Memory> names, int64_t ahead, Value step, ValueRange sums, Rows seeing,
                             bool isSingle = false);
  SmallVector<Value> addHalves(const Memory &, int64_t ahead, ArrayRef<Value> columns, ValueRange sums, Rows seeing,
                               bool isSingle);
  Value leftElement(const Memory &, Value at, bool isSingle);
  Value pairAt(const Memory &, Value at, bool isSingle);
  SmallVector<Memory> namesFrom(Value leftAt);
  size_t loadsOf(int64_t row, size_t names) const;

  KernelBuilder &k;
  Memory left;
  SmallVector<Value> rows;
  Dim stride;
  std::optional<Dim> pairs;
  bool isScattered;
  DType sumType;
  int64_t vectors, lanes;
  Right right;
  Fetch fetch;
};

} // namespace burin::codegen
