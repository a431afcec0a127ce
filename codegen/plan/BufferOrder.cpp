#include "codegen/plan/BufferOrder.h"
#include "passes/analysis/KernelCost.h"
#include "runtime/format/ArenaPlacement.h"
#include <numeric>

using namespace mlir;

namespace burin::codegen {

/// Live bytes per step.
static std::vector<uint64_t> liveBytes(ArrayRef<rt::LiveRange> ranges) {
  uint32_t steps = 0;
  for (const rt::LiveRange &range : ranges)
    steps = std::max(steps, range.lastStep + 1);
  std::vector<uint64_t> change(steps + 1);
  for (const rt::LiveRange &range : ranges) {
    change[range.firstStep] += range.bytes;
    change[range.lastStep + 1] -= range.bytes;
  }
  for (uint32_t step = 1; step <= steps; ++step)
    change[step] += change[step - 1];
  return change;
}

namespace {

/// Searches for the order of buffers that first fit packs best.
class OrderSearch {
public:
  explicit OrderSearch(ArrayRef<rt::LiveRange> ranges) : ranges(ranges) {
    std::vector<uint64_t> live = liveBytes(ranges);
    const uint64_t least = *std::max_element(live.begin(), live.end());
    std::vector<uint32_t> order(ranges.size());
    std::iota(order.begin(), order.end(), 0);
    consider(order);
    auto by = [&](auto key) {
      std::vector<uint32_t> sorted = order;
      llvm::stable_sort(sorted, [&](uint32_t x, uint32_t y) { return key(ranges[x]) > key(ranges[y]); });
      consider(sorted);
    };
    by([](const rt::LiveRange &r) { return r.bytes; });
    by([](const rt::LiveRange &r) { return r.bytes * (r.lastStep - r.firstStep + 1); });
    if (arena > least + least / 512)
      improve(least);
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

  void consider(const std::vector<uint32_t> &order) {
    uint64_t bytes = place(order).arenaBytes;
    if (bytes < arena || best.empty()) {
      arena = bytes;
      best = order;
    }
  }

  /// Moves the buffer that ends highest in the arena to the front, repeatedly.
  void improve(uint64_t least) {
    constexpr size_t kMost = 128, kWork = 32 << 20; // attempts; pairs of buffers compared
    const size_t tries = std::min(kMost, kWork / (ranges.size() * ranges.size() + 1));
    std::vector<uint32_t> order = best;
    for (size_t i = 0; i < tries && arena > least + least / 512; ++i) {
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
};

} // namespace

uint64_t arenaBytes(ArrayRef<passes::BufferRange> buffers) {
  std::vector<rt::LiveRange> ranges;
  for (const passes::BufferRange &buffer : buffers)
    ranges.push_back({buffer.bytes, buffer.first, buffer.last});
  return ranges.empty() ? 0 : OrderSearch(ranges).arena;
}

void orderBuffers(rt::Plan &plan, ArrayRef<Dim> bytesOfBuffers) {
  std::vector<rt::LiveRange> ranges;
  for (auto [buffer, bytes] : llvm::zip(plan.buffers, bytesOfBuffers)) {
    ranges.push_back({uint64_t(passes::typicalSize(bytes)), buffer.firstStep, buffer.lastStep});
  }
  if (ranges.empty())
    return;
  const std::vector<uint32_t> chosen = OrderSearch(ranges).best;
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
  for (rt::Part &part : plan.parts)
    renumber(part.whole);
  for (rt::Symbol &symbol : plan.symbols)
    if (symbol.kind == rt::Symbol::Kind::Computed)
      renumber(symbol.count);
}

} // namespace burin::codegen
