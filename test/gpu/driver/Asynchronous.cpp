#include "test/gpu/driver/Asynchronous.h"
#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace burin::test::simt {

// ---- order

void Order::start(int threads) {
  known.assign(size_t(threads), {Counts(size_t(threads), 0), Counts(size_t(threads), 0)});
  for (size_t i = 0; i < known.size(); ++i)
    known[i].seen[i] = 1;
}

static void joinCounts(Order::Counts &to, const Order::Counts &from) {
  to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i)
    to[i] = std::max(to[i], from[i]);
}

void Order::join(Known &to, const Known &from) {
  joinCounts(to.seen, from.seen);
  joinCounts(to.shown, from.shown);
}

Order::Known Order::release(int thread) {
  Known all = known[size_t(thread)];
  ++known[size_t(thread)].seen[size_t(thread)];
  return all;
}

void Order::acquire(int thread, const Known &other) {
  const uint32_t own = count(thread);
  join(known[size_t(thread)], other);
  known[size_t(thread)].seen[size_t(thread)] = own;
}

void Order::meet(size_t first, size_t count) {
  Known all;
  for (size_t i = first; i < first + count; ++i)
    join(all, known[i]);
  for (size_t i = first; i < first + count; ++i) {
    known[i] = all;
    ++known[i].seen[i];
  }
}

// ---- barriers

/// What each thread of a block has at first: a multiple of 8.
static uint32_t registersOf(int threads) {
  constexpr uint32_t kAll = 65536, kMost = 255;
  return std::min(kAll / uint32_t(threads), kMost) / 8 * 8;
}

void Asynchronous::start(int threads, Host given) {
  isOn = true;
  host = std::move(given);
  order.start(threads);
  barriers.clear(), arrivals.clear();
  members.assign(size_t(threads), {});
  products.assign(size_t(threads) / fragments::kGroupLanes, {});
  registers.assign(size_t(threads), registersOf(threads)), registersSite = -1;
}

void Asynchronous::setRegisters(int thread, uint32_t count, int site) {
  registers[size_t(thread)] = count, registersSite = site;
}

void Asynchronous::finish() {
  const size_t all = registers.size() * registersOf(int(registers.size()));
  if (std::accumulate(registers.begin(), registers.end(), size_t(0)) > all)
    host.report(0, registersSite, "warpgroups take more registers than others have left");
  for (const Arrival &a : arrivals)
    host.report(a.thread, a.site, "a block ends before a bulk copy has arrived");
}

void Asynchronous::init(int thread, uintptr_t barrier, uint32_t count, int site) {
  if (barrier % 8 || count == 0 || barriers.count(barrier))
    return host.report(thread, site, "a barrier that is not aligned, that nobody arrives at, or that is there already");
  barriers[barrier] = {count, count, 0, 0, thread, order.count(thread), {}, {}};
}

Asynchronous::Barrier *Asynchronous::find(int thread, uintptr_t barrier, int site) {
  auto found = barriers.find(barrier);
  if (found == barriers.end() ||
      (found->second.thread != thread && !order.sees(thread, found->second.thread, found->second.count))) {
    host.report(thread, site, "use of a barrier that is not initialised, or not yet for this thread");
    return nullptr;
  }
  return &found->second;
}

void Asynchronous::arrived(int thread, Barrier &b, const Order::Known &known, int site) {
  if (b.missing == 0)
    return host.report(thread, site, "more threads arrive at a barrier than were announced");
  Order::join(b.arriving, known);
  --b.missing;
  endPhase(thread, b, site);
}

void Asynchronous::brought(const Arrival &a) {
  Barrier &b = barriers[a.barrier];
  Order::join(b.arriving, a.known);
  b.bytes -= a.bulkBytes;
  endPhase(a.thread, b, a.site);
}

void Asynchronous::endPhase(int thread, Barrier &b, int site) {
  if (b.missing)
    return;
  if (b.bytes < 0)
    host.report(thread, site, "bulk copies bring more bytes than a barrier expects");
  if (b.bytes)
    return;
  b.arrived = std::exchange(b.arriving, {});
  b.missing = b.arrivals;
  b.parity ^= 1;
}

void Asynchronous::arrive(int thread, uintptr_t barrier, int site) {
  if (Barrier *b = find(thread, barrier, site))
    arrived(thread, *b, order.release(thread), site);
}

void Asynchronous::arriveExpecting(int thread, uintptr_t barrier, uint32_t bytes, int site) {
  if (Barrier *b = find(thread, barrier, site)) {
    b->bytes += bytes;
    arrived(thread, *b, order.release(thread), site);
  }
}

void Asynchronous::copyBulk(int thread, uintptr_t barrier, uint32_t bytes, std::function<void()> land, int site) {
  const Barrier *b = find(thread, barrier, site);
  if (!b)
    return;
  if (!order.shows(thread, b->thread, b->count))
    host.report(thread, site, "a bulk copy to a barrier whose initialisation is not shown to it");
  const uint32_t count = order.count(thread);
  arrivals.push_back({thread, barrier, count, order.release(thread), std::move(land), bytes, site});
}

bool Asynchronous::hasEnded(int thread, uintptr_t barrier, uint32_t parity) {
  auto found = barriers.find(barrier);
  if (found == barriers.end() || found->second.parity == (parity & 1))
    return false;
  if (!found->second.arrived.seen.empty())
    order.acquire(thread, found->second.arrived);
  return true;
}

void Asynchronous::arriveLater(int thread, uintptr_t barrier, std::function<void()> land, int site) {
  if (!find(thread, barrier, site))
    return;
  const uint32_t count = order.count(thread);
  arrivals.push_back({thread, barrier, count, order.release(thread), std::move(land), 0, site});
}

bool Asynchronous::deliver() {
  if (arrivals.empty())
    return false;
  const uintptr_t barrier = arrivals.front().barrier;
  std::vector<Arrival> now;
  std::deque<Arrival> later;
  std::vector<bool> waits(members.size()); // what a thread has started later arrives later
  for (Arrival &a : arrivals) {
    const bool isNow = a.barrier == barrier && !waits[size_t(a.thread)];
    waits[size_t(a.thread)] = true;
    isNow ? now.push_back(std::move(a)) : later.push_back(std::move(a));
  }
  arrivals = std::move(later);
  for (Arrival &a : now) {
    landingCount = a.count, landingKnown = &a.known, isLandingBulk = a.bulkBytes != 0;
    a.land();
    landingCount = 0, landingKnown = nullptr, isLandingBulk = false;
    if (a.bulkBytes)
      brought(a);
    else
      arrived(a.thread, barriers[a.barrier], a.known, a.site);
  }
  return true;
}

bool Asynchronous::isOnItsWay(int thread) const {
  return std::ranges::any_of(arrivals, [&](const Arrival &a) { return a.thread == thread && !a.bulkBytes; });
}

bool Asynchronous::touches(uintptr_t address, size_t bytes) const {
  auto next = barriers.lower_bound(address);
  if (next != barriers.end() && next->first < address + bytes)
    return true;
  return next != barriers.begin() && (--next)->first + 8 > address;
}

// ---- products

constexpr int kRows = 64, kWarpRows = 16, kWarp = 32;
// The registers of sums that are not there yet: quiet NaN, or integers that only sums that wrap come near.
constexpr uint32_t kToken = 0xFFC00000, kIntegerToken = 0x80000000, kTokens = 1 << 22, kMostSums = 128;
static uint32_t tokenOf(fragments::Element type) { return fragments::isOfIntegers(type) ? kIntegerToken : kToken; }

/// Products see what is in shared memory if it has been written, before, and has been shown to them.
void Asynchronous::check(int thread, const Product &p, int site) {
  auto at = [&](uint32_t offset) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(host.shared) + offset;
    const Stamp &write = host.shadow->writeOf(address);
    if (write.thread == 0)
      return "read of shared memory that the block has not written, by a product";
    if (!order.sees(thread, int(write.thread) - 1, write.count))
      return "race of a product with a write to shared memory";
    const bool isShown = write.isBulk || order.shows(thread, int(write.thread) - 1, write.count);
    return isShown ? "" : "a write that is not shown to a product";
  };
  std::string wrong;
  for (int line = 0; line < kRows && wrong.empty() && !p.isLeftInRegisters; ++line)
    for (int step = 0; step < p.steps() && wrong.empty(); step += p.piece())
      wrong = at(p.ofLeft(line, step));
  for (int step = 0; step < p.steps() && wrong.empty(); step += p.hasColumns ? p.piece() : 1)
    for (int column = 0; column < 2 * p.sums && wrong.empty(); column += p.hasColumns ? 1 : p.piece())
      wrong = at(p.ofRight(step, column));
  if (!wrong.empty())
    host.report(thread, site, wrong);
}

void Asynchronous::multiply(int first, const std::array<Product, fragments::kGroupLanes> &parts,
                            const std::array<float *, fragments::kGroupLanes> &sums, int site) {
  std::deque<Started> &all = products[size_t(first / fragments::kGroupLanes)];
  const Product &product = parts[0];
  const uint32_t number = uint32_t(all.size());
  if ((!product.left.isKnown() && !product.isLeftInRegisters) || !product.right.isKnown() ||
      std::ranges::any_of(parts, [&](const Product &other) { return !(other == product); }))
    return host.report(first, site, "a product of matrices that are not known, or not the same for all threads");
  if ((number + 1) * kMostSums + kMostSums >= kTokens)
    return host.report(first, site, "too many products for the emulator");
  Started &started = all.emplace_back(Started{product, site, {}, {}});
  for (int i = 0; i < fragments::kGroupLanes; ++i) {
    if (!members[size_t(first) + size_t(i)].isFenced)
      host.report(first + i, site, "a product whose sums are not ordered behind other uses of their registers");
    started.fragments.push_back(parts[size_t(i)].fragment);
    started.sums.emplace_back(sums[size_t(i)], sums[size_t(i)] + product.sums);
    for (uint32_t n = 0; n < uint32_t(product.sums); ++n)
      sums[size_t(i)][n] = std::bit_cast<float>(tokenOf(product.type) | ((number + 1) * kMostSums + n));
  }
  check(first, product, site);
}

float Asynchronous::valueOf(int group, int member, float sum) const {
  const uint32_t bits = std::bit_cast<uint32_t>(sum), token = bits & ~(kTokens - 1);
  if ((token != kToken && token != kIntegerToken) || (bits & (kTokens - 1)) < kMostSums)
    return sum;
  const uint32_t number = (bits & (kTokens - 1)) / kMostSums - 1;
  const std::deque<Started> &all = products[size_t(group)];
  if (number >= all.size() || !all[number].isDone[size_t(member / kWarp)] || token != tokenOf(all[number].product.type))
    return sum;
  return all[number].sums[size_t(member)][bits % kMostSums];
}

double Asynchronous::load(int reader, const Started &s, uint32_t offset, bool isRight, bool isFirstOfPiece) {
  if (isFirstOfPiece)
    host.read(reader, s.site, offset, 16);
  if (s.product.elementBytes() == 1)
    return fragments::fromByte(s.product.type, isRight, uint8_t(host.shared[offset]));
  uint16_t bits;
  std::memcpy(&bits, host.shared + offset, sizeof bits);
  return double(fragments::toFloat(s.product.type, bits));
}

std::vector<double> Asynchronous::leftOf(int first, int warp, const Started &s) {
  const int steps = s.product.steps(), firstLane = warp * kWarp;
  std::vector<double> left(size_t(kWarpRows) * size_t(steps));
  auto at = [&](int row, int step) -> double & { return left[size_t(row) * size_t(steps) + size_t(step)]; };
  for (int lane = firstLane; s.product.isLeftInRegisters && lane < firstLane + kWarp; ++lane)
    for (int i = 0; i < 8; ++i) {
      const fragments::Place place = fragments::groupLeftPlace(lane, i);
      const uint32_t both = s.fragments[size_t(lane)][size_t(i / 2)];
      at(place.row % kWarpRows, place.column) = fragments::toFloat(s.product.type, uint16_t(both >> i % 2 * 16));
    }
  for (int row = 0; !s.product.isLeftInRegisters && row < kWarpRows; ++row)
    for (int step = 0; step < steps; ++step)
      at(row, step) = load(first + firstLane, s, s.product.ofLeft(warp * kWarpRows + row, step), /*isRight=*/false,
                           step % s.product.piece() == 0);
  return left;
}

/// Step by step.
std::vector<double> Asynchronous::rightOf(int reader, const Started &s) {
  const int columns = 2 * s.product.sums, steps = s.product.steps();
  std::vector<double> right;
  right.reserve(size_t(columns) * size_t(steps));
  for (int step = 0; step < steps; ++step)
    for (int column = 0; column < columns; ++column)
      right.push_back(load(reader, s, s.product.ofRight(step, column), /*isRight=*/true,
                           (s.product.hasColumns ? step : column) % s.product.piece() == 0));
  return right;
}

/// Adds the products of a row with all columns of the right side.
static void addRow(fragments::Element type, std::span<const double> row, std::span<const double> right,
                   std::span<double> sums) {
  const size_t columns = sums.size();
  if (!fragments::isOfFloat8(type)) {
    for (size_t step = 0; step < row.size(); ++step)
      for (size_t column = 0; column < columns; ++column)
        sums[column] += row[step] * right[step * columns + column];
    return;
  }
  std::vector<double> addends(row.size() + 1);
  for (size_t column = 0; column < columns; ++column) {
    addends[0] = sums[column];
    for (size_t step = 0; step < row.size(); ++step)
      addends[step + 1] = row[step] * right[step * columns + column];
    sums[column] = double(fragments::addCut(addends));
  }
}

void Asynchronous::compute(int first, int warp, size_t number) {
  const int group = first / fragments::kGroupLanes;
  Started &s = products[size_t(group)][number];
  const size_t steps = size_t(s.product.steps()), columns = 2 * size_t(s.product.sums);
  const std::vector<double> left = leftOf(first, warp, s), right = rightOf(first + warp * kWarp, s);
  std::vector<double> sums(kWarpRows * columns);
  auto forSums = [&](auto body) {
    for (int member = warp * kWarp; member < (warp + 1) * kWarp; ++member)
      for (int i = 0; i < s.product.sums; ++i) {
        const fragments::Place at = fragments::groupSumPlace(member, i);
        float &place = s.sums[size_t(member)][size_t(i)];
        body(place, valueOf(group, member, place), sums[size_t(at.row % kWarpRows) * columns + size_t(at.column)]);
      }
  };
  const bool isOfIntegers = fragments::isOfIntegers(s.product.type); // they wrap, and are exact in f64 before
  if (!isOfIntegers)
    forSums([](float &, float earlier, double &sum) { sum = double(earlier); });
  for (size_t row = 0; row < kWarpRows; ++row)
    addRow(s.product.type, std::span(left).subspan(row * steps, steps), right,
           std::span(sums).subspan(row * columns, columns));
  forSums([&](float &place, float earlier, double sum) {
    place = isOfIntegers ? std::bit_cast<float>(uint32_t(std::bit_cast<int32_t>(earlier) + int64_t(sum))) : float(sum);
  });
  s.isDone[size_t(warp)] = true;
}

void Asynchronous::commit(int thread) {
  members[size_t(thread)].groups.push_back(products[size_t(thread / fragments::kGroupLanes)].size());
}

// As late as it may be: when a thread of the warp waits.
void Asynchronous::wait(int thread, size_t groups) {
  const std::vector<size_t> &ends = members[size_t(thread)].groups;
  const int group = thread / fragments::kGroupLanes, warp = thread % fragments::kGroupLanes / kWarp;
  const size_t end = ends.size() > groups ? ends[ends.size() - 1 - groups] : 0;
  for (size_t i = 0; i < end; ++i)
    if (!products[size_t(group)][i].isDone[size_t(warp)])
      compute(group * fragments::kGroupLanes, warp, i);
}

void Asynchronous::resolve(int thread, float *sums, int count) {
  members[size_t(thread)].isFenced = false;
  for (int i = 0; i < count; ++i)
    sums[i] = valueOf(thread / fragments::kGroupLanes, thread % fragments::kGroupLanes, sums[i]);
}

} // namespace burin::test::simt
