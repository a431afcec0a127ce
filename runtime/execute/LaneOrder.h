// Assigns the concurrent steps of a plan to lanes, that is streams of a GPU, and finds the lanes that each step waits
// for.
#pragma once
#include "runtime/format/Artifact.h"
#include <cstdint>
#include <span>
#include <vector>

namespace burin::rt {

struct BoundStep;

/// Memory that a step reads or writes: bytes [begin, end) of an address space.
struct TouchedMemory {
  uint64_t space = 0; // 0: the arena; other numbers: a buffer, output or state with memory of its own
  uint64_t begin = 0, end = 0;
  bool isWritten = false;
};

/// Lanes for consecutive concurrent groups, without a sequential step between them. Groups overlap: a step waits for a
/// step of an earlier group only if one of them writes memory that the other one touches.
class LaneOrder {
public:
  static constexpr int kMostLanes = 7;
  struct Place {
    uint8_t lane = 0;
    /// Bits: the lanes whose work enqueued before this group the step waits for; kFork: it is the first in its lane.
    uint8_t waits = 0;
  };
  static constexpr uint8_t kFork = 1 << kMostLanes;

  explicit LaneOrder(int lanes) : lanes(lanes), tails(lanes), seen(lanes, std::vector<uint32_t>(lanes)) {}
  /// Places the steps of the next group, each given by the memory that it touches.
  std::vector<Place> add(const std::vector<std::vector<TouchedMemory>> &group);

private:
  struct Known {
    int lane;
    uint32_t number; // in its lane, from 1
    std::vector<TouchedMemory> touched;
  };
  int lanes;
  std::vector<Known> steps;
  std::vector<uint32_t> tails;             // number of steps in each lane
  std::vector<std::vector<uint32_t>> seen; // [lane][other]: steps of `other` that the lane has already waited for
  std::vector<uint32_t> needed(const std::vector<TouchedMemory> &touched, size_t before) const;
  Place place(const std::vector<uint32_t> &needs, const std::vector<uint32_t> &begin,
              const std::vector<uint32_t> &inGroup);
};

/// Sets the lanes of the concurrent steps of a stage. `buffers` has the memory of each buffer of the plan: in the
/// arena, or in a space of its own, whose number is the index of the buffer plus 1.
void orderLanes(const Plan &plan, std::span<BoundStep> steps, const std::vector<TouchedMemory> &buffers, int lanes);

} // namespace burin::rt
