// The order that the steps of a plan run in: the plan's own, but steps that are each too small for the machine, and do
// not touch what another one writes, run side by side.
#pragma once
#include "runtime/format/ArenaPlacement.h"
#include "runtime/format/Artifact.h"
#include <span>

namespace burin::rt {

struct StepSchedule {
  struct Entry {
    uint32_t step;     // in Plan::steps
    uint32_t together; // how many entries from this one on run side by side; 1 for the others of these, too
  };
  std::vector<Entry> entries;
  std::vector<uint32_t> times; // of each step of the plan: the same for those that run side by side, else ascending
  uint32_t groups = 0;         // of more than one
};

/// When it pays to run steps side by side.
struct SideBySide {
  int lanes;     // how many at once
  double costNs; // what a group must save
};

/// Of steps [first, end). `ns[i]`: about how long step first + i takes in one lane if it may run beside others, else
/// negative.
StepSchedule orderSteps(const Plan &plan, uint32_t first, uint32_t end, std::span<const double> ns, SideBySide pays);

/// When buffers live, in the times of `order`; bytes and loops are not filled in.
std::vector<LiveRange> liveRanges(const Plan &plan, const StepSchedule &order);

} // namespace burin::rt
