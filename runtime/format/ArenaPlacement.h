// Where buffers go in the arena. The compiler plans with the same function that the runtime places with.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace burin::rt {

inline constexpr uint64_t kBufferAlign = 64;

inline constexpr uint32_t kNoLoop = UINT32_MAX;

struct LiveRange {
  uint64_t bytes = 0;
  uint32_t firstStep = 0, lastStep = 0; // both ends included
  uint32_t loop = kNoLoop;              // within whose turns it lives
};

struct Placement {
  std::vector<uint64_t> offsets; // one per buffer
  uint64_t arenaBytes = 0;       // UINT64_MAX: does not fit into 64 bits
  std::vector<uint64_t> strides; // per loop: from what one worker has in a turn to what the next one has
};

/// First fit in the order given: each buffer at the lowest aligned offset where it overlaps no earlier buffer that is
/// live at the same time. An empty buffer takes no space.
Placement placeBuffers(std::span<const LiveRange> buffers);

/// The same with loops, whose turns `workers` threads may run at once: what lives within a turn shares memory with what
/// the same worker has in it, and with nothing of the others, who may be at any step.
Placement placeBuffers(std::span<const LiveRange> buffers, std::span<const LiveRange> loops, int workers);

} // namespace burin::rt
