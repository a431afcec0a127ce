// Which stream of a GPU each of the steps that run side by side goes through, and which streams it waits for.
#pragma once
#include "runtime/format/Artifact.h"
#include <cstdint>
#include <span>
#include <vector>

namespace burin::rt {

struct BoundStep;

/// Memory that a step reads or writes: bytes [begin, end) of the arena, or of something by itself.
struct TouchedMemory {
  uint64_t space = 0; // 0: the arena
  uint64_t begin = 0, end = 0;
  bool isWritten = false;
};

/// Groups of steps that follow each other without one alone between them. What one group does comes before the next one
/// only where a step touches what another one writes.
class LaneOrder {
public:
  static constexpr int kMostLanes = 7;
  struct Place {
    uint8_t lane = 0;
    /// Bits: the lanes whose work, as it is when the group begins, it comes after; kFork: it begins a lane.
    uint8_t waits = 0;
  };
  static constexpr uint8_t kFork = 1 << kMostLanes;

  explicit LaneOrder(int lanes) : lanes(lanes), tails(lanes), seen(lanes, std::vector<uint32_t>(lanes)) {}
  /// The steps of the next group by what they touch.
  std::vector<Place> add(const std::vector<std::vector<TouchedMemory>> &group);

private:
  struct Known {
    int lane;
    uint32_t number; // in its lane, from 1
    std::vector<TouchedMemory> touched;
  };
  int lanes;
  std::vector<Known> steps;
  std::vector<uint32_t> tails;             // steps of each lane
  std::vector<std::vector<uint32_t>> seen; // by lane: how many of another one's steps come before its next one
  std::vector<uint32_t> needed(const std::vector<TouchedMemory> &touched, size_t before) const;
  Place place(const std::vector<uint32_t> &needs, const std::vector<uint32_t> &begin,
              const std::vector<uint32_t> &inGroup);
};

/// Says for the steps that run side by side in a stage which lane each goes through. `buffers` are the buffers of the
/// plan, in the arena or each in a space of its own, numbered from 1 by their index.
void orderLanes(const Plan &plan, std::span<BoundStep> steps, const std::vector<TouchedMemory> &buffers, int lanes);

} // namespace burin::rt
