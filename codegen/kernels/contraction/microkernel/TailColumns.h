// Horizontal sums of products: rows of the left operand times columns that are stored as rows. Used for the few columns
// beyond the last whole vector of a contraction, for which vectors of columns would waste most lanes.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

class TailColumns {
public:
  /// A segment has `length` consecutive products. Segments are consecutive in each of the `columns` columns of `right`,
  /// which have `depth` elements, and `leftStride` elements apart per product in `left`.
  TailColumns(KernelBuilder &k, Memory left, Dim leftStride, Memory right, DType sumType, int64_t columns, Dim depth,
              int64_t length);

  /// Rows to compute together.
  int64_t rows() const;
  SmallVector<Value> zeros(int64_t rows);
  /// Adds a segment: from element `at` of the left operand on for the first row, `rowStride` further for each next row,
  /// and from element `k` on of each column.
  SmallVector<Value> add(Value at, Value k, Value rowStride, ValueRange sums);
  /// One vector per row with its sums in the first lanes. The order of additions is equal on all targets.
  SmallVector<Value> finish(ArrayRef<Value> sums);

private:
  SmallVector<Value> addGroup(Value at, Value k, Value rowStride, ValueRange sums, int64_t count);
  Value lanesAt(const Memory &, Value at, Dim stride, int64_t count);
  Value joined(ArrayRef<Value> sums);

  KernelBuilder &k;
  Memory left, right;
  Dim leftStride, depth;
  DType sumType;
  int64_t columns, length;
  int64_t lanes, group, vectors; // of a vector; products of a group; vectors of a group
};

} // namespace burin::codegen
