// Instructions that a warp does together, and copies that arrive later (PTX ISA 8.0, sections 9.7.8.24, 9.7.8.6 and
// 9.7.14.5).
#include "test/gpu/emulator/Fragments.h"
#include "test/gpu/ptx/PtxTypes.h"
#include <array>
#include <map>
#include <utility>

namespace burin::test::ptx {
namespace {

constexpr uint32_t kWarp = 32;
constexpr size_t kCopiedBytes = 16;

void waitForWarp(Thread &t, const Instruction &i) {
  t.waiting = Waiting::ForWarp;
  t.together = &i;
}

// ---- shuffles: `target` says which
enum Shuffle : uint32_t { Down, Index, Butterfly, Up };

void startShuffle(Thread &t, const Instruction &i) {
  waitForWarp(t, i);
  t.shuffleValue = t.get<uint32_t>(i.from[0]);
  t.shuffleBy = t.get<uint32_t>(i.from[1]);
}
void shuffle(Thread *warp, const Instruction &i) {
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    uint32_t from = warp[lane].shuffleBy;
    if (i.target == Down)
      from = lane + from;
    else if (i.target == Butterfly)
      from = lane ^ from;
    else if (i.target == Up)
      from = lane - from;
    warp[lane].put(i.to[0], warp[from < kWarp ? from : lane].shuffleValue);
  }
}

// ---- products of small matrices: `target` is the element type
void multiply(Thread *warp, const Instruction &i) {
  std::array<fragments::Multiplied, kWarp> parts;
  std::array<fragments::Multiplied *, kWarp> pointers;
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    fragments::Multiplied &m = *(pointers[lane] = &parts[lane]);
    for (size_t n = 0; n < 4; ++n)
      m.left[n] = warp[lane].get<uint32_t>(i.from[n]);
    for (size_t n = 0; n < 2; ++n)
      m.right[n] = warp[lane].get<uint32_t>(i.further.at(n));
    for (size_t n = 0; n < 4; ++n)
      m.sum[n] = warp[lane].get<uint32_t>(i.further.at(2 + n));
  }
  fragments::multiply(fragments::Element(i.target), pointers);
  for (uint32_t lane = 0; lane < kWarp; ++lane)
    for (size_t n = 0; n < 4; ++n)
      warp[lane].put(i.to.at(n), parts[lane].sum[n]);
}

// ---- matrices from shared memory: `target` is 1 if they are turned
void loadMatrices(Thread *warp, const Instruction &i) {
  std::array<const uint16_t *, kWarp> rows;
  for (uint32_t lane = 0; lane < kWarp; ++lane)
    rows[lane] = reinterpret_cast<const uint16_t *>(
        warp[lane].memory(i, warp[lane].address(i.from[0]), kCopiedBytes, /*writes=*/false));
  std::array<std::array<uint32_t, 4>, kWarp> result;
  fragments::loadMatrices(rows, i.target != 0, result);
  for (uint32_t lane = 0; lane < kWarp; ++lane)
    for (size_t n = 0; n < 4; ++n)
      warp[lane].put(i.to.at(n), result[lane][n]);
}

// ---- copies that arrive when the thread waits for them
void copyAsync(Thread &t, const Instruction &i) {
  const uint64_t to = t.address(i.from[0]), from = t.address(i.from[1]);
  const bool isThere = t.get<uint32_t>(i.from[3]) != 0;
  Copy copy{&i, to, isThere ? from : 0};
  (void)t.memory(i, to, kCopiedBytes, /*writes=*/true);
  if (isThere)
    (void)t.memory(i, from, kCopiedBytes, /*writes=*/false);
  t.launch->shared.forget(to, kCopiedBytes);
  t.copies.push_back(copy);
}
void commitCopies(Thread &t, const Instruction &) { t.groups.push_back(std::exchange(t.copies, {})); }
void waitForCopies(Thread &t, const Instruction &i) {
  const size_t most = t.get<uint32_t>(i.from[0]);
  for (; t.groups.size() > most; t.groups.erase(t.groups.begin()))
    land(t, t.groups.front());
}

Run together(Instruction &i, RunTogether work) {
  i.together = work;
  return waitForWarp;
}

} // namespace

void land(Thread &t, const std::vector<Copy> &copies) {
  for (const Copy &copy : copies) {
    std::byte *to = t.memory(*copy.instruction, copy.to, kCopiedBytes, /*writes=*/true);
    std::memset(to, 0, kCopiedBytes);
    if (copy.from)
      // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the kernel
      std::memcpy(to, reinterpret_cast<const std::byte *>(copy.from), kCopiedBytes);
  }
}

Run findWarp(const Parts &parts, Instruction &i) {
  if (parts[0] == "shfl") {
    i.target = has(parts, "down") ? Down : has(parts, "idx") ? Index : has(parts, "bfly") ? Butterfly : Up;
    i.together = shuffle;
    return startShuffle;
  }
  if (parts[0] == "ldmatrix" && has(parts, "m8n8") && has(parts, "x4") && parts.back() == "b16") {
    i.target = has(parts, "trans");
    return together(i, loadMatrices);
  }
  if (parts[0] == "mma" && has(parts, "m16n8k16") && parts.back() == "f32") {
    if (!has(parts, "bf16") && !has(parts, "f16"))
      return nullptr;
    i.target = uint32_t(has(parts, "bf16") ? fragments::Element::BF16 : fragments::Element::F16);
    return together(i, multiply);
  }
  if (parts[0] == "mma" && has(parts, "m16n8k8") && has(parts, "tf32") && parts.back() == "f32") {
    i.target = uint32_t(fragments::Element::TF32);
    return together(i, multiply);
  }
  if (parts[0] == "mma" && has(parts, "m16n8k32") && has(parts, "s32") && parts.back() == "s32") {
    const std::string &left = parts.at(parts.size() - 3), &right = parts.at(parts.size() - 2);
    static const std::map<std::string, fragments::Element> kElements = {{"s8s8", fragments::Element::S8S8},
                                                                        {"s8u8", fragments::Element::S8U8},
                                                                        {"u8s8", fragments::Element::U8S8},
                                                                        {"u8u8", fragments::Element::U8U8}};
    auto known = kElements.find(left + right);
    if (known == kElements.end())
      return nullptr;
    i.target = uint32_t(known->second);
    return together(i, multiply);
  }
  if (parts == Parts{"cp", "async", "cg", "shared", "global"})
    return copyAsync;
  if (parts == Parts{"cp", "async", "commit_group"})
    return commitCopies;
  if (parts == Parts{"cp", "async", "wait_group"})
    return waitForCopies;
  return findPhases(parts, i);
}

} // namespace burin::test::ptx
