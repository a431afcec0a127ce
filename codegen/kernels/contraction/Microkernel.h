// The register tile of products: sums of some rows of the left side times some vectors of columns of the right side,
// all held in registers.
#pragma once
#include "codegen/emit/KernelBuilder.h"

namespace burin::codegen {

constexpr int64_t kUnrolledSteps = 4; // of the sum, that are written out in the loop over them

class Microkernel {
public:
  /// A vector of columns of the right side at a step of the sum, in the type of the sums.
  using Right = llvm::function_ref<Value(int64_t vector, Value step)>;
  /// Called before a step, which is the `ahead`th of those written out together.
  using Fetch = llvm::function_ref<void(int64_t ahead, Value step)>;
  using Rows = std::pair<int64_t, int64_t>; // of the tile, [first, second)

  /// Each row begins in `left` so many elements behind where the first one does, and its steps lie `stride` apart.
  Microkernel(KernelBuilder &k, Memory left, SmallVector<Value> rows, Dim stride, DType sumType, int64_t vectors,
              Right right, Fetch fetch = {});

  /// One per row and vector, row by row.
  SmallVector<Value> zeros();
  /// The sums of `seeing` with the products of `count` steps from `step` on, where the first row is at `leftAt`. Each
  /// sum takes them one after the other: a row's result does not depend on the tile that it is in.
  SmallVector<Value> add(Value leftAt, Value step, Value count, ValueRange sums, Rows seeing, int64_t unrolled);
  SmallVector<Value> add(Value leftAt, Value step, Value count, ValueRange sums) {
    return add(leftAt, step, count, sums, {0, int64_t(rows.size())}, kUnrolledSteps);
  }

private:
  SmallVector<Value> addSome(Value leftAt, Value step, int64_t count, ValueRange sums, Rows seeing);
  SmallVector<Value> addStep(ArrayRef<Memory> names, int64_t ahead, Value step, ValueRange sums, Rows seeing);
  SmallVector<Memory> namesFrom(Value leftAt);
  size_t loadsOf(int64_t row, size_t names) const;

  KernelBuilder &k;
  Memory left;
  SmallVector<Value> rows;
  Dim stride;
  DType sumType;
  int64_t vectors, lanes;
  Right right;
  Fetch fetch;
};

} // namespace burin::codegen
