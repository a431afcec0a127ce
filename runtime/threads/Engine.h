// Runs tasks as soon as their dependencies are done.
//
// Ready tasks are started in the order in which they were enqueued. They run on the workers of a pool and on threads
// that wait for tasks. A pool of one thread has no workers: tasks then run one at a time on a thread of the engine, or
// on a waiting thread in its place, exactly in the order of the calls (unless a task waits for a later one).
//
// A task may enqueue tasks, wait for tasks and call parallelFor. It must not wait for anything that another thread does
// only after a wait of its own has returned. Like the pool, the engine is not fork-safe.
#pragma once
#include "runtime/support/Intrusive.h"
#include "runtime/support/Status.h"
#include "runtime/threads/Pool.h"
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace burin::rt {

class Engine;

/// The failure of a task. Shared by the task whose work failed and all tasks that depend on it.
struct Failure : RefCounted<Failure> {
  Status status;
  std::exception_ptr exception; // thrown by the work; null if it returned `status`
  uint64_t order = 0;           // index of the failed task in the order of enqueueing

  Failure(Status status, std::exception_ptr exception) : status(std::move(status)), exception(std::move(exception)) {}
  static void destroy(Failure *failure) { delete failure; }
};
using FailureRef = IntrusivePtr<const Failure>;

class Task : public RefCounted<Task> {
public:
  /// Waits until the task is done or failed. Returns error().
  const Failure *wait();
  /// Done or failed.
  bool done() const { return (state.load(std::memory_order_acquire) & kStateMask) >= Done; }
  bool failed() const { return (state.load(std::memory_order_acquire) & kStateMask) == Failed; }
  /// Null unless failed(). Lives as long as the task.
  const Failure *error() const { return failed() ? failure.get() : nullptr; }

private:
  friend class Engine;
  friend class RefCounted<Task>;
  template <class F> friend struct TaskOf;
  enum State : uint32_t { Waiting, Ready, Running, Done, Failed };
  // Flags next to the state: kinds of waiters to notify.
  static constexpr uint32_t kStateMask = 7, kSleeperWaits = 8, kGuestWaits = 16;

  /// Runs the work if `run`, and destroys it.
  using Behaviour = IntrusivePtr<Failure> (*)(Task &, bool run);
  /// An entry in the dependents of a task: `to` waits for it, and fails with it unless `isOrder`. Stored in the memory
  /// of `to`.
  struct Edge {
    Task *to;
    Edge *next;
    bool isOrder;
  };
  static Edge closed; // terminates the list of a task that is done

  Task(Engine &engine, Behaviour behaviour, Edge *edges) : engine(engine), behaviour(behaviour), edges(edges) {}
  static void destroy(Task *task);

  Engine &engine;
  const Behaviour behaviour;
  Edge *const edges;
  std::atomic<uint32_t> state{Waiting};
  std::atomic<uint32_t> pending{0}; // dependencies that are not done
  std::atomic<Edge *> dependents{nullptr};
  uint64_t order = 0;
  size_t cost = 0;
  FailureRef failure;      // while waiting: the earliest failure of a dependency
  Task *child = nullptr;   // in the heap of ready tasks
  Task *sibling = nullptr; // in that heap, or in a list
};
using TaskRef = IntrusivePtr<Task>;

/// A task with its work: void() or Status().
template <class F> struct TaskOf : Task {
  union {
    F work;
  };

  template <class G>
  TaskOf(Engine &engine, Edge *edges, G &&work) : Task(engine, behave, edges), work(std::forward<G>(work)) {}
  ~TaskOf() = delete; // `behave` destroys the work, Task::destroy the rest

  static IntrusivePtr<Failure> call(F &work) {
    if constexpr (std::is_void_v<std::invoke_result_t<F &>>) {
      work();
    } else if (Status status = work(); !status.ok()) {
      return IntrusivePtr<Failure>::adopt(new Failure(std::move(status), nullptr));
    }
    return nullptr;
  }
  static IntrusivePtr<Failure> callAndCatch(F &work) {
#ifdef __cpp_exceptions
    try {
      return call(work);
    } catch (const std::exception &error) {
      return IntrusivePtr<Failure>::adopt(
          new Failure(Status(ErrorCode::Internal, error.what()), std::current_exception()));
    } catch (...) {
      return IntrusivePtr<Failure>::adopt(
          new Failure(Status(ErrorCode::Internal, "unknown exception"), std::current_exception()));
    }
#else
    return call(work);
#endif
  }
  static IntrusivePtr<Failure> behave(Task &task, bool run) {
    F &work = static_cast<TaskOf &>(task).work;
    IntrusivePtr<Failure> failure = run ? callAndCatch(work) : nullptr;
    work.~F();
    return failure;
  }
};

class Engine {
public:
  /// The engine of the process, on the shared pool. Never destroyed; the process waits for its tasks at exit.
  static Engine &shared();

  explicit Engine(Pool &pool);
  /// Waits for all tasks. No other thread may be in a call.
  ~Engine();
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  /// Runs `work` (void() or Status()) once every task in `deps` is done: tasks of this engine, or null. If one fails,
  /// the task fails with the same failure and its work does not run. The work is destroyed before the task is done.
  ///
  /// Blocks while the costs of tasks in flight exceed limit(), until they are at most half of it. A task that costs
  /// more than the limit still runs. A call from inside a task never blocks.
  template <class F> TaskRef enqueue(std::span<Task *const> deps, size_t costBytes, F &&work) {
    return enqueue(Dependencies{deps, {}}, costBytes, std::forward<F>(work), false);
  }
  struct Dependencies {
    std::span<Task *const> needed;
    std::span<Task *const> before; // the task waits for them, too, but runs whether they succeed or fail
  };
  /// If `isHeld`, the task has its place in the order, but does not run before begin(task).
  template <class F> TaskRef enqueue(const Dependencies &deps, size_t costBytes, F &&work, bool isHeld) {
    using Whole = TaskOf<std::decay_t<F>>;
    static_assert(alignof(Whole) <= alignof(std::max_align_t));
    constexpr size_t edgesAt = (sizeof(Whole) + alignof(Task::Edge) - 1) / alignof(Task::Edge) * alignof(Task::Edge);
    const size_t edgeCount = deps.needed.size() + deps.before.size();
    std::unique_ptr<char, FreeTask> memory(
        static_cast<char *>(::operator new(edgesAt + edgeCount * sizeof(Task::Edge))));
    auto *edges = reinterpret_cast<Task::Edge *>(memory.get() + edgesAt);
    auto *task = new (memory.get()) Whole(*this, edges, std::forward<F>(work));
    static_cast<void>(memory.release()); // the task frees itself
    launch(task, deps, costBytes, isHeld);
    return TaskRef::adopt(task);
  }
  /// Lets a held task run. Called once, by the thread that has enqueued it, before that thread waits for any task.
  void begin(Task &task);

  /// Waits until no task is in flight. Returns the failure of the task enqueued first among those whose work failed
  /// since the last call, and forgets them all. Inside a task, this is an error: it would wait for itself.
  FailureRef synchronize();

  /// Bytes; at first 256 MiB. A task counts its own size on top of its cost.
  size_t limit() const { return mostInFlight.load(std::memory_order_relaxed); }
  void setLimit(size_t bytes) { mostInFlight.store(bytes, std::memory_order_relaxed); }
  size_t bytesInFlight() const { return inFlight.load(std::memory_order_relaxed); }

private:
  friend class Task;
  struct Runner : Pool::Work {
    Engine *engine = nullptr;
    Runner *nextIdle = nullptr;
  };
  struct SpareThread;
  struct Completion;
  /// Whom to wake: decided under the lock, done after it.
  struct Wake {
    Runner *runners = nullptr;
    bool guest = false, idleSpare = false, newSpare = false;
  };
  struct FreeTask {
    void operator()(char *memory) const { ::operator delete(memory); }
  };

  void launch(Task *task, const Dependencies &deps, size_t cost, bool isHeld);
  static uint32_t link(Task *task, const Dependencies &deps);
  bool arrive(Task &task, uint32_t count, Wake &wake);
  void giveUp(Task &task);
  static void inherit(Task *task, FailureRef failure);
  static void settle(Task *task, FailureRef failure, Completion &completion);
  Task *complete(Task *task, FailureRef failure, uint64_t newest);
  Task *run(Task *task, uint64_t newest);
  bool runOne(uint64_t newest);

  static Task *merge(Task *a, Task *b);
  void pushReady(Task *task);
  Task *popReady(uint64_t newest);
  bool claim(Task &task);
  Runner *takeIdleRunner();
  void callForHelp(Wake &wake);
  void send(const Wake &wake);
  static void runnerMain(Pool::Work &work);
  void startSpare();
  static void *spareMain(void *engine);

  bool standIn(uint64_t newest);
  void waitInside(Task &task);
  template <class Goal> void waitOutside(Goal goal);
  struct TaskDone;
  struct Progress;
  void waitUntilIdle();
  void waitForRoom();
  bool idle() const { return live.load() == 0; }
  bool roomy() const { return inFlight.load() <= limit() / 2; }

  Pool &pool;
  std::atomic<size_t> mostInFlight{size_t(256) << 20};
  std::unique_ptr<Runner[]> runners;            // one per worker of the pool
  std::atomic<uint64_t> firstReady{UINT64_MAX}; // a bound on the order of the tasks in `ready`

  // Under `lock`, though some are also read without.
  alignas(64) SpinLock lock;
  Task *ready = nullptr; // pairing heap by order
  size_t readyCount = 0;
  uint64_t enqueued = 0;
  std::atomic<uint64_t> live{0};   // tasks not done
  std::atomic<size_t> inFlight{0}; // their bytes
  Runner *idleRunners = nullptr;
  int startingRunners = 0; // submitted to the pool, not running yet
  // Threads of the engine's own: one per task that blocks in wait(), so that the tasks it waits for find a thread,
  // and one where the pool has no workers. A thread that waits outside any task may stand in for a spare that is not
  // running a task yet: it is awake already.
  int sparesAllowed = 0, sparesActive = 0, sparesRunning = 0, sparesIdle = 0, standIns = 0;
  SpareThread *spares = nullptr;
  FailureRef firstFailure;

  std::atomic<bool> outOfThreads{false}; // the system refused one
  std::atomic<uint32_t> spareTokens{0};  // idle spares to come back, as in Pool
  std::atomic<bool> stopping{false};
  std::atomic<int> idleWaiters{0}, roomWaiters{0};
  std::atomic<uint32_t> progress{0}; // counts the times that one of them should look again
};

} // namespace burin::rt
