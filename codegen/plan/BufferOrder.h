// The order in which a plan's buffers are placed in the arena.
#pragma once
#include "ir/dialect/Burin.h"
#include "passes/MemoryLimit.h"
#include "runtime/format/Artifact.h"

namespace burin::codegen {

/// First fit packs best if large or long-lived buffers come first. Chooses the order that packs best and renumbers the
/// slots of the plan. `bytes`: size of each buffer.
void orderBuffers(rt::Plan &plan, llvm::ArrayRef<Dim> bytes);

/// Size of the arena for these buffers in the chosen order.
uint64_t arenaBytes(llvm::ArrayRef<passes::BufferRange> buffers);

} // namespace burin::codegen
