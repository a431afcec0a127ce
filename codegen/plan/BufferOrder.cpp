#include "codegen/plan/BufferOrder.h"
#include "runtime/format/ArenaPlacement.h"

using namespace mlir;

namespace burin::codegen {

static constexpr int64_t kTypicalSize = 8; // a symbolic size is taken to be about this

void orderBuffers(rt::Plan &plan, ArrayRef<Dim> bytesOfBuffers) {
  std::vector<rt::LiveRange> ranges;
  for (auto [buffer, bytes] : llvm::zip(plan.buffers, bytesOfBuffers)) {
    auto typical = bytes.evaluate([](std::string_view) { return std::optional<int64_t>(kTypicalSize); });
    ranges.push_back({uint64_t(typical.value_or(0)), buffer.firstStep, buffer.lastStep});
  }
  std::vector<std::vector<uint32_t>> orders(3);
  for (uint32_t i = 0; i < ranges.size(); ++i)
    for (auto &order : orders)
      order.push_back(i);
  auto by = [&](std::vector<uint32_t> &order, auto key) {
    llvm::stable_sort(order, [&](uint32_t x, uint32_t y) { return key(ranges[x]) > key(ranges[y]); });
  };
  by(orders[1], [](const rt::LiveRange &r) { return r.bytes; });
  by(orders[2], [](const rt::LiveRange &r) { return r.bytes * (r.lastStep - r.firstStep + 1); });
  uint64_t best = UINT64_MAX;
  std::vector<uint32_t> chosen;
  for (auto &order : orders) {
    std::vector<rt::LiveRange> sorted;
    for (uint32_t i : order)
      sorted.push_back(ranges[i]);
    uint64_t size = rt::placeBuffers(sorted).arenaBytes;
    if (size < best || chosen.empty()) {
      best = size;
      chosen = order;
    }
  }
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
