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
  void init(KernelBuilder &, int64_t barrier, int64_t arrivals) const;
  void arrive(KernelBuilder &, Value barrier) const;
  /// This thread arrives when all asynchronous copies have that it has started so far.
  void arriveWithCopies(KernelBuilder &, Value barrier) const;
  /// Waits for the end of the current phase if it has this parity (i32); of the other parity the last one has ended.
  void wait(KernelBuilder &, Value barrier, Value parity) const;

private:
  Value at(KernelBuilder &, Value barrier) const;
};

/// What wgmma knows a matrix in shared memory by, an i64: rows of 64 bytes in the order of SwizzledTile. Eight rows are
/// a group; `groupBytes` lie between one and the next, `panelBytes` between the columns of 64 bytes and the next ones.
/// The address is a multiple of 512. It can be moved on by adding sixteenths of bytes.
Value matrixDescriptor(KernelBuilder &, Value pointer, int64_t panelBytes, int64_t groupBytes);

/// sums + left * right of a warpgroup: 64 rows by twice as many columns as there are sums, 16 steps. Rows of the left
/// side in memory are rows, those of the right side are steps. The sums are there after finishProducts().
SmallVector<Value> multiplyMatrices(KernelBuilder &, DType, Value left, Value right, ArrayRef<Value> sums);
/// Orders products behind what the thread has done with the registers of their sums.
void beginProducts(KernelBuilder &);
/// The products since the last time form a group.
void commitProducts(KernelBuilder &);
/// Waits until at most so many of the last groups still read shared memory.
void waitForProducts(KernelBuilder &, int64_t groups);
/// Waits for all groups.
SmallVector<Value> finishProducts(KernelBuilder &, ArrayRef<Value> sums);
/// Products see in shared memory what this thread sees there.
void showToProducts(KernelBuilder &);

} // namespace burin::codegen
