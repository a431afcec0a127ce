// What the threads of a block have in common: numbers, barriers, shuffles, shared memory.
#pragma once
#include "codegen/emit/KernelBuilder.h"

namespace burin::codegen {

inline constexpr int64_t kWarp = 32;

/// The number of this thread in its block.
Value threadIndex(KernelBuilder &);
/// All threads of the block come here before one goes on, and see what the others have written before.
void barrier(KernelBuilder &);
/// A scalar of the thread `distance` lanes further in the warp; of those beyond its end, the thread's own.
Value shuffleDown(KernelBuilder &, Value, int64_t distance);
/// The same of the thread `distance` lanes before; of those before its begin, the thread's own.
Value shuffleUp(KernelBuilder &, Value, int64_t distance);
/// A scalar of the thread whose number in the warp differs from this one's in the bits of `mask`.
Value shuffleAcross(KernelBuilder &, Value, int64_t mask);
/// The scalar of the warp's first thread.
Value shuffleFirst(KernelBuilder &, Value);
/// Room in the shared memory of the block for so many elements of a type of whole bytes, not initialised.
Value sharedArray(KernelBuilder &, Type element, int64_t count);
/// Tells LLVM that an address is a multiple of so many bytes, from here on.
void assumeAligned(KernelBuilder &, Value pointer, int64_t bytes);

} // namespace burin::codegen
