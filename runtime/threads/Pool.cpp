#include "runtime/threads/Pool.h"
#include "runtime/threads/CpuTopology.h"
#include <algorithm>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <mutex>

namespace burin::rt {

namespace {
struct Identity {
  Pool *pool = nullptr; // the pool that this thread is a worker of
  int index = 0;
  int guestChunks = 0; // chunks of other jobs on this thread's stack, as a guest
  int coolDown = 0;    // idle periods without spinning, after the thread was descheduled during one
};
thread_local Identity self;

using Clock = std::chrono::steady_clock;
constexpr std::chrono::nanoseconds kSpin = std::chrono::microseconds(60), kSpinAwake = std::chrono::milliseconds(1);
// A larger gap between consecutive clock reads means that the thread was descheduled.
constexpr std::chrono::nanoseconds kDescheduled = std::chrono::microseconds(30);
constexpr int kCoolDown = 16;
constexpr int kBriefSpins = 32; // 1-2 µs: cheaper than sleeping even where longer spinning is not
} // namespace

Pool &Pool::shared() {
  static Pool *pool = new Pool(defaultThreads());
  return *pool;
}

Pool::Pool(int threads)
    : count(std::max(threads, 1)), maySpin(count <= availableCores()), shares(new Share[size_t(count) * kSlots]) {}

Pool::~Pool() {
  stopping.store(true);
  int threads = std::max(started.load(), 0);
  unpark(threads);
  for (int i = 0; i < threads; ++i)
    pthread_join(handles[i], nullptr);
}

bool Pool::insideWork() { return self.pool || self.guestChunks; }

//===----------------------------------------------------------------------===//
// parallelFor
//===----------------------------------------------------------------------===//

static void runSerially(int64_t n, int64_t grain, Pool::Body body, void *ctx, int worker) {
  for (int64_t lo = 0; n - lo > 0; lo += std::min(grain, n - lo))
    body(ctx, lo, lo + std::min(grain, n - lo), worker);
}

void Pool::parallelFor(int64_t n, int64_t grain, Body body, void *ctx) {
  int worker = self.pool == this ? self.index : 0;
  grain = std::max<int64_t>({grain, 1, n / kMostChunks + 1});
  int helpers = n > grain ? workers() : 0;
  int index = helpers ? claimSlot() : -1;
  if (index < 0)
    return runSerially(n, grain, body, ctx, worker);

  Slot &slot = slots[index];
  slot.body = body;
  slot.ctx = ctx;
  slot.n = n;
  slot.grain = grain;
  slot.core = currentCore();
  int64_t chunks = (n - 1) / grain + 1;
  slot.shares = static_cast<int>(std::min<int64_t>(chunks, count));
  for (int i = 0; i < slot.shares; ++i)
    sharesOf(slot)[i].reset(uint32_t(chunks * i / slot.shares), uint32_t(chunks * (i + 1) / slot.shares));
  slot.owner.store(worker, std::memory_order_relaxed);
  slot.open.store(true);
  open.fetch_or(uint64_t(1) << index);
  wakeWorkers(static_cast<int>(std::min<int64_t>(chunks - 1, helpers)));
  if (worker)
    pokeGuest();
  runChunks(slot, worker);
  closeJob(slot);
  used.fetch_and(~(uint64_t(1) << index), std::memory_order_release);
}

int Pool::claimSlot() {
  uint64_t taken = used.load(std::memory_order_relaxed);
  while (~taken) {
    int index = std::countr_one(taken);
    if (used.compare_exchange_weak(taken, taken | uint64_t(1) << index, std::memory_order_acquire))
      return index;
  }
  return -1;
}

Pool::Share::Taken Pool::Share::take(bool front) {
  uint64_t now = left.load(std::memory_order_relaxed);
  for (;;) {
    auto from = uint32_t(now), to = uint32_t(now >> 32);
    if (from >= to)
      return {0, 0};
    const uint32_t count = front && to - from >= kManyChunks ? 2 : 1;
    uint64_t then = front ? now + count : now - (uint64_t(1) << 32);
    if (left.compare_exchange_weak(now, then, std::memory_order_relaxed))
      return front ? Taken{from, count} : Taken{to - 1, count};
  }
}

/// Called by the owner or a visitor, so that the slot cannot be reused for another job meanwhile.
void Pool::runChunks(Slot &slot, int worker) {
  Body body = slot.body;
  void *ctx = slot.ctx;
  int64_t n = slot.n, grain = slot.grain;
  for (int i = 0; i < slot.shares; ++i) {
    int whose = (worker + i) % slot.shares;
    Share &share = sharesOf(slot)[whose];
    for (Share::Taken taken; (taken = share.take(whose == worker)).count;) {
      int64_t lo = taken.first * grain;
      body(ctx, lo, lo + std::min(taken.count * grain, n - lo), worker);
    }
  }
  open.fetch_and(~(uint64_t(1) << (&slot - slots))); // no chunks left
}

/// A claimed chunk belongs to the owner, which has returned from runChunks, or to a visitor: without visitors all
/// chunks are done.
void Pool::closeJob(Slot &slot) {
  slot.open.store(false);
  auto empty = [&] { return (slot.visitors.load() & ~kOwnerAsleep) == 0; };
  if (empty() || spinUntil(empty))
    return;
  for (;;) {
    uint32_t visitors = slot.visitors.fetch_or(kOwnerAsleep) | kOwnerAsleep;
    if (visitors == kOwnerAsleep)
      break;
    futexWait(slot.visitors, visitors);
  }
  slot.visitors.fetch_and(~kOwnerAsleep);
}

bool Pool::helpJobs(int worker, bool guest) {
  uint64_t candidates = open.load(std::memory_order_relaxed);
  bool helped = false;
  for (; candidates && !helped; candidates &= candidates - 1) {
    Slot &slot = slots[std::countr_zero(candidates)];
    // Worker index 0 is used by the owner if it is not a worker.
    if (guest && slot.owner.load(std::memory_order_relaxed) == 0)
      continue;
    slot.visitors.fetch_add(1);
    // Checked again: the slot may belong to another job by now.
    if (slot.open.load() && !(guest && slot.owner.load(std::memory_order_relaxed) == 0)) {
      // The system may wake a thread on the core of its waker, and leave both there for tens of milliseconds while
      // another core is idle.
      if (maySpin && !guest && slot.core == currentCore())
        leaveCore(slot.core);
      self.guestChunks += guest;
      runChunks(slot, worker);
      self.guestChunks -= guest;
      helped = true;
    }
    if (slot.visitors.fetch_sub(1) == (kOwnerAsleep | 1))
      futexWake(slot.visitors, 1);
  }
  return helped;
}

bool Pool::joinable(bool guest) const {
  uint64_t candidates = open.load();
  if (!guest)
    return candidates;
  for (; candidates; candidates &= candidates - 1)
    if (slots[std::countr_zero(candidates)].owner.load(std::memory_order_relaxed))
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Jobs of their own
//===----------------------------------------------------------------------===//

void Pool::submit(Work &work) {
  workers();
  work.next = nullptr;
  int length;
  {
    std::lock_guard lock(queueLock);
    (head ? tail->next : head) = &work;
    tail = &work;
    length = queued.fetch_add(1) + 1;
  }
  wakeWorkers(length);
}

Pool::Work *Pool::takeWork() {
  if (!queued.load(std::memory_order_relaxed))
    return nullptr;
  Work *work;
  int left;
  {
    std::lock_guard lock(queueLock);
    work = head;
    if (!work)
      return nullptr;
    head = work->next;
    left = queued.fetch_sub(1) - 1;
  }
  // The spinning thread that `submit` relied on may have found other work.
  if (left)
    wakeWorkers(left);
  return work;
}

//===----------------------------------------------------------------------===//
// Workers
//===----------------------------------------------------------------------===//

int Pool::workers() {
  int threads = started.load(std::memory_order_acquire);
  if (threads < 0) {
    start();
    threads = started.load(std::memory_order_acquire);
  }
  return threads;
}

namespace {
struct ThreadStart {
  Pool *pool;
  int index;
};
} // namespace

void Pool::start() {
  pthread_mutex_lock(&startMutex);
  if (started.load() < 0) {
    handles.reset(new pthread_t[count]);
    // Signals are for the application's threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int threads = 0;
    for (; threads < count - 1; ++threads) {
      auto *argument = new ThreadStart{this, threads + 1};
      if (pthread_create(&handles[threads], nullptr, threadMain, argument)) {
        delete argument;
        break;
      }
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    started.store(threads, std::memory_order_release);
  }
  pthread_mutex_unlock(&startMutex);
}

void *Pool::threadMain(void *argument) {
  auto [pool, index] = *static_cast<ThreadStart *>(argument);
  delete static_cast<ThreadStart *>(argument);
  char name[16];
  std::snprintf(name, sizeof name, "burin-%d", index);
  pthread_setname_np(pthread_self(), name);
  self.pool = pool;
  self.index = index;
  pool->workerLoop(index);
  return nullptr;
}

void Pool::workerLoop(int index) {
  while (!stopping.load(std::memory_order_relaxed)) {
    if (runSomething(index))
      continue;
    spinners.fetch_add(1);
    bool found = spinUntil([&] { return somethingToRun(); });
    spinners.fetch_sub(1);
    if (!found)
      park();
  }
}

bool Pool::runSomething(int worker) {
  if (Work *work = takeWork()) {
    work->run(*work);
    return true;
  }
  return helpJobs(worker, false);
}

bool Pool::somethingToRun() const { return open.load() || queued.load() || stopping.load(); }

template <class Ready> bool Pool::spinUntil(Ready ready) {
  for (int i = 0; i < kBriefSpins; ++i) {
    if (ready())
      return true;
    relax();
  }
  if (!maySpin || self.coolDown > 0) {
    self.coolDown -= self.coolDown > 0;
    return ready();
  }
  auto limit = awake.load(std::memory_order_relaxed) ? kSpinAwake : kSpin;
  auto begin = Clock::now();
  for (auto last = begin;;) {
    for (int i = 0; i < 8; ++i) {
      if (ready())
        return true;
      relax();
    }
    auto now = Clock::now();
    if (now - last > kDescheduled)
      self.coolDown = kCoolDown;
    if (now - begin > limit || self.coolDown)
      return ready();
    last = now;
  }
}

void Pool::wakeWorkers(int wanted) {
  int coming = spinners.load() + static_cast<int>(tokens.load());
  if (wanted > coming)
    unpark(wanted - coming);
}

void Pool::unpark(int most) {
  int asleep = sleepers.load();
  while (asleep > 0) {
    int chosen = std::min(asleep, most);
    if (!sleepers.compare_exchange_weak(asleep, asleep - chosen))
      continue;
    tokens.fetch_add(static_cast<uint32_t>(chosen));
    return futexWake(tokens, chosen);
  }
}

void Pool::park() {
  sleepers.fetch_add(1);
  // Work published after this sees the sleeper; work published before is seen here.
  if (somethingToRun())
    for (int asleep = sleepers.load(); asleep > 0;)
      if (sleepers.compare_exchange_weak(asleep, asleep - 1))
        return;
  for (;;) {
    uint32_t left = tokens.load();
    while (left > 0)
      if (tokens.compare_exchange_weak(left, left - 1))
        return;
    futexWait(tokens, 0);
  }
}

//===----------------------------------------------------------------------===//
// The guest
//===----------------------------------------------------------------------===//

bool Pool::lend(const Guest &guest) {
  if (guestSeated.exchange(true, std::memory_order_acquire))
    return false;
  auto busy = [&] { return guest.done(guest.ctx) || guest.runOne(guest.ctx) || joinable(true); };
  while (!guest.done(guest.ctx)) {
    if (guest.runOne(guest.ctx) || helpJobs(0, true) || spinUntil(busy))
      continue;
    uint32_t word = guestWord.load();
    guestAsleep.store(true);
    if (!busy())
      futexWait(guestWord, word);
    guestAsleep.store(false);
  }
  guestSeated.store(false, std::memory_order_release);
  return true;
}

void Pool::wakeGuest() {
  if (!guestAsleep.exchange(false))
    return;
  guestWord.fetch_add(1);
  futexWake(guestWord, 1);
}

} // namespace burin::rt
