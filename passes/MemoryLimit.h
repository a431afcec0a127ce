// The memory limit of a compiled function, an option of the pipeline.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <functional>

namespace burin::passes {

/// A buffer of the arena and the steps during which it is live, both ends included.
struct BufferRange {
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0;
};

struct MemoryLimit {
  /// Limit in bytes for the weights, states, inputs, outputs and intermediate values of one run; 0: no limit.
  uint64_t bytes = 0;
  /// Whether values may be stored in bf16 between two uses. If not, results keep their bits.
  bool allowBf16 = false;
  /// Returns the size of an arena that holds these buffers. If not set, the peak of live bytes is used.
  std::function<uint64_t(llvm::ArrayRef<BufferRange>)> arenaBytes;
};

} // namespace burin::passes
