// The order in which the steps of a plan run: the plan's order, except that independent steps too small for the whole
// machine run concurrently.
#pragma once
#include "runtime/format/ArenaPlacement.h"
#include "runtime/format/Artifact.h"
#include <span>

namespace burin::rt {

struct StepSchedule {
  struct Entry {
    uint32_t step;     // in Plan::steps
    uint32_t together; // size of the concurrent group that starts here; 1 for its other members
  };
  std::vector<Entry> entries;
  std::vector<uint32_t> times; // per step of the plan: equal within a concurrent group, else ascending
  uint32_t groups = 0;         // number of concurrent groups
};

/// Conditions for running steps concurrently.
struct SideBySide {
  int lanes;     // concurrent steps
  double costNs; // least time that a group must save
};

/// Schedules steps [first, end). `ns[i]`: estimated time of step first + i in one lane if it may run concurrently with
/// others, else negative.
StepSchedule orderSteps(const Plan &plan, uint32_t first, uint32_t end, std::span<const double> ns, SideBySide pays);

/// Live ranges of buffers in the times of `order`; bytes and loops are not set.
std::vector<LiveRange> liveRanges(const Plan &plan, const StepSchedule &order);

} // namespace burin::rt
