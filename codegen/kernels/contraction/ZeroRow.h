// Padding at the ends of a row whose size is a symbol: rows of a tile whose windows reach beyond the row read zeros, a
// tap at a time. (With a static size, tiles at the ends of a row skip the taps outside, see ContractionTiles.h.)
#pragma once
#include "codegen/kernels/contraction/ContractionSchedule.h"

namespace burin::codegen {

/// The elements of one position of the left side, all zero, in scratch memory.
class ZeroRow {
public:
  static bool isNeeded(const ContractionSchedule &s) { return s.along.cut && !s.along.size.isStatic(); }
  static Dim scratchBytes(const ContractionSchedule &s) { return elements(s) * Dim(byteWidth(s.left.memory.dtype)); }
  /// To be called once, at the start of the kernel: writes the zeros.
  ZeroRow(KernelBuilder &k, ContractionSchedule &s);

  /// The offsets of a tile's rows at a tap, from element `lhsAt` of lhs: those of the zeros for rows whose tap lies
  /// outside, else the given ones. `rows` count from `row`. The first `sureRows` rows are 0, 1, …, and the others at
  /// least the last one of these. Offsets of rows whose windows never reach outside stay as they are.
  SmallVector<Value> redirected(SmallVector<Value> offsets, ArrayRef<Value> rows, Value lhsAt, Value tap, Value row,
                                int64_t sureRows);

private:
  static Dim elements(const ContractionSchedule &s);

  KernelBuilder &k;
  ContractionSchedule &s;
};

} // namespace burin::codegen
