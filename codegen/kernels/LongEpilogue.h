// Long epilogues: their code is emitted once, in a loop over sums in memory, instead of once per accumulator.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

/// The number of ops that `emit` appends.
int64_t opsOf(KernelBuilder &, llvm::function_ref<void()> emit);
/// Memory on the stack, which a kernel has once, however often a loop passes here.
Value stackMemory(KernelBuilder &, int64_t bytes);

} // namespace burin::codegen
