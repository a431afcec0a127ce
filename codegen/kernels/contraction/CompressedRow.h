// The elements of a row that are not zero, as a list: a product of one row leaves the others out, and with them the
// rows of the matrix that they meet, which stay in memory.
#pragma once
#include "codegen/emit/KernelBuilder.h"

namespace burin::codegen {

class CompressedRow {
public:
  /// Of the `size` elements of `row` from `start` on, as `type`. The list lies in scratch memory.
  CompressedRow(KernelBuilder &k, Memory row, Value start, Dim size, DType type);

  static Dim scratchBytes(const Dim &size, DType type);
  /// Whether there are enough zeros that going by the list pays.
  Value paysOff();
  /// Makes the list. What comes after its end is fetched as if the row began again `period` elements later.
  void list(Value period);

  Value count;   // of the elements listed
  Memory values; // they themselves
  /// Where in the row the element with that number is; of the one that is fetched while it is worked on.
  Value place(Value number);
  Value placeAhead(Value number);

private:
  KernelBuilder &k;
  Memory row, places;
  Value start;
  Dim size;
};

} // namespace burin::codegen
