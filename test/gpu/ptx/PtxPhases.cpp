// Barriers in shared memory, and products of warpgroups (PTX ISA 8.0, sections 9.7.12.15 and 9.7.15).
#include "test/gpu/driver/TensorMap.h"
#include "test/gpu/ptx/PtxTypes.h"
#include <array>
#include <bit>
#include <stdexcept>
#include <utility>

namespace burin::test::ptx {
namespace {

simt::Asynchronous &units(Thread &t) { return t.launch->asynchronous; }
int lineOf(const Instruction &i) { return int(i.line); }

// ---- barriers
void initBarrier(Thread &t, const Instruction &i) {
  const uint64_t barrier = t.address(i.from[0]);
  (void)t.memory(i, barrier, 8, /*writes=*/true);
  units(t).init(int(t.index), barrier, t.get<uint32_t>(i.from[1]), lineOf(i));
}
void arrive(Thread &t, const Instruction &i) { // what it returns is never read
  units(t).arrive(int(t.index), t.address(i.from[0]), lineOf(i));
}
void arriveWithCopies(Thread &t, const Instruction &i) {
  std::vector<Copy> all;
  for (const std::vector<Copy> &group : std::exchange(t.groups, {}))
    all.insert(all.end(), group.begin(), group.end());
  const std::vector<Copy> rest = std::exchange(t.copies, {});
  all.insert(all.end(), rest.begin(), rest.end());
  units(t).arriveLater(int(t.index), t.address(i.from[0]), [&t, all = std::move(all)] { land(t, all); }, lineOf(i));
}
void arriveExpecting(Thread &t, const Instruction &i) {
  units(t).arriveExpecting(int(t.index), t.address(i.from[0]), t.get<uint32_t>(i.from[1]), lineOf(i));
}
/// Operands: where to, the map, as many coordinates as the rank, `target`, and the barrier.
void copyBulk(Thread &t, const Instruction &i) {
  std::vector<Operand> all(std::begin(i.from), std::end(i.from));
  all.insert(all.end(), i.further.begin(), i.further.end());
  std::array<int32_t, simt::TensorMap::kMostRank> at = {};
  for (size_t n = 0; n < i.target; ++n)
    at[n] = t.get<int32_t>(all.at(2 + n));
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the kernel
  const simt::TensorMap map = simt::TensorMap::load(reinterpret_cast<const void *>(t.bits(all[1])));
  const uint64_t to = t.address(all[0]);
  if (std::string wrong = map.check(int(i.target), to); !wrong.empty())
    throw std::runtime_error(wrong);
  std::vector<simt::BulkPiece> pieces = map.pieces(to, at.data());
  constexpr size_t kBytes = simt::TensorMap::kPiece;
  for (const simt::BulkPiece &piece : pieces) {
    (void)t.memory(i, piece.to, kBytes, /*writes=*/true);
    if (piece.bytes)
      (void)t.memory(i, reinterpret_cast<uint64_t>(piece.from), piece.bytes, /*writes=*/false);
    t.launch->shared.forget(piece.to, kBytes);
  }
  auto land = [&t, &i, pieces = std::move(pieces)] {
    for (const simt::BulkPiece &piece : pieces) {
      std::byte *place = t.memory(i, piece.to, kBytes, /*writes=*/true);
      std::memset(place, 0, kBytes);
      if (piece.bytes)
        std::memcpy(place, piece.from, piece.bytes);
    }
  };
  units(t).copyBulk(int(t.index), t.address(all.at(2 + i.target)), map.boxBytes(), std::move(land), lineOf(i));
}
/// Waits as long as it takes.
void waitForPhase(Thread &t, const Instruction &i) {
  t.phaseBarrier = t.address(i.from[0]), t.phaseParity = t.get<uint32_t>(i.from[1]);
  t.put(i.to[0], uint8_t(1));
  units(t).expect(int(t.index), t.phaseBarrier, lineOf(i));
  if (!units(t).hasEnded(int(t.index), t.phaseBarrier, t.phaseParity))
    t.waiting = Waiting::ForPhase;
}

/// The threads of a warp wait for each other.
void meetInWarp(Thread *warp, const Instruction &) { units(*warp).order.meet(warp->index, fragments::kLanes); }
void startMeeting(Thread &t, const Instruction &i) {
  t.waiting = Waiting::ForWarp;
  t.together = &i;
}

// ---- products
void showToProducts(Thread &t, const Instruction &) { units(t).order.show(int(t.index)); }
void beginProducts(Thread &t, const Instruction &) { units(t).fence(int(t.index)); }
void commitProducts(Thread &t, const Instruction &) { units(t).commit(int(t.index)); }
/// Sums are in some of the thread's registers, also where they have been moved to.
void waitForProducts(Thread &t, const Instruction &i) {
  units(t).wait(int(t.index), t.get<uint32_t>(i.from[0]));
  for (uint64_t &bits : t.frame().registers) {
    if (bits >> 32)
      continue;
    float sum = std::bit_cast<float>(uint32_t(bits));
    units(t).resolve(int(t.index), &sum, 1);
    bits = std::bit_cast<uint32_t>(sum);
  }
}

void startProduct(Thread &t, const Instruction &i) {
  t.waiting = Waiting::ForGroup;
  t.together = &i;
}
void setRegisters(Thread &t, const Instruction &i) {
  units(t).setRegisters(int(t.index), t.get<uint32_t>(i.from[0]), lineOf(i));
}

/// A product by its operands: the left side is a descriptor or four registers; its `target` is the element type.
struct Operands {
  explicit Operands(Thread &t, const Instruction &i) {
    std::vector<Operand> all(std::begin(i.from), std::end(i.from));
    all.insert(all.end(), i.further.begin(), i.further.end());
    const size_t leftCount =
        all.size() == 9 ? 4 : 1; // signs of both sides; of 16 bits, for each in memory whether it is turned
    product = {fragments::Element(i.target), {}, {t.get<uint64_t>(all[leftCount])}, int(i.to.size())};
    product.isLeftInRegisters = leftCount == 4;
    for (size_t n = 0; product.isLeftInRegisters && n < leftCount; ++n)
      product.fragment[n] = t.get<uint32_t>(all[n]);
    if (!product.isLeftInRegisters)
      product.left = {t.get<uint64_t>(all[0])};
    adds = t.get<uint8_t>(all[leftCount + 1]) != 0;
    product.hasColumns = fragments::bytesOf(product.type) == 1 || t.get<uint32_t>(all.back()) == 0;
  }
  simt::Asynchronous::Product product;
  bool adds;
};
void multiply(Thread *group, const Instruction &i) {
  std::array<simt::Asynchronous::Product, fragments::kGroupLanes> products;
  std::array<std::vector<float>, fragments::kGroupLanes> sums;
  std::array<float *, fragments::kGroupLanes> pointers;
  for (size_t n = 0; n < products.size(); ++n) {
    Thread &t = group[n];
    const Operands operands(t, i);
    products[n] = operands.product;
    for (const Operand &sum : i.to)
      sums[n].push_back(operands.adds ? t.get<float>(sum) : 0);
    pointers[n] = sums[n].data();
  }
  units(group[0]).multiply(int(group[0].index), products, pointers, lineOf(i));
  for (size_t n = 0; n < products.size(); ++n)
    for (size_t s = 0; s < i.to.size(); ++s)
      group[n].put(i.to[s], sums[n][s]);
}

/// "m64n128k16": 64 sums of a thread.
bool hasShape(const Parts &parts, const Instruction &) { return parts.size() > 4 && parts[4].starts_with("m64n"); }

} // namespace

Run findPhases(const Parts &parts, Instruction &i) {
  if (parts == Parts{"mbarrier", "init", "shared", "b64"})
    return initBarrier;
  if (parts == Parts{"mbarrier", "arrive", "shared", "b64"})
    return arrive;
  if (parts == Parts{"mbarrier", "arrive", "expect_tx", "shared", "b64"})
    return arriveExpecting;
  if (parts.size() > 4 && parts[2] == "bulk" && parts[3] == "tensor" &&
      parts.back() == "mbarrier::complete_tx::bytes") {
    i.target = uint32_t(std::stoul(parts[4])); // "3d"
    return copyBulk;
  }
  if (parts == Parts{"mbarrier", "try_wait", "parity", "shared", "b64"})
    return waitForPhase;
  if (parts == Parts{"bar", "warp", "sync"}) {
    i.together = meetInWarp;
    return startMeeting;
  }
  if (parts == Parts{"cp", "async", "mbarrier", "arrive", "noinc", "shared", "b64"})
    return arriveWithCopies;
  if (parts == Parts{"fence", "proxy", "async", "shared::cta"})
    return showToProducts;
  if (parts == Parts{"wgmma", "fence", "sync", "aligned"})
    return beginProducts;
  if (parts == Parts{"wgmma", "commit_group", "sync", "aligned"})
    return commitProducts;
  if (parts == Parts{"wgmma", "wait_group", "sync", "aligned"})
    return waitForProducts;
  if (parts[0] == "setmaxnreg")
    return setRegisters;
  if (hasShape(parts, i) && parts[1] == "mma_async") {
    std::string name;
    for (const std::string &part : parts)
      name += (name.empty() ? "" : ".") + part;
    const auto type = fragments::elementOf(name + " ", unsigned(std::stoul(parts[4].substr(4))));
    if (!type)
      return nullptr;
    i.target = uint32_t(*type);
    i.together = multiply;
    return startProduct;
  }
  return nullptr;
}

} // namespace burin::test::ptx
