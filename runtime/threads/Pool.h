// Runs independent pieces of work on the threads of this process.
//
// A worker that runs out of work spins for a short while, because the next step of a run is usually
// microseconds away, then sleeps in the kernel. It does not spin where threads outnumber cores, and stops as
// soon as it notices that the system took its core away.
//
// Not fork-safe: a child of fork() has no workers, and must exec before it uses a pool that its parent used.
#pragma once
#include "runtime/support/Futex.h"
#include <memory>
#include <pthread.h>
#include <type_traits>

namespace burin::rt {

class Pool {
public:
  /// One per process and never destroyed. Its size is the number of cores this process may use (affinity mask
  /// and cgroup quota); the environment variable BURIN_NUM_THREADS overrides it.
  static Pool &shared();

  /// `threads` counts the caller: Pool(1) never starts a thread. Threads start with the first work for them.
  explicit Pool(int threads);
  /// All work must be done.
  ~Pool();
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  /// Worker indices are 0..threads()-1.
  int threads() const { return count; }

  /// Splits [0, n) into chunks of `grain` (the last may be shorter) and returns when all are done. The chunks
  /// do not depend on the number of threads. Each thread begins with a run of neighbouring chunks, the same share of
  /// the whole in every call: what one call wrote is in the cache of the core that the next one reads it on. The
  /// calling thread takes part. Safe from several threads at once and from inside a body. The `worker` indices that
  /// run at the same time within one call are distinct; two calls that overlap may both use an index, so scratch
  /// memory belongs to a call, not to the pool. Bodies must not throw.
  using Body = void (*)(void *ctx, int64_t lo, int64_t hi, int worker);
  void parallelFor(int64_t n, int64_t grain, Body body, void *ctx);

  template <class F>
    requires std::is_invocable_v<F &, int64_t, int64_t, int>
  void parallelFor(int64_t n, int64_t grain, F &&f) {
    parallelFor(
        n, grain,
        [](void *ctx, int64_t lo, int64_t hi, int worker) {
          (*static_cast<std::remove_reference_t<F> *>(ctx))(lo, hi, worker);
        },
        const_cast<void *>(static_cast<const void *>(&f)));
  }

  /// A job of its own. Lives until `run` is called, which may free it.
  struct Work {
    void (*run)(Work &) = nullptr;
    Work *next = nullptr;
  };
  /// Runs `work` on a worker thread, in the order of submission. Needs workers() > 0.
  void submit(Work &work);

  /// Threads besides the callers. Starts them; less than threads() - 1 if the system refuses to.
  int workers();

  /// While one lives, idle workers spin for up to a millisecond instead of sleeping early: for a run of many
  /// steps.
  class Awake {
    Pool &pool;

  public:
    explicit Awake(Pool &pool) : pool(pool) { pool.awake.fetch_add(1, std::memory_order_relaxed); }
    ~Awake() { pool.awake.fetch_sub(1, std::memory_order_relaxed); }
    Awake(const Awake &) = delete;
    Awake &operator=(const Awake &) = delete;
  };

  /// Lends a thread that would otherwise wait to the pool, until `done`. It helps with chunks, and calls
  /// `runOne` for other work (false: there is none). One thread at a time: false, at once, if the seat is
  /// taken.
  struct Guest {
    bool (*done)(void *ctx);
    bool (*runOne)(void *ctx);
    void *ctx;
  };
  bool lend(const Guest &guest);
  /// Makes the guest look at `done` and `runOne` again. Call it after making either of them true.
  void pokeGuest() {
    if (guestAsleep.load())
      wakeGuest();
  }

  /// True where the stack below holds work of someone else that the current code must not wait for: a worker
  /// thread in any work, or a guest in a chunk.
  static bool insideWork();

private:
  // A running parallelFor. `visitors` counts threads that may touch the slot: the owner closes the job, then
  // waits for it to reach zero; a visitor counts itself in before it asks whether the job is open.
  struct alignas(64) Slot {
    Body body;
    void *ctx;
    int64_t n, grain;
    int shares; // of the first so many worker indices
    int core;   // that the owner was on when it began
    std::atomic<uint32_t> visitors{0};
    std::atomic<int> owner{0};
    std::atomic<bool> open{false};
  };
  /// The chunks of a worker that nobody has taken: it takes them from the front, others from the end. Each of the two
  /// numbers is half of one, so that nobody takes a chunk twice.
  struct alignas(64) Share {
    std::atomic<uint64_t> left;
    void reset(uint32_t from, uint32_t to) { left.store(uint64_t(to) << 32 | from, std::memory_order_relaxed); }
    int64_t take(bool front); // a chunk, or -1
  };
  static constexpr int kSlots = 64;
  static constexpr int64_t kMostChunks = UINT32_MAX;
  static constexpr uint32_t kOwnerAsleep = 1u << 31;

  static void *threadMain(void *argument);
  void start();
  void workerLoop(int index);
  bool runSomething(int worker);
  bool somethingToRun() const;
  bool helpJobs(int worker, bool guest);
  bool joinable(bool guest) const;
  Share *sharesOf(const Slot &slot) { return &shares[(&slot - slots) * count]; }
  void runChunks(Slot &slot, int worker);
  void closeJob(Slot &slot);
  Work *takeWork();
  void wakeWorkers(int wanted);
  void park();
  void unpark(int most);
  void wakeGuest();
  int claimSlot();
  template <class Ready> bool spinUntil(Ready ready);

  const int count;
  const bool maySpin;
  std::atomic<int> started{-1}; // worker threads; -1: not yet
  std::unique_ptr<pthread_t[]> handles;
  pthread_mutex_t startMutex = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<int> awake{0};
  std::atomic<bool> stopping{false};

  alignas(64) std::atomic<uint64_t> open{0}; // slots with unclaimed chunks
  std::atomic<int> queued{0};                // length of the list at `head`
  alignas(64) std::atomic<uint64_t> used{0}; // slots that belong to a running job
  alignas(64) SpinLock queueLock;
  Work *head = nullptr, *tail = nullptr;

  // Parking is a semaphore: a waker takes sleepers off the count and leaves as many tokens, so that nobody
  // wakes the same thread twice.
  alignas(64) std::atomic<int> spinners{0}; // idle and awake
  std::atomic<int> sleepers{0};
  std::atomic<uint32_t> tokens{0};

  std::atomic<bool> guestSeated{false}, guestAsleep{false};
  std::atomic<uint32_t> guestWord{0};

  Slot slots[kSlots];
  std::unique_ptr<Share[]> shares; // `count` for each slot
};

} // namespace burin::rt
