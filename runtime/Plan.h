// Where buffers go in the arena. The compiler plans with the same function that the runtime places with.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace burin::rt {

inline constexpr uint64_t kBufferAlign = 64;

struct LiveRange {
  uint64_t bytes = 0;
  uint32_t firstStep = 0, lastStep = 0; // both ends included
};

struct Placement {
  std::vector<uint64_t> offsets; // one per buffer
  uint64_t arenaBytes = 0;       // UINT64_MAX: does not fit into 64 bits
};

/// First fit in the order given: each buffer at the lowest aligned offset where it overlaps no earlier buffer that is
/// live at the same time. An empty buffer takes no space.
Placement placeBuffers(std::span<const LiveRange> buffers);

} // namespace burin::rt
