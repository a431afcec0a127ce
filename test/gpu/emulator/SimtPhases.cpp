// Barriers in shared memory and products of warpgroups, for threads of the emulator.
#include "test/gpu/driver/TensorMap.h"
#include "test/gpu/emulator/SimtRunning.h"
#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>
#include <utility>

namespace burin::test::simt {
namespace {

Asynchronous &units() { return running->asynchronous; }
uintptr_t addressOf(const std::byte *barrier) { return reinterpret_cast<uintptr_t>(barrier); }
Thread &self() { return running->threads[size_t(running->thread)]; }

/// `body` as another thread.
template <class F> void as(int thread, F body) {
  const int before = std::exchange(running->thread, thread);
  body();
  running->thread = before;
}

void multiplyTogether(size_t first) {
  std::array<Asynchronous::Product, fragments::kGroupLanes> products;
  std::array<float *, fragments::kGroupLanes> sums;
  for (size_t i = 0; i < products.size(); ++i) {
    Thread &member = running->threads[first + i];
    products[i] = member.groupProduct.product, sums[i] = member.groupProduct.sums;
    member.state = State::Ready;
  }
  units().multiply(int(first), products, sums, running->threads[first].site);
}

} // namespace

void startPhases() {
  Asynchronous::Host host{
      sharedMemory(), &sharedShadow,
      [](int thread, int site, const std::string &what) { as(thread, [&] { report(what, site); }); },
      [](int thread, int site, uint32_t offset, int bytes) {
        as(thread, [&] { access(sharedMemory() + offset, bytes, Read, site); });
      }};
  units().start(running->kernel->threads, std::move(host));
}

bool releasePhases() {
  bool any = false;
  for (size_t i = 0; i < running->threads.size(); ++i) {
    Thread &thread = running->threads[i];
    if (thread.state == State::AtPhase && units().hasEnded(int(i), thread.phase.barrier, thread.phase.parity)) {
      thread.state = State::Ready;
      any = true;
    }
  }
  for (size_t first = 0; first + fragments::kGroupLanes <= running->threads.size(); first += fragments::kGroupLanes)
    if (together(first, first + fragments::kGroupLanes, State::AtGroupProduct)) {
      multiplyTogether(first);
      any = true;
    }
  return any;
}

void initBarrier(const std::byte *barrier, int32_t arrivals, int32_t site) {
  access(barrier, 8, Write, site);
  units().init(running->thread, addressOf(barrier), uint32_t(arrivals), site);
}

void arrive(const std::byte *barrier, int32_t site) { units().arrive(running->thread, addressOf(barrier), site); }

void arriveWithCopies(const std::byte *barrier, int32_t site) {
  std::vector<Copy> all;
  for (std::vector<Copy> &group : std::exchange(self().groups, {}))
    all.insert(all.end(), group.begin(), group.end());
  const std::vector<Copy> rest = std::exchange(self().copies, {});
  all.insert(all.end(), rest.begin(), rest.end());
  auto landAll = [thread = running->thread, all = std::move(all)] { as(thread, [&] { land(all); }); };
  units().arriveLater(running->thread, addressOf(barrier), std::move(landAll), site);
}

void arriveExpecting(const std::byte *barrier, int32_t bytes, int32_t site) {
  units().arriveExpecting(running->thread, addressOf(barrier), uint32_t(bytes), site);
}

void copyBulk(std::byte *to, const std::byte *barrier, const void *map, const int32_t *at, int32_t rank, int32_t site) {
  ++totals.bulkCopies;
  const TensorMap by = TensorMap::load(map);
  if (std::string wrong = by.check(rank, addressOf(to)); !wrong.empty())
    return report(wrong, site);
  std::vector<BulkPiece> pieces = by.pieces(addressOf(to), at);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the kernel
  auto place = [](const BulkPiece &piece) { return reinterpret_cast<std::byte *>(piece.to); };
  for (const BulkPiece &piece : pieces) {
    access(place(piece), kCopiedBytes, Write, site);
    access(piece.from, piece.bytes, Read, site);
    sharedShadow.forget(piece.to, kCopiedBytes);
  }
  auto land = [thread = running->thread, pieces = std::move(pieces), place, site] {
    as(thread, [&] {
      for (const BulkPiece &piece : pieces) {
        access(place(piece), kCopiedBytes, Write, site);
        if (running->failed)
          return;
        std::memset(place(piece), 0, kCopiedBytes);
        if (piece.bytes)
          std::memcpy(place(piece), piece.from, piece.bytes);
      }
    });
  };
  units().copyBulk(running->thread, addressOf(barrier), by.boxBytes(), std::move(land), site);
}

void makeMap(const char *text, void *const *operands, const int64_t *sizes, void *map) {
  std::istringstream in(text);
  size_t operand = 0, rank = 0;
  uint32_t line = 0;
  in >> operand >> line >> rank;
  auto number = [&] {
    std::string word;
    in >> word;
    return word.starts_with("s") ? uint64_t(sizes[std::stoul(word.substr(1))]) : uint64_t(std::stoull(word));
  };
  std::vector<uint64_t> counts(rank), strides(rank - 1);
  std::vector<uint32_t> box(rank);
  std::ranges::generate(counts, number);
  std::ranges::generate(strides, number);
  std::ranges::generate(box, [&] { return uint32_t(number()); });
  std::string problem;
  TensorMap::make(reinterpret_cast<uint64_t>(operands[operand]), counts, strides, box, line, problem).store(map);
}

bool waitForPhase(const std::byte *barrier, int32_t parity, int32_t site) {
  ++totals.phases;
  units().expect(running->thread, addressOf(barrier), site);
  if (!units().hasEnded(running->thread, addressOf(barrier), uint32_t(parity))) {
    self().phase = {addressOf(barrier), uint32_t(parity)};
    toScheduler(State::AtPhase, site);
  }
  return true;
}

void showToProducts() { units().order.show(running->thread); }
void beginProducts() { units().fence(running->thread); }
void commitProducts() { units().commit(running->thread); }
void waitForProducts(int64_t groups) { units().wait(running->thread, size_t(groups)); }

void multiplyGroup(fragments::Element type, int32_t sides, uint64_t left, const uint32_t *fragment, uint64_t right,
                   float *sums, int32_t count, int32_t site) {
  ++totals.groupProducts;
  Asynchronous::Product product{
      type, {left}, {right}, count, (sides & LeftInRegisters) != 0, (sides & RightHasColumns) != 0};
  if (product.isLeftInRegisters)
    std::copy_n(fragment, product.fragment.size(), product.fragment.begin());
  self().groupProduct = {product, sums};
  toScheduler(State::AtGroupProduct, site);
}

void finishProducts(float *sums, int32_t count, int64_t groups) {
  units().wait(running->thread, size_t(groups));
  units().resolve(running->thread, sums, count);
}

void setRegisters(int32_t count, int32_t site) { units().setRegisters(running->thread, uint32_t(count), site); }

void checkCopiesAtEnd() {
  const bool isGrouped =
      std::ranges::any_of(self().groups, [](const std::vector<Copy> &group) { return !group.empty(); });
  if (isGrouped || !self().copies.empty() || (units().isUsed() && units().isOnItsWay(running->thread)))
    report("a thread ends before its copies have arrived", -1);
}

} // namespace burin::test::simt
