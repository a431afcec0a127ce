// Partial sums of a chunk of columns, in scratch memory, while a deep contraction is computed by blocks of its depth.
#pragma once
#include "codegen/emit/KernelBuilder.h"

namespace burin::codegen {

class KeptSums {
public:
  /// `width` sums per row.
  KeptSums(KernelBuilder &k, DType type, int64_t width)
      : k(k), memory{k.scratch, type, {}}, width(width), lanes(k.target.lanes(byteWidth(type))) {}
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
