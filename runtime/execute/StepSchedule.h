// The order in which the steps of a plan run: the plan's order, except that independent steps too small for the whole
// machine run concurrently.
#pragma once
#include "runtime/format/ArenaPlacement.h"
#include "runtime/format/Artifact.h"
#include <map>
#include <optional>
#include <set>
#include <span>

namespace burin::rt {

/// How the steps of a plan use their operands.
class SlotUses {
public:
  using Key = std::pair<Slot::Kind, uint32_t>;
  static Key keyOf(const Slot &slot) { return {slot.kind, slot.index}; }
  explicit SlotUses(const Plan &plan);
  /// Whether any step writes there. An input is written if it is a state that is updated in place.
  bool isWritten(const Slot &slot) const;
  /// Whether this step writes there: it is the producer of the buffer or output, or it names the slot twice, as an
  /// operand and as the result that overwrites it.
  bool writes(uint32_t step, const Slot &slot) const;

private:
  const Plan &plan;
  std::map<Key, uint32_t> producers;
  std::set<Key> updated; // inputs that are written
};

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
