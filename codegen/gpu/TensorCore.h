// Instructions of warps that multiply small matrices, and of threads that copy past registers (compute capability 8.0).
#pragma once
#include "codegen/emit/KernelBuilder.h"

namespace burin::codegen {

/// A tile of 16-bit elements in shared memory: rows of 32, in pieces of 8 (16 bytes). The pieces of a row lie in an
/// order that depends on the row, so that eight rows' pieces of one column lie in different banks.
struct SwizzledTile {
  static constexpr int64_t kRow = 32, kPiece = 8, kPieces = kRow / kPiece; // elements
  Value pointer;
  DType dtype;

  static SwizzledTile make(KernelBuilder &, DType, int64_t rows);
  Memory memory() const { return {pointer, dtype, {}}; }
  /// The position of the first element of a piece.
  static Value pieceAt(KernelBuilder &, Value row, Value piece);
  /// Four matrices of 8 by 8 as fragments of a warp: `row` is the one whose piece this lane points to, its lanes in
  /// order; every eight lanes one matrix. `transposed` turns each matrix.
  SmallVector<Value> load(KernelBuilder &, Value row, Value piece, bool transposed) const;
};

/// a * b + c of a warp, 16 x 8 f32 from 16 x 16 and 16 x 8 elements: fragments of 4, 2 and 4 registers. `a` and `b` are
/// i32, as SwizzledTile::load gives them.
SmallVector<Value> multiplyMatrices(KernelBuilder &, DType, ArrayRef<Value> a, ArrayRef<Value> b, ArrayRef<Value> c);

/// Starts to copy 16 bytes of global memory to shared memory; zeros where `isThere` fails, without reading. Both
/// addresses are multiples of 16.
void copyAsync(KernelBuilder &, Value shared, Value global, Value isThere);
/// The copies that this thread has started since the last time form a group.
void commitCopies(KernelBuilder &);
/// Waits until at most so many of this thread's last groups are on their way. Others see the copies after a barrier.
void waitForCopies(KernelBuilder &, int64_t groups);

/// Two f32 as 16-bit floats in an i32, the first one in the lower half.
Value packPair(KernelBuilder &, DType, Value low, Value high);

/// 2^x of an f32, within 2 units in the last place; subnormal results are 0.
Value exp2Approximately(KernelBuilder &, Value);

} // namespace burin::codegen
