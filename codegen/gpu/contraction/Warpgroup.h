// Instructions of warpgroups, four warps that multiply matrices in shared memory together (compute capability 9.0a),
// and barriers in shared memory, which also wait for copies.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

inline constexpr int64_t kWarpgroup = 128; // threads

/// Barriers in shared memory, of 8 bytes each. A phase of one ends when as many threads have arrived as were announced,
/// and the next one begins. The first phase has parity 0, the second one 1, and so on by turns.
struct PhaseBarriers {
  Value pointer;
  static constexpr int64_t kBytes = 8;

  /// By one thread, before a barrier of the block.
  void init(KernelBuilder &, int64_t barrier, Value arrivals) const;
  void init(KernelBuilder &k, int64_t barrier, int64_t arrivals) const { init(k, barrier, k.constant(arrivals)); }
  void arrive(KernelBuilder &, Value barrier) const;
  /// Arrives; the phase also lasts until bulk copies have brought so many further bytes.
  void arriveExpecting(KernelBuilder &, Value barrier, int64_t bytes) const;
  /// Starts a bulk copy by a tensor map (TMA): of the box at these coordinates (i64) to shared memory, from a multiple
  /// of 1024 bytes on. The barrier counts its bytes when they are there.
  void copyBox(KernelBuilder &, Value barrier, Value to, Value map, ArrayRef<Value> coordinates) const;
  /// This thread arrives when all asynchronous copies have that it has started so far.
  void arriveWithCopies(KernelBuilder &, Value barrier) const;
  /// Waits for the end of the current phase if it has this parity (i32); of the other parity the last one has ended.
  void wait(KernelBuilder &, Value barrier, Value parity) const;

private:
  Value at(KernelBuilder &, Value barrier) const;
};

/// Barriers of slices that some threads write to shared memory and others read: slice i lies in stage i % stages.
struct SliceBarriers {
  PhaseBarriers isThere, isRead; // per stage
  int64_t stages;

  static int64_t bytes(int64_t stages) { return 2 * stages * PhaseBarriers::kBytes; }
  static SliceBarriers at(KernelBuilder &, Value pointer, int64_t stages);
  /// By one thread, before a barrier of the block. Counts of the arrivals per slice.
  void init(KernelBuilder &, Value writing, int64_t reading) const;
  void init(KernelBuilder &k, int64_t writing, int64_t reading) const { init(k, k.constant(writing), reading); }
  Value stageOf(KernelBuilder &, Value slice) const;
  /// Waits until the slice has been written.
  void waitUntilThere(KernelBuilder &, Value slice) const;
  /// Waits until the slice that was in the stage of this one has been read.
  void waitUntilFree(KernelBuilder &, Value slice) const;

private:
  Value parityOf(KernelBuilder &, Value slice, int64_t phasesLater) const;
};

/// A tile in shared memory: rows of 128 bytes, in pieces of 16, which are permuted within their row: the 128-byte
/// swizzle of wgmma and of bulk copies.
struct SwizzledRows {
  static constexpr int64_t kRow = 64, kPiece = 8, kPieces = kRow / kPiece; // elements of 16 bits
  /// Position of the first element of a piece.
  static Value pieceAt(KernelBuilder &, Value row, Value piece, int64_t elementsOfPiece = kPiece);
};

/// The descriptor by which wgmma addresses a matrix in shared memory, an i64: shared rows of 64 bytes in the order of
/// SwizzledTile, or of 128 in that of SwizzledRows. Eight shared rows are a group; `groupBytes` lie between one and the
/// next, `panelBytes` between the columns of a shared row and the next ones. The address is a multiple of eight shared
/// rows. It can be moved on by adding sixteenths of bytes.
Value matrixDescriptor(KernelBuilder &, Value pointer, int64_t panelBytes, int64_t groupBytes, int64_t rowBytes = 64);

/// What the rows of the right side in shared memory are.
enum class RightRows { Steps, Columns };
/// Element types of both sides: 16-bit floats of one type, 8-bit floats, or i8 and u8. Rows of the right side are
/// columns if it is not of 16-bit floats.
struct ProductTypes {
  DType left, right;
  ProductTypes(DType both) : left(both), right(both) {}
  ProductTypes(DType left, DType right) : left(left), right(right) {}
};
/// Bytes of the steps that a product adds: 16 steps of 16 bits, or 32 bytes.
inline constexpr int64_t kProductBytes = 32;
/// sums + left * right of a warpgroup: 64 rows by twice as many columns as there are sums. Sums are f32, or i32 of
/// integers, which wrap. Of 8-bit floats the sums have 14 bits: every product is cut to that precision of the largest
/// one. The left side is a descriptor, whose rows in memory are rows, or each warp's 16 rows as four registers of a
/// left operand of mma.m16n8k16. The sums are there after finishProducts().
SmallVector<Value> multiplyMatrices(KernelBuilder &, ProductTypes, ArrayRef<Value> left, Value right, RightRows,
                                    ArrayRef<Value> sums);
/// The same without earlier sums; `count` sums.
SmallVector<Value> multiplyMatrices(KernelBuilder &, ProductTypes, ArrayRef<Value> left, Value right, RightRows,
                                    int64_t count);
/// Orders products behind what the thread has done with the registers of their sums.
void beginProducts(KernelBuilder &);
/// The products since the last time form a group.
void commitProducts(KernelBuilder &);
/// Waits until at most so many of the last groups still read shared memory.
void waitForProducts(KernelBuilder &, int64_t groups);
/// Waits for all groups but the last ones; returns the sums of those that are waited for.
SmallVector<Value> finishProducts(KernelBuilder &, ArrayRef<Value> sums, int64_t groups = 0);
/// Writes sums of a warp, 16 rows by half as many columns as a thread has sums, to rows of `pitch` elements. Of every
/// eight columns a lane has two adjacent elements of a row, and two of the row that is 8 rows further (the layout of
/// wgmma's D registers in the PTX ISA).
void storeSums(KernelBuilder &, const Memory &, int64_t pitch, Value lane, ArrayRef<Value> sums);
/// Products see in shared memory what this thread sees there.
void showToProducts(KernelBuilder &);

/// Sets how many registers each thread of this warpgroup may have from here on, a multiple of 8. More are there when
/// other warpgroups of the block have left them.
void takeRegisters(KernelBuilder &, int64_t count);
void leaveRegisters(KernelBuilder &, int64_t count);

} // namespace burin::codegen
