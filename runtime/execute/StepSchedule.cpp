#include "runtime/execute/StepSchedule.h"
#include <algorithm>
#include <numeric>

namespace burin::rt {

static bool isNamedTwice(const Step &step, const Slot &slot) {
  return std::ranges::count(step.operands, SlotUses::keyOf(slot), &SlotUses::keyOf) > 1;
}

SlotUses::SlotUses(const Plan &plan) : plan(plan) {
  for (const Step &step : plan.steps)
    for (const Slot &slot : step.operands)
      if (slot.kind == Slot::Kind::Input && isNamedTwice(step, slot))
        updated.insert(keyOf(slot));
  for (uint32_t i = 0; i < plan.steps.size(); ++i)
    for (const Slot &slot : plan.steps[i].operands)
      if (isWritten(slot))
        producers.try_emplace(keyOf(slot), i);
}

bool SlotUses::isWritten(const Slot &slot) const {
  return slot.kind == Slot::Kind::Buffer || slot.kind == Slot::Kind::Output || updated.contains(keyOf(slot));
}

bool SlotUses::writes(uint32_t step, const Slot &slot) const {
  const bool isMade = slot.kind != Slot::Kind::Input && producers.at(keyOf(slot)) == step;
  return isMade || isNamedTwice(plan.steps[step], slot);
}

namespace {

class Orderer {
public:
  Orderer(const Plan &plan, uint32_t first, std::span<const double> ns, SideBySide limits)
      : plan(plan), first(first), ns(ns), limits(limits) {
    out.times.resize(plan.steps.size());
    std::iota(out.times.begin(), out.times.end(), 0);
  }

  StepSchedule run(uint32_t end) {
    for (uint32_t i = first; i < end;) {
      uint32_t windowEnd = i;
      while (windowEnd < end && ns[windowEnd - first] >= 0)
        ++windowEnd;
      if (windowEnd > i + 1)
        addWindow(i, windowEnd);
      else
        out.entries.push_back({i, 1});
      i = std::max(windowEnd, i + 1);
    }
    return std::move(out);
  }

private:
  /// Steps by dependence level: the number of steps that must run before them in sequence.
  std::vector<std::vector<uint32_t>> levelsOf(uint32_t begin, uint32_t end) const {
    struct Touched {
      size_t written = 0, read = 0; // first level that may read it, and that may write it
    };
    std::map<SlotUses::Key, Touched> touched;
    std::vector<size_t> levelOf;
    std::vector<std::vector<uint32_t>> levels;
    for (uint32_t i = begin; i < end; ++i) {
      size_t level = 0;
      for (uint32_t dep : plan.steps[i].deps)
        if (dep >= begin)
          level = std::max(level, levelOf[dep - begin] + 1);
      for (const Slot &slot : plan.steps[i].operands)
        if (uses->isWritten(slot)) {
          Touched &t = touched[SlotUses::keyOf(slot)];
          level = std::max(level, uses->writes(i, slot) ? std::max(t.written, t.read) : t.written);
        }
      for (const Slot &slot : plan.steps[i].operands)
        if (uses->isWritten(slot)) {
          Touched &t = touched[SlotUses::keyOf(slot)];
          size_t &next = uses->writes(i, slot) ? t.written : t.read;
          next = std::max(next, level + 1);
        }
      levelOf.push_back(level);
      levels.resize(std::max(levels.size(), level + 1));
      levels[level].push_back(i);
    }
    return levels;
  }

  bool pays(std::span<const uint32_t> steps) const {
    double total = 0, longest = 0;
    for (uint32_t i : steps) {
      total += ns[i - first];
      longest = std::max(longest, ns[i - first]);
    }
    return total - std::max(longest, total / limits.lanes) > limits.costNs;
  }

  void addWindow(uint32_t begin, uint32_t end) {
    std::vector<uint32_t> all(end - begin);
    std::iota(all.begin(), all.end(), begin);
    std::vector<std::vector<uint32_t>> levels;
    if (pays(all)) { // otherwise no level pays off
      if (!uses)
        uses.emplace(plan);
      levels = levelsOf(begin, end);
    }
    bool anyPays = std::ranges::any_of(levels, [&](const auto &level) { return pays(level); });
    if (!anyPays) {
      for (uint32_t i = begin; i < end; ++i)
        out.entries.push_back({i, 1});
      return;
    }
    uint32_t time = begin;
    for (const std::vector<uint32_t> &level : levels) {
      bool together = pays(level);
      out.groups += together;
      for (size_t i = 0; i < level.size(); ++i) {
        out.entries.push_back({level[i], together && i == 0 ? uint32_t(level.size()) : 1});
        out.times[level[i]] = time;
        time += !together;
      }
      time += together;
    }
  }

  const Plan &plan;
  uint32_t first;
  std::span<const double> ns;
  SideBySide limits;
  StepSchedule out;
  std::optional<SlotUses> uses;
};

} // namespace

StepSchedule orderSteps(const Plan &plan, uint32_t first, uint32_t end, std::span<const double> ns, SideBySide pays) {
  return Orderer(plan, first, ns, pays).run(end);
}

std::vector<LiveRange> liveRanges(const Plan &plan, const StepSchedule &order) {
  std::vector<LiveRange> ranges;
  ranges.reserve(plan.buffers.size());
  for (const ArenaBuffer &b : plan.buffers)
    ranges.push_back({0, b.firstStep, b.lastStep});
  if (!order.groups)
    return ranges;
  std::vector<uint32_t> latest; // running maximum over the steps, in the order of the plan
  latest.reserve(order.times.size());
  for (uint32_t time : order.times)
    latest.push_back(latest.empty() ? time : std::max(latest.back(), time));
  for (size_t i = 0; i < ranges.size(); ++i)
    ranges[i].firstStep = UINT32_MAX, ranges[i].lastStep = latest[plan.buffers[i].lastStep];
  std::vector<uint32_t> lastTouch(ranges.size(), 0);
  auto touch = [&](const Slot &slot, uint32_t step) {
    if (slot.kind != Slot::Kind::Buffer)
      return;
    LiveRange &range = ranges[slot.index];
    range.firstStep = std::min(range.firstStep, order.times[step]);
    lastTouch[slot.index] = std::max(lastTouch[slot.index], order.times[step]);
    if (step == plan.buffers[slot.index].lastStep) // the live range then depends on its steps only
      range.lastStep = 0;
  };
  for (uint32_t step = 0; step < plan.steps.size(); ++step)
    for (const Slot &slot : plan.steps[step].operands) {
      const Part *part = slot.kind == Slot::Kind::Part ? &plan.parts[slot.index] : nullptr;
      touch(part ? part->whole : slot, step);
      if (part && part->kind == Part::Kind::Alternating)
        touch(part->other, step);
    }
  for (size_t i = 0; i < ranges.size(); ++i) {
    ranges[i].firstStep = std::min(ranges[i].firstStep, order.times[plan.buffers[i].firstStep]);
    ranges[i].lastStep = std::max({ranges[i].lastStep, lastTouch[i], ranges[i].firstStep});
  }
  return ranges;
}

} // namespace burin::rt
