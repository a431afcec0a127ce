// Placement of buffers in the arena; the compiler and the runtime use the same functions.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace burin::rt {

struct ArenaBuffer;
struct Plan;

inline constexpr uint64_t kBufferAlign = 64;

inline constexpr uint32_t kNoLoop = UINT32_MAX;

struct LiveRange {
  uint64_t bytes = 0;
  uint32_t firstStep = 0, lastStep = 0; // both ends included
  uint32_t loop = kNoLoop;              // the loop whose iterations it is local to
};

struct Placement {
  std::vector<uint64_t> offsets; // one per buffer
  uint64_t arenaBytes = 0;       // UINT64_MAX: exceeds 64 bits
  std::vector<uint64_t> strides; // per loop: distance of the workers' copies
};

/// First fit in the given order: each buffer at the lowest aligned offset where it overlaps no placed buffer that is
/// live at the same time. An empty buffer takes no space.
Placement placeBuffers(std::span<const LiveRange> buffers);

/// Placement with loops whose iterations may run on `workers` threads concurrently. Buffers local to iterations share
/// memory with other such buffers of the same worker, but not with those of other workers, which may be at any step. A
/// loop is placed as one buffer for all workers, in the order where its first local buffer comes.
Placement placeBuffers(std::span<const LiveRange> buffers, std::span<const LiveRange> loops, int workers);

/// Index of the loop whose iterations a buffer is local to, or kNoLoop.
uint32_t loopOf(const Plan &plan, const ArenaBuffer &buffer);
/// The step ranges of all loops.
std::vector<LiveRange> loopRanges(const Plan &plan);

} // namespace burin::rt
