// Sums of products along memory: rows of the left side times columns that lie as rows of their own, by lanes. For the
// few columns beyond the last whole vector of a contraction, of which the panels' way would waste most lanes.
#pragma once
#include "codegen/emit/KernelBuilder.h"

namespace burin::codegen {

class TailColumns {
public:
  /// Segments of `length` products follow each other along `columns` columns of `right`, each `depth` elements long,
  /// and lie `leftStride` elements apart in `left`.
  TailColumns(KernelBuilder &k, Memory left, Dim leftStride, Memory right, DType sumType, int64_t columns, Dim depth,
              int64_t length);

  /// Rows to compute at once.
  int64_t rows() const;
  SmallVector<Value> zeros(int64_t rows);
  /// The sums with one more segment: from element `at` of the left side on for the first row, the others `rowStride`
  /// apart, and from element `k` on of each column.
  SmallVector<Value> add(Value at, Value k, Value rowStride, ValueRange sums);
  /// One vector per row with its sums in the first lanes. The order of additions does not depend on the target.
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
  int64_t lanes, group, vectors; // of a vector; products of a group; vectors of it
};

} // namespace burin::codegen
