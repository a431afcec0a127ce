// Tensor-core instructions of warps, and asynchronous copies of threads (compute capability 8.0).
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"
#include <array>

namespace burin::codegen {

/// A tile in shared memory: rows of 64 bytes, in pieces of 16. Pieces are permuted within their row, depending on its
/// index (see pieceAt), so that ldmatrix reads one column of eight rows without bank conflicts.
struct SwizzledTile {
  static constexpr int64_t kRow = 32, kPiece = 8, kPieces = kRow / kPiece; // elements of 16 bits
  Value pointer;
  DType dtype;

  static SwizzledTile make(KernelBuilder &, DType, int64_t rows);
  Memory memory() const { return {pointer, dtype, {}}; }
  /// Position of the first element of a piece.
  static Value pieceAt(KernelBuilder &, Value row, Value piece, int64_t elementsOfPiece = kPiece);
  /// Loads four matrices of 8 rows of a piece as fragments of a warp (ldmatrix). `row` and `piece` are those that this
  /// lane points to; every eight lanes address one matrix. `transposed` transposes each matrix.
  SmallVector<Value> load(KernelBuilder &, Value row, Value piece, bool transposed) const;
};

/// a * b + c in a warp (mma.m16n8k16): 16 × 8 f32 from 16 × 16 and 16 × 8 elements, in fragments of 4, 2 and 4
/// registers. `a` and `b` are i32, as returned by SwizzledTile::load. Element i of `c` in lane l is at row
/// l / 4 + 8 * (i / 2), column l % 4 * 2 + i % 2.
SmallVector<Value> multiplyMatrices(KernelBuilder &, DType, ArrayRef<Value> a, ArrayRef<Value> b, ArrayRef<Value> c);

/// A tile of f32 in shared memory, as the right operand of multiplyTf32: shared rows are steps, of 32 columns, in
/// pieces of 4 (16 bytes). Pieces are permuted within their shared row, so that threads read four steps of eight
/// columns without bank conflicts.
struct SwizzledSteps {
  static constexpr int64_t kSharedRow = 32, kPiece = 4, kPieces = kSharedRow / kPiece; // elements
  /// Position of the first element of a piece.
  static Value pieceAt(KernelBuilder &, Value sharedRow, Value piece);
};
/// a * b + c in a warp (mma.m16n8k32): 16 × 8 i32, which wrap, from 16 × 32 and 32 × 8 bytes, i8 or u8, in fragments of
/// 4, 2 and 4 registers of four steps. Register i of `a` in lane l is at row l / 4 + 8 * (i % 2), from step l % 4 * 4 +
/// 16 * (i / 2) on; register i of `b` is from step l % 4 * 4 + 16 * i on, at column l / 4. `c` as above.
SmallVector<Value> multiplyBytes(KernelBuilder &, DType left, DType right, ArrayRef<Value> a, ArrayRef<Value> b,
                                 ArrayRef<Value> c);

/// Four bytes, 8-bit floats of one type, as two registers of two f16, in order. Those of f8e4m3fn are divided by 256,
/// exactly.
std::array<Value, 2> widenFloat8(KernelBuilder &, DType, Value word);
inline constexpr double kFloat8Factor = 256;

/// Rounds an f32 to tf32: to the nearest, ties away from zero; an i32.
Value roundToTf32(KernelBuilder &, Value);
/// a * b + c in a warp (mma.m16n8k8): 16 × 8 f32 from 16 × 8 and 8 × 8 elements of tf32, in fragments of 4, 2 and 4
/// registers. Element i of `a` in lane l is at row l / 4 + 8 * (i % 2), step l % 4 + 4 * (i / 2); element i of `b` is
/// at step l % 4 + 4 * i, column l / 4. `c` as above.
SmallVector<Value> multiplyTf32(KernelBuilder &, ArrayRef<Value> a, ArrayRef<Value> b, ArrayRef<Value> c);

/// Two f32 as sums of two terms of bf16 each: the f32 rounded to the nearest, and what is left, rounded likewise. An
/// i32 holds the terms of both numbers, those of `first` in its lower half. The sum differs from an f32 x by at most
/// 2^-17 |x|, or 2^-134; a number that is rounded to infinity, an infinity and NaN have terms of which one is NaN.
struct Bf16Terms {
  Value high, low;
};
Bf16Terms splitPair(KernelBuilder &, Value first, Value second);

/// Starts an asynchronous copy of 16 bytes from global to shared memory; writes zeros, without a read, if `isThere` is
/// false. Both addresses are multiples of 16.
void copyAsync(KernelBuilder &, Value shared, Value global, Value isThere);
/// Closes a group with the copies that this thread has started since the last group.
void commitCopies(KernelBuilder &);
/// Waits until at most `groups` of this thread's groups are incomplete. Other threads see the copies after a barrier.
void waitForCopies(KernelBuilder &, int64_t groups);

/// Rounds two f32 to 16-bit floats and packs them into an i32, `low` in the lower half.
Value packPair(KernelBuilder &, DType, Value low, Value high);

/// 2^x for f32 (ex2.approx.ftz), within 2 units in the last place; subnormal results are flushed to 0.
Value exp2Approximately(KernelBuilder &, Value);

} // namespace burin::codegen
