#include "runtime/execute/LaneOrder.h"
#include "runtime/execute/ShapeBinding.h"
#include "runtime/execute/StepSchedule.h"
#include <algorithm>

namespace burin::rt {

static bool conflict(const std::vector<TouchedMemory> &a, const std::vector<TouchedMemory> &b) {
  for (const TouchedMemory &x : a)
    for (const TouchedMemory &y : b)
      if (x.space == y.space && x.begin < y.end && y.begin < x.end && (x.isWritten || y.isWritten))
        return true;
  return false;
}

/// Returns for each lane the number of its steps that must precede a step that touches this memory.
std::vector<uint32_t> LaneOrder::needed(const std::vector<TouchedMemory> &touched, size_t before) const {
  std::vector<uint32_t> needs(size_t(lanes), 0);
  for (size_t i = 0; i < before; ++i)
    if (uint32_t &need = needs[size_t(steps[i].lane)]; need < steps[i].number && conflict(steps[i].touched, touched))
      need = steps[i].number;
  return needs;
}

/// Spreads the steps of a group over the lanes, and prefers a lane whose steps the new step would wait for anyway.
LaneOrder::Place LaneOrder::place(const std::vector<uint32_t> &needs, const std::vector<uint32_t> &begin,
                                  const std::vector<uint32_t> &inGroup) {
  auto cost = [&](int lane) { return 2 * inGroup[size_t(lane)] + (needs[size_t(lane)] == 0); };
  int chosen = 0;
  for (int lane = 1; lane < lanes; ++lane)
    if (cost(lane) < cost(chosen))
      chosen = lane;
  Place result{uint8_t(chosen), 0};
  std::vector<uint32_t> &known = seen[size_t(chosen)];
  for (int lane = 0; lane < lanes; ++lane)
    if (lane != chosen && needs[size_t(lane)] > known[size_t(lane)]) {
      result.waits |= uint8_t(1 << lane);
      known[size_t(lane)] = begin[size_t(lane)];
    }
  if (!result.waits && chosen != 0 && tails[size_t(chosen)] == 0)
    result.waits = kFork;
  return result;
}

std::vector<LaneOrder::Place> LaneOrder::add(const std::vector<std::vector<TouchedMemory>> &group) {
  constexpr size_t kMostSteps = 256; // limit of the pairwise comparison; later steps wait for all earlier ones
  const std::vector<uint32_t> begin = tails;
  const size_t before = steps.size();
  std::vector<uint32_t> inGroup(size_t(lanes), 0);
  std::vector<Place> places;
  for (const std::vector<TouchedMemory> &touched : group) {
    const Place made = place(before > kMostSteps ? begin : needed(touched, before), begin, inGroup);
    places.push_back(made);
    ++inGroup[made.lane];
    steps.push_back({made.lane, ++tails[made.lane], touched});
  }
  return places;
}

/// The memory that a step touches. A dependence on another step counts as memory that both touch. The old and the new
/// value of a state count as the same memory, and so do all inputs and outputs of a private function, as its caller may
/// have placed them in one buffer.
static std::vector<TouchedMemory> touchedBy(const Plan &plan, uint32_t index, const SlotUses &uses,
                                            const std::vector<TouchedMemory> &buffers) {
  enum : uint64_t { Outputs = uint64_t(1) << 32, States = uint64_t(2) << 32, Steps = uint64_t(3) << 32 };
  std::vector<TouchedMemory> all{{Steps + index, 0, 1, true}};
  for (uint32_t before : plan.steps[index].deps)
    all.push_back({Steps + before, 0, 1, false});
  auto touch = [&](const Slot &slot, bool isPart = false) {
    const bool isInput = slot.kind == Slot::Kind::Input, isOutput = slot.kind == Slot::Kind::Output;
    auto add = [&](TouchedMemory place) {
      place.isWritten = isPart || uses.writes(index, slot);
      all.push_back(place);
    };
    if (slot.kind == Slot::Kind::Buffer)
      add(buffers[slot.index]);
    else if (plan.isPrivate && (isInput || isOutput))
      add({Outputs, 0, 1});
    else if (isInput && slot.index >= plan.callerInputs())
      add({States + plan.stateInputs[slot.index - plan.callerInputs()], 0, 1});
    else if (isOutput && slot.index >= plan.callerOutputs())
      add({States + plan.stateOutputs[slot.index - plan.callerOutputs()].state, 0, 1});
    else if (isOutput)
      add({Outputs + slot.index, 0, 1});
  };
  for (const Slot &slot : plan.steps[index].operands)
    if (slot.kind == Slot::Kind::Part) { // the initial value of a loop, in one of two places
      touch(plan.parts[slot.index].whole, /*isPart=*/true);
      touch(plan.parts[slot.index].other, /*isPart=*/true);
    } else {
      touch(slot);
    }
  return all;
}

void orderLanes(const Plan &plan, std::span<BoundStep> steps, const std::vector<TouchedMemory> &buffers, int lanes) {
  const SlotUses uses(plan);
  for (size_t i = 0; i < steps.size(); ++i) {
    LaneOrder order(lanes);
    while (i < steps.size() && steps[i].together > 1) {
      const std::span<BoundStep> group = steps.subspan(i, steps[i].together);
      std::vector<std::vector<TouchedMemory>> touched;
      for (const BoundStep &step : group)
        touched.push_back(touchedBy(plan, step.index, uses, buffers));
      const std::vector<LaneOrder::Place> places = order.add(touched);
      for (size_t k = 0; k < group.size(); ++k)
        group[k].lane = places[k];
      i += group.size();
    }
  }
}

} // namespace burin::rt
