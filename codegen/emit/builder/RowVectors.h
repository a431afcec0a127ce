// Loops over a row by vectors: whole ones, then what is left of the row. All kernels that walk along a dimension take
// their vectors from here, whether the size of the dimension is a number or a symbol.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

/// The positions [from, to) of a dimension, or of a piece [begin, end) of it; from <= to. Blocks of tasks are multiples
/// of `lanes`: `from` is `begin` or a multiple of `lanes`, and so is `to`, or `end`.
struct RowRange {
  Value from, to;
  Dim begin, end;
  int64_t lanes;       // of whole vectors
  DType stored;        // the narrowest type that visits store under the mask
  bool mayRepeat;      // a position may be visited again: vectors may overlap
  bool varies = false; // the last vector may have fewer lanes, a half or a quarter: several copies of the code
};

using VisitVector = llvm::function_ref<void(Value begin, int64_t lanes, Value mask)>;

/// Visits the range in vectors, in ascending order but for the last one. The elements after the last whole vector are
/// visited without a mask if the range has enough elements for a vector that ends with it, or if they fill one with
/// fewer lanes; else under a mask.
void eachVector(KernelBuilder &k, const RowRange &range, VisitVector visit);

} // namespace burin::codegen
