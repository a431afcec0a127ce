// The order in which the buffers of a plan are placed in the arena.
#pragma once
#include "ir/dialect/Burin.h"
#include "passes/MemoryLimit.h"
#include "runtime/format/Artifact.h"

namespace burin::codegen {

/// First fit does best when large buffers, or those that live long, come first: takes the order that packs best, and
/// renumbers the slots of the plan. `bytes`: of each buffer.
void orderBuffers(rt::Plan &plan, llvm::ArrayRef<Dim> bytes);

/// Bytes of the arena for buffers that are placed so.
uint64_t arenaBytes(llvm::ArrayRef<passes::BufferRange> buffers);

} // namespace burin::codegen
