// Sums of a contraction in memory: partial ones of a chunk of columns, while a deep contraction is computed by blocks
// of its depth, and finished ones of a tile, while a loop over its rows computes the epilogue.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

class KeptSums {
public:
  /// `width` sums per row.
  KeptSums(KernelBuilder &k, DType type, int64_t width) : KeptSums(k, k.scratch, type, width) {}
  KeptSums(KernelBuilder &k, Value pointer, DType type, int64_t width)
      : k(k), memory{pointer, type, {}}, width(width), lanes(k.target.lanes(byteWidth(type))) {}
  static Dim scratchBytes(const Dim &rows, DType type, int64_t width) { return rows * Dim(width * byteWidth(type)); }

  void clear(Value rows);
  /// Loads the sums of `rows` rows from `row` on, `vectors` per row. Row r is row `base` + r of scratch memory.
  SmallVector<Value> load(Value base, Value row, int64_t rows, int64_t vectors);
  void store(Value base, Value row, int64_t vectors, ArrayRef<Value> sums);

private:
  Index position(Value base, Value row, int64_t number, int64_t vector);

  KernelBuilder &k;
  Memory memory;
  int64_t width, lanes;
};

} // namespace burin::codegen
