#include "codegen/plan/BufferOrder.h"
#include "passes/analysis/cost/KernelCost.h"
#include "runtime/format/ArenaPlacement.h"
#include <numeric>

using namespace mlir;

namespace burin::codegen {

/// Live bytes per step, each buffer a multiple of the alignment.
static std::vector<uint64_t> liveBytes(ArrayRef<rt::LiveRange> ranges) {
  uint32_t steps = 0;
  for (const rt::LiveRange &range : ranges)
    steps = std::max(steps, range.lastStep + 1);
  std::vector<uint64_t> change(steps + 1);
  for (const rt::LiveRange &range : ranges) {
    const uint64_t bytes = llvm::alignTo(range.bytes, rt::kBufferAlign);
    change[range.firstStep] += bytes;
    change[range.lastStep + 1] -= bytes;
  }
  for (uint32_t step = 1; step <= steps; ++step)
    change[step] += change[step - 1];
  return change;
}

namespace {

/// Searches for the order of buffers that first fit packs best.
class OrderSearch {
public:
  /// `work`: how many pairs of buffers may be compared.
  explicit OrderSearch(ArrayRef<rt::LiveRange> ranges, int64_t work = 32 << 20) : ranges(ranges), work(work) {
    std::vector<uint64_t> live = liveBytes(ranges);
    const uint64_t least = *std::max_element(live.begin(), live.end());
    target = least + least / 512;
    std::vector<uint32_t> given(ranges.size());
    std::iota(given.begin(), given.end(), 0);
    auto by = [&](auto key) {
      std::vector<uint32_t> sorted = given;
      llvm::stable_sort(sorted, [&](uint32_t x, uint32_t y) { return key(ranges[x]) > key(ranges[y]); });
      return sorted;
    };
    std::vector<uint32_t> starts[] = {
        given, by([](const rt::LiveRange &r) { return r.bytes; }),
        by([](const rt::LiveRange &r) { return r.bytes * (r.lastStep - r.firstStep + 1); }),
        by([](const rt::LiveRange &r) { return std::pair(-int64_t(r.firstStep), r.bytes); })};
    llvm::stable_sort(starts, [&](auto &x, auto &y) { return consider(x) < consider(y); });
    for (std::vector<uint32_t> &start : starts)
      improve(std::move(start));
  }

  std::vector<uint32_t> best;
  uint64_t arena = UINT64_MAX;

private:
  rt::Placement place(ArrayRef<uint32_t> order) const {
    std::vector<rt::LiveRange> sorted;
    for (uint32_t i : order)
      sorted.push_back(ranges[i]);
    return rt::placeBuffers(sorted);
  }

  /// Bytes of the arena with this order.
  uint64_t consider(const std::vector<uint32_t> &order) {
    uint64_t bytes = place(order).arenaBytes;
    if (bytes < arena || best.empty()) {
      arena = bytes;
      best = order;
    }
    return bytes;
  }

  /// Moves the buffer that ends highest in the arena to the front, repeatedly.
  void improve(std::vector<uint32_t> order) {
    constexpr int64_t kTries = 128;
    for (int64_t i = 0; i < kTries && work > 0 && arena > target; ++i) {
      work -= int64_t(ranges.size() * ranges.size());
      rt::Placement placement = place(order);
      size_t top = 0;
      for (size_t at = 0; at < order.size(); ++at)
        if (placement.offsets[at] + ranges[order[at]].bytes > placement.offsets[top] + ranges[order[top]].bytes)
          top = at;
      std::rotate(order.begin(), order.begin() + ptrdiff_t(top), order.begin() + ptrdiff_t(top) + 1);
      consider(order);
    }
  }

  ArrayRef<rt::LiveRange> ranges;
  uint64_t target = 0; // an arena of this size is good enough
  int64_t work;        // pairs of buffers that may still be compared
};

/// The order that packs best where each loop is placed as one buffer, which has its local buffers for one worker.
std::vector<uint32_t> bestOrder(ArrayRef<rt::LiveRange> ranges, ArrayRef<rt::LiveRange> loops) {
  std::vector<rt::LiveRange> items;             // buffers outside of loops, and loops
  std::vector<std::vector<uint32_t>> membersOf; // per item: its buffers, in their order
  for (uint32_t i = 0; i < ranges.size(); ++i)
    if (ranges[i].loop == rt::kNoLoop) {
      items.push_back(ranges[i]);
      membersOf.push_back({i});
    }
  for (uint32_t loop = 0; loop < loops.size(); ++loop) {
    std::vector<rt::LiveRange> inside;
    std::vector<uint32_t> numbers;
    for (uint32_t i = 0; i < ranges.size(); ++i)
      if (ranges[i].loop == loop) {
        inside.push_back(ranges[i]);
        numbers.push_back(i);
      }
    if (inside.empty())
      continue;
    OrderSearch search(inside);
    items.push_back({search.arena, loops[loop].firstStep, loops[loop].lastStep});
    membersOf.emplace_back();
    for (uint32_t at : search.best)
      membersOf.back().push_back(numbers[at]);
  }
  std::vector<uint32_t> order;
  for (uint32_t item : OrderSearch(items).best)
    order.insert(order.end(), membersOf[item].begin(), membersOf[item].end());
  return order;
}

} // namespace

uint64_t arenaBytes(ArrayRef<passes::BufferRange> buffers) {
  std::vector<rt::LiveRange> ranges;
  for (const passes::BufferRange &buffer : buffers)
    ranges.push_back({buffer.bytes, buffer.first, buffer.last});
  constexpr int64_t kWork = 4 << 20; // asked often; plans search more
  return ranges.empty() ? 0 : OrderSearch(ranges, kWork).arena;
}

void orderBuffers(rt::Plan &plan, ArrayRef<Dim> bytesOfBuffers) {
  std::vector<rt::LiveRange> ranges;
  for (auto [buffer, bytes] : llvm::zip(plan.buffers, bytesOfBuffers))
    ranges.push_back(
        {uint64_t(passes::typicalSize(bytes)), buffer.firstStep, buffer.lastStep, rt::loopOf(plan, buffer)});
  if (ranges.empty())
    return;
  const std::vector<uint32_t> chosen = bestOrder(ranges, rt::loopRanges(plan));
  std::vector<uint32_t> newIndex(chosen.size());
  std::vector<rt::ArenaBuffer> buffers;
  for (uint32_t i = 0; i < chosen.size(); ++i) {
    newIndex[chosen[i]] = i;
    buffers.push_back(plan.buffers[chosen[i]]);
  }
  plan.buffers = std::move(buffers);
  auto renumber = [&](rt::Slot &slot) {
    if (slot.kind == rt::Slot::Kind::Buffer)
      slot.index = newIndex[slot.index];
  };
  for (rt::Step &step : plan.steps)
    llvm::for_each(step.operands, renumber);
  for (rt::Part &part : plan.parts) {
    renumber(part.whole);
    if (part.kind == rt::Part::Kind::Alternating)
      renumber(part.other);
  }
  for (rt::Symbol &symbol : plan.symbols)
    if (symbol.kind == rt::Symbol::Kind::Computed)
      renumber(symbol.count);
}

} // namespace burin::codegen
