// How much memory a compiled function may take.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <functional>

namespace burin::passes {

/// A piece of the arena, from one step to another, both included.
struct BufferRange {
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0;
};

struct MemoryLimit {
  /// For weights, states, inputs, outputs and intermediate values of one run, in bytes; 0: no limit.
  uint64_t bytes = 0;
  /// Whether values may be kept in bf16 between two uses. Otherwise results keep their bits.
  bool allowBf16 = false;
  /// Bytes of the arena in which such buffers are placed; none: as much as live at one time.
  std::function<uint64_t(llvm::ArrayRef<BufferRange>)> arenaBytes;
};

} // namespace burin::passes
