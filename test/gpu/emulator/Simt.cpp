#include "test/gpu/emulator/SimtRunning.h"
#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <sstream>
#include <sys/mman.h>
#include <tuple>
#include <utility>

// Saves what a function must keep and the stack pointer, and goes on where another context has stopped.
extern "C" void burinSimtSwitch(void **from, void *to);
asm(R"(
.text
.type burinSimtSwitch, @function
burinSimtSwitch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size burinSimtSwitch, .-burinSimtSwitch
)");

namespace burin::test::simt {

Running *running = nullptr;
Shadow sharedShadow;
Counters totals;

namespace {

constexpr int kMostThreads = 1024;
constexpr size_t kStackBytes = 256 << 10, kMostErrors = 8;

/// The stacks of all threads of a block, mapped once.
std::byte *stacks() {
  static std::byte *const memory = [] {
    void *all = mmap(nullptr, kMostThreads * kStackBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
      throw std::bad_alloc();
    for (int i = 0; i < kMostThreads; ++i) // an overflow is a crash
      mprotect(static_cast<std::byte *>(all) + i * kStackBytes, 4096, PROT_NONE);
    return static_cast<std::byte *>(all);
  }();
  return memory;
}

std::mutex oneLaunch, found;
std::vector<std::string> errors;
std::deque<std::string> sites;
int64_t multiprocessors = 3;
Shadow globalShadow;
alignas(1 << 18) std::byte shared[kSharedBytes]; // descriptors of matrices have the lower 18 bits

std::string siteName(int32_t site) {
  std::lock_guard lock(found);
  return site < 0 ? "?" : sites[size_t(site)];
}

} // namespace

void report(const std::string &what, int32_t site) {
  running->failed = true;
  if (++running->errors > kMostErrors)
    return;
  std::string text = running->kernel->name + ", block " + std::to_string(running->block) + ", thread " +
                     std::to_string(running->thread) + ": " + what + " at " + siteName(site);
  std::lock_guard lock(found);
  errors.push_back(std::move(text));
}

void toScheduler(State state, int32_t site) {
  Thread &self = running->threads[size_t(running->thread)];
  self.state = state;
  self.site = site;
  burinSimtSwitch(&self.stackPointer, running->scheduler);
}

namespace {

[[noreturn]] void threadMain() {
  running->function(running->operands, running->sizes, running->scratch, &running->error);
  checkCopiesAtEnd();
  toScheduler(State::Done, -1);
  std::abort();
}

void prepare(Thread &thread, int index) {
  auto *top = reinterpret_cast<void **>(stacks() + size_t(index + 1) * kStackBytes);
  *--top = nullptr;
  *--top = reinterpret_cast<void *>(&threadMain);
  for (int i = 0; i < 6; ++i)
    *--top = nullptr;
  thread.stackPointer = static_cast<void *>(top);
  thread.state = State::Ready;
}

void runReady() {
  for (size_t i = 0; i < running->threads.size(); ++i)
    if (running->threads[i].state == State::Ready) {
      running->thread = int(i);
      burinSimtSwitch(&running->scheduler, running->threads[i].stackPointer);
    }
}

} // namespace

bool together(size_t from, size_t to, State state) {
  const Thread &first = running->threads[from];
  for (size_t i = from; i < to; ++i)
    if (running->threads[i].state != state || running->threads[i].site != first.site)
      return false;
  return true;
}

namespace {

int sourceLane(const ShuffleRequest &r, int lane, bool &inside) {
  int clamp = r.clamp & 31, segment = r.clamp >> 8 & 31;
  int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
  int from = 0;
  switch (r.kind) {
  case Shuffle::Down:
    from = lane + r.lane, inside = from <= most;
    break;
  case Shuffle::Up:
    from = lane - r.lane, inside = from >= most;
    break;
  case Shuffle::Butterfly:
    from = lane ^ r.lane, inside = from <= most;
    break;
  case Shuffle::Index:
    from = least | (r.lane & ~segment & 31), inside = from <= most;
    break;
  }
  return inside ? from : lane;
}

void shuffleWarp(size_t first) {
  Thread *warp = &running->threads[first];
  for (int lane = 0; lane < kWarp; ++lane) {
    running->thread = int(first) + lane;
    ShuffleRequest &r = warp[lane].request;
    if (r.mask != -1)
      report("a shuffle of part of a warp, which the emulator does not know", warp[lane].site);
    bool inside = true;
    r.result = warp[sourceLane(r, lane, inside)].request.value;
    warp[lane].state = State::Ready;
  }
}

void meetInWarp(size_t first) {
  running->asynchronous.order.meet(first, kWarp);
  for (size_t lane = 0; lane < kWarp; ++lane)
    running->threads[first + lane].state = State::Ready;
}

void multiplyInWarp(size_t first) {
  Thread *warp = &running->threads[first];
  std::array<fragments::Multiplied *, kWarp> parts;
  for (int lane = 0; lane < kWarp; ++lane)
    parts[size_t(lane)] = warp[lane].product.parts, warp[lane].state = State::Ready;
  fragments::multiply(warp[0].product.type, parts);
}

void loadInWarp(size_t first) {
  Thread *warp = &running->threads[first];
  std::array<const uint16_t *, kWarp> rows;
  for (int lane = 0; lane < kWarp; ++lane)
    rows[size_t(lane)] = reinterpret_cast<const uint16_t *>(warp[lane].matrices.row), warp[lane].state = State::Ready;
  std::array<std::array<uint32_t, 4>, kWarp> result;
  fragments::loadMatrices(rows, warp[0].matrices.transposed, result);
  for (int lane = 0; lane < kWarp; ++lane)
    std::memcpy(warp[lane].matrices.result, result[size_t(lane)].data(), sizeof result[0]);
}

/// Lets go on those who wait for something that has come about. False if there is nobody.
bool release() {
  size_t count = running->threads.size();
  bool any = false;
  if (together(0, count, State::AtBarrier)) {
    ++running->interval;
    if (running->asynchronous.isUsed())
      running->asynchronous.order.meet();
    for (Thread &thread : running->threads)
      thread.state = State::Ready;
    return true;
  }
  constexpr std::pair<State, void (*)(size_t)> kOfWarps[] = {{State::AtWarpBarrier, meetInWarp},
                                                             {State::AtShuffle, shuffleWarp},
                                                             {State::AtProduct, multiplyInWarp},
                                                             {State::AtMatrices, loadInWarp}};
  for (size_t first = 0; first + kWarp <= count; first += kWarp)
    for (auto [state, work] : kOfWarps)
      if (together(first, first + kWarp, state)) {
        work(first);
        any = true;
        break;
      }
  if (!running->asynchronous.isUsed())
    return any;
  return releasePhases() || any || (running->asynchronous.deliver() && (releasePhases(), true));
}

void reportStuck() {
  const char *names[] = {"is ready",           "waits at a barrier",      "waits for its warp",
                         "waits for its warp", "waits for its warp",      "waits for its warp",
                         "waits for a phase",  "waits for its warpgroup", "has ended"};
  std::vector<std::pair<State, int32_t>> groups;
  std::string text = "threads wait for others in vain:";
  for (size_t i = 0; i < running->threads.size(); ++i) {
    const Thread &thread = running->threads[i];
    std::pair group{thread.state, thread.state == State::Done ? -1 : thread.site};
    bool isKnown = false;
    for (auto &other : groups)
      isKnown |= other == group;
    if (isKnown)
      continue;
    groups.push_back(group);
    running->thread = int(i);
    text += " thread " + std::to_string(i) + " " + names[int(thread.state)] +
            (thread.state == State::Done ? "" : " at " + siteName(thread.site)) + ";";
  }
  report(text, -1);
}

void runBlock() {
  running->threads.assign(size_t(running->kernel->threads), {});
  sharedShadow.clear();
  std::memset(shared, 0xFF, kSharedBytes);
  if (running->kernel->usesPhases)
    startPhases();
  for (size_t i = 0; i < running->threads.size(); ++i)
    prepare(running->threads[i], int(i));
  for (;;) {
    runReady();
    bool done = true;
    for (const Thread &thread : running->threads)
      done &= thread.state == State::Done;
    if (done && running->asynchronous.isUsed())
      running->asynchronous.finish();
    if (done)
      return;
    if (!release())
      return reportStuck();
  }
}

/// The shared variable that holds all of these bytes.
const SharedVariable *variableOf(size_t offset, int64_t bytes) {
  for (const SharedVariable &v : running->kernel->shared)
    if (offset >= v.offset && offset + size_t(bytes) <= v.offset + v.bytes)
      return &v;
  return nullptr;
}

/// Blocks of a group, and of all.
std::pair<int64_t, int64_t> groupsOf(const Kernel &kernel, const int64_t *sizes) {
  std::istringstream words(kernel.groups);
  std::string group, all;
  words >> group >> all;
  auto number = [&](const std::string &text) {
    return text[0] == 's' ? sizes[std::stoul(text.substr(1))] : int64_t(std::stoll(text));
  };
  return {std::max<int64_t>(number(group), 1), number(all)};
}

} // namespace

std::byte *sharedMemory() { return shared; }
void setMultiprocessors(int64_t count) { multiprocessors = count; }

int64_t launch(const Kernel &kernel, ThreadFunction function, void *const *operands, const int64_t *sizes,
               void *scratch, int64_t lo, int64_t hi) {
  std::lock_guard lock(oneLaunch);
  Running now;
  now.kernel = &kernel;
  now.function = function;
  now.operands = operands;
  now.sizes = sizes;
  now.scratch = scratch;
  now.blocks = multiprocessors;
  if (kernel.isPersistent)
    hi = std::min(hi, now.blocks);
  int64_t group = INT64_MAX;
  if (!kernel.groups.empty() && !kernel.isLaunchedByGroup)
    std::tie(group, hi) = groupsOf(kernel, sizes);
  now.begun = Blocks(lo);
  running = &now;
  globalShadow.clear();
  ++totals.launches;
  for (now.block = lo; now.block < hi && !now.failed; ++now.block) {
    if (now.block % group == 0)
      globalShadow.clear();
    now.begun.begin(++now.interval);
    ++totals.blocks;
    if (kernel.synchronises)
      runBlock();
    else
      for (now.thread = 0; now.thread < kernel.threads; ++now.thread)
        function(operands, sizes, scratch, &now.error);
  }
  running = nullptr;
  return now.error;
}

std::vector<std::string> takeErrors() {
  std::lock_guard lock(found);
  return std::exchange(errors, {});
}

int32_t addSite(std::string description) {
  std::lock_guard lock(found);
  sites.push_back(std::move(description));
  return int32_t(sites.size() - 1);
}

Counters counters() {
  std::lock_guard lock(oneLaunch);
  return totals;
}

int32_t threadIndex() { return running->thread; }
int32_t blockIndex() { return int32_t(running->block); }
int32_t blockCount() {
  if (!running->kernel->isPersistent)
    report("the number of blocks is known for persistent kernels only", -1);
  return int32_t(running->blocks);
}

void barrier(int32_t site) {
  ++totals.barriers;
  toScheduler(State::AtBarrier, site);
}

void warpBarrier(int32_t site) { toScheduler(State::AtWarpBarrier, site); }

int32_t shuffle(Shuffle kind, int32_t mask, int32_t value, int32_t lane, int32_t clamp, int32_t site) {
  ++totals.shuffles;
  Thread &self = running->threads[size_t(running->thread)];
  self.request = {kind, mask, value, lane, clamp, 0};
  toScheduler(State::AtShuffle, site);
  return self.request.result;
}

void access(const std::byte *address, int64_t bytes, int32_t kind, int32_t site) {
  if (bytes == 0) // a lane that is masked off
    return;
  bool writes = kind != Read, atomic = kind == Atomic;
  bool isShared = address >= shared && address < shared + kSharedBytes;
  Shadow &shadow = isShared ? sharedShadow : globalShadow;
  const Asynchronous &units = running->asynchronous;
  Stamp now{.interval = running->interval, .site = site, .thread = uint16_t(running->thread + 1)};
  if (units.isUsed())
    now.count = units.landingCount ? units.landingCount : units.order.count(running->thread),
    now.isBulk = units.isLandingBulk;
  auto isOrdered = [&](const Stamp &before) { return units.isUsed() && units.isOrdered(running->thread, before); };
  auto at = reinterpret_cast<uintptr_t>(address);
  if (isShared) {
    ++totals.sharedAccesses;
    if (!variableOf(size_t(address - shared), bytes))
      return report("access to " + std::to_string(bytes) + " bytes of shared memory outside of any variable", site);
    if (units.isUsed() && units.touches(at, size_t(bytes)))
      return report("access to a barrier in shared memory", site);
  }
  if (isShared && !writes && !shadow.areWritten(at, size_t(bytes)))
    return report("read of shared memory that the block has not written", site);
  if (const Stamp *other = shadow.access(at, size_t(bytes), now, running->begun.current(), writes, atomic, isOrdered))
    return report("race with thread " + std::to_string(other->thread - 1) + " of block " +
                      std::to_string(running->begun.of(*other)) + " at " + siteName(other->site) + ", on " +
                      (isShared ? "shared" : "global") + " memory",
                  site);
}

void multiply(fragments::Element type, fragments::Multiplied *parts, int32_t site) {
  ++totals.products;
  running->threads[size_t(running->thread)].product = {type, parts};
  toScheduler(State::AtProduct, site);
}

void loadMatrices(const std::byte *row, int32_t transposed, uint32_t *result, int32_t site) {
  if (reinterpret_cast<uintptr_t>(row) % kCopiedBytes)
    report("the address of a row of a matrix is not a multiple of 16", site);
  access(row, kCopiedBytes, Read, site);
  running->threads[size_t(running->thread)].matrices = {row, transposed != 0, result};
  toScheduler(State::AtMatrices, site);
}

void copyAsync(std::byte *to, const std::byte *from, int32_t bytes, int32_t site) {
  ++totals.copies;
  auto at = reinterpret_cast<uintptr_t>(to);
  if (at % kCopiedBytes || (bytes && reinterpret_cast<uintptr_t>(from) % kCopiedBytes))
    return report("an address of an asynchronous copy is not a multiple of 16", site);
  access(to, kCopiedBytes, Write, site);
  access(from, bytes, Read, site);
  sharedShadow.forget(at, kCopiedBytes);
  running->threads[size_t(running->thread)].copies.push_back({to, from, bytes, site});
}

uint32_t permuteBytes(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t bytes = uint64_t(high) << 32 | low;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i)
    result |= uint32_t(bytes >> (selector >> 4 * i & 7) * 8 & 0xFF) << 8 * i;
  return result;
}

uint32_t roundToTf32(float x) { return fragments::roundToTf32(x); }

float reciprocalApproximately(float x) {
  auto flushed = [](float v) { return std::fabs(v) < std::numeric_limits<float>::min() ? std::copysign(0.f, v) : v; };
  return flushed(1 / flushed(x));
}

float exp2Approximately(float x) {
  float y = std::exp2(x);
  return std::fabs(y) < FLT_MIN ? 0 : y;
}

uint32_t packPair(fragments::Element type, float low, float high) { return fragments::packPair(type, low, high); }

void commitCopies() {
  Thread &self = running->threads[size_t(running->thread)];
  self.groups.push_back(std::exchange(self.copies, {}));
}

void waitForCopies(int32_t groups) {
  Thread &self = running->threads[size_t(running->thread)];
  for (; self.groups.size() > size_t(groups); self.groups.erase(self.groups.begin()))
    land(self.groups.front());
}

void land(const std::vector<Copy> &copies) {
  for (const Copy &copy : copies) {
    access(copy.to, kCopiedBytes, Write, copy.site);
    if (running->failed)
      return;
    std::memset(copy.to, 0, kCopiedBytes);
    std::memcpy(copy.to, copy.from, size_t(copy.bytes));
  }
}

} // namespace burin::test::simt
