// Primitives of the threads of a block: indices, barriers, shuffles, shared memory, alignment of operands.
#pragma once
#include "codegen/emit/element/ElementEmitter.h"

namespace burin::codegen {

inline constexpr int64_t kWarp = 32;

/// Index of this thread in its block.
Value threadIndex(KernelBuilder &);
/// Number of blocks of the launch.
Value blockCount(KernelBuilder &);
/// Barrier of all threads of the warp; makes their earlier writes visible to each other.
void warpBarrier(KernelBuilder &);
/// Barrier of all threads of the block; makes their earlier writes visible to each other.
void barrier(KernelBuilder &);
/// The scalar of the thread `distance` lanes higher in the warp; at the end of the warp the thread's own.
Value shuffleDown(KernelBuilder &, Value, int64_t distance);
/// The scalar of the thread `distance` lanes lower in the warp; at the start of the warp the thread's own.
Value shuffleUp(KernelBuilder &, Value, int64_t distance);
/// The scalar of the thread whose lane is this lane xor `mask`, which is equal in all threads.
Value shuffleAcross(KernelBuilder &, Value, int64_t mask);
Value shuffleAcross(KernelBuilder &, Value, Value mask);
/// The scalar of the first thread of the warp.
Value shuffleFirst(KernelBuilder &, Value);
/// Allocates `count` elements of shared memory, not initialised; the type must have whole bytes.
Value sharedArray(KernelBuilder &, Type element, int64_t count);
/// Shared memory of GpuLaunch::sharedBytes, beside the arrays, aligned to 1024 bytes and not initialised.
Value sharedPool(KernelBuilder &);
/// Tells LLVM that an address is a multiple of `bytes` from here on.
void assumeAligned(KernelBuilder &, Value pointer, int64_t bytes);
/// An i1 of the running kernel: whether all operands and results are aligned to 16 bytes, the size of a thread's loads
/// and stores.
Value operandsAligned(ElementEmitter &, mlir::Block &body, ArrayRef<Value> results);
/// Tells LLVM that all of them are, in the code from here on: for a branch under operandsAligned().
void assumeOperandsAligned(ElementEmitter &, mlir::Block &body, ArrayRef<Value> results);

} // namespace burin::codegen
