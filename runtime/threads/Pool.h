// Runs independent pieces of work on the threads of this process.
//
// An idle worker spins for a short while, because the next step of a run is usually microseconds away, then sleeps in
// the kernel. It does not spin if there are more threads than cores, and stops when it notices that it was descheduled.
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
  /// The pool of the process; never destroyed. Its size is the number of cores that this process may use (affinity mask
  /// and cgroup quota), or the environment variable BURIN_NUM_THREADS.
  static Pool &shared();

  /// `threads` includes the caller: Pool(1) never starts a thread. Threads start with the first work for them.
  explicit Pool(int threads);
  /// All work must be complete.
  ~Pool();
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  /// Worker indices are 0..threads()-1.
  int threads() const { return count; }

  /// Splits [0, n) into chunks of `grain` (the last may be shorter) and returns when all are done. The chunks do not
  /// depend on the number of threads, but a body may get two adjacent ones. Each thread starts with a run of adjacent
  /// chunks, the same share in every call, so that data written by one call is in the cache of the core that reads it
  /// in the next. The calling thread takes part. May be called from several threads at once, and from inside a body.
  /// Concurrent bodies of one call have distinct `worker` indices; overlapping calls may both use an index, so scratch
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

  /// A single job. Must live until `run` is called, which may free it.
  struct Work {
    void (*run)(Work &) = nullptr;
    Work *next = nullptr;
  };
  /// Runs `work` on a worker thread, in the order of submission. Needs workers() > 0.
  void submit(Work &work);

  /// Number of worker threads, which this starts; fewer than threads() - 1 if the system refuses.
  int workers();

  /// For its lifetime, idle workers spin for up to a millisecond before they sleep: for runs of many steps.
  class Awake {
    Pool &pool;

  public:
    explicit Awake(Pool &pool) : pool(pool) { pool.awake.fetch_add(1, std::memory_order_relaxed); }
    ~Awake() { pool.awake.fetch_sub(1, std::memory_order_relaxed); }
    Awake(const Awake &) = delete;
    Awake &operator=(const Awake &) = delete;
  };

  /// Lends a waiting thread to the pool until `done`. It helps with chunks, and calls `runOne` for other work (which
  /// returns false if there is none). One thread at a time: returns false at once if there is a guest already.
  struct Guest {
    bool (*done)(void *ctx);
    bool (*runOne)(void *ctx);
    void *ctx;
  };
  bool lend(const Guest &guest);
  /// Makes the guest check `done` and `runOne` again. Call it after making either of them true.
  void pokeGuest() {
    if (guestAsleep.load())
      wakeGuest();
  }

  /// Whether the stack below contains work that the current code must not wait for: a worker thread in any work, or a
  /// guest in a chunk.
  static bool insideWork();

private:
  // A running parallelFor. `visitors` counts threads that may access the slot: the owner closes the job, then waits
  // until it is zero; a visitor increments it before it checks whether the job is open.
  struct alignas(64) Slot {
    Body body;
    void *ctx;
    int64_t n, grain;
    int shares; // number of shares, for the first worker indices
    int core;   // the core of the owner when it began
    std::atomic<uint32_t> visitors{0};
    std::atomic<int> owner{0};
    std::atomic<bool> open{false};
  };
  /// The chunks of a worker that are not taken yet: it takes them from the front, others from the end. Begin and end
  /// are halves of one word, so that no chunk is taken twice.
  struct alignas(64) Share {
    std::atomic<uint64_t> left;
    void reset(uint32_t from, uint32_t to) { left.store(uint64_t(to) << 32 | from, std::memory_order_relaxed); }
    struct Taken {
      int64_t first, count; // of chunks; none are left if `count` is 0
    };
    /// Takes one chunk, or two from the front of a share of many: kernels compute adjacent tasks faster together.
    Taken take(bool front);
  };
  static constexpr int kSlots = 64;
  static constexpr int64_t kMostChunks = UINT32_MAX;
  static constexpr uint32_t kManyChunks = 4; // of a share; with fewer, two at a time would leave threads idle
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
  std::atomic<int> started{-1}; // worker threads; -1: not started
  std::unique_ptr<pthread_t[]> handles;
  pthread_mutex_t startMutex = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<int> awake{0};
  std::atomic<bool> stopping{false};

  alignas(64) std::atomic<uint64_t> open{0}; // slots with unclaimed chunks
  std::atomic<int> queued{0};                // length of the list at `head`
  alignas(64) std::atomic<uint64_t> used{0}; // slots of running jobs
  alignas(64) SpinLock queueLock;
  Work *head = nullptr, *tail = nullptr;

  // Parking is a semaphore: a waker decrements the sleepers and adds as many tokens, so that no thread is woken twice.
  alignas(64) std::atomic<int> spinners{0}; // idle threads that spin
  std::atomic<int> sleepers{0};
  std::atomic<uint32_t> tokens{0};

  std::atomic<bool> guestSeated{false}, guestAsleep{false};
  std::atomic<uint32_t> guestWord{0};

  Slot slots[kSlots];
  std::unique_ptr<Share[]> shares; // `count` per slot
};

} // namespace burin::rt
