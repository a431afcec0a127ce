// The nonzero elements of a row as a list. A product of one row skips the zeros, and with them the rows of the matrix
// that they meet, which are not read.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

class CompressedRow {
public:
  /// For `size` elements of `row` from `start` on, converted to `type`. The list is in scratch memory.
  CompressedRow(KernelBuilder &k, Memory row, Value start, Dim size, DType type);

  static Dim scratchBytes(const Dim &size, DType type);
  /// Whether the row has enough zeros for the list to pay off.
  Value paysOff();
  /// Builds the list. Beyond its end, prefetches address the row again, `period` elements further.
  void list(Value period);

  Value count;   // number of elements in the list
  Memory values; // the elements
  /// Position in the row of list element `number`, and of the one to prefetch meanwhile.
  Value place(Value number);
  Value placeAhead(Value number);

private:
  KernelBuilder &k;
  Memory row, places;
  Value start;
  Dim size;
};

} // namespace burin::codegen
