#include "runtime/threads/Engine.h"
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <mutex>
#include <unistd.h>

namespace burin::rt {

namespace {
thread_local int tasksOnStack = 0;

/// Whether this thread must not run arbitrary tasks while it waits: one of them might wait for a task below on its
/// stack.
bool insideTask() { return tasksOnStack || Pool::insideWork(); }

struct StackMark {
  StackMark() { ++tasksOnStack; }
  ~StackMark() { --tasksOnStack; }
};
} // namespace

/// Results of finished tasks, collected before the engine's lock is taken once for all of them.
struct Engine::Completion {
  uint64_t tasks = 0;
  size_t bytes = 0;
  Task *ready = nullptr;  // all their dependencies are done
  Task *doomed = nullptr; // some dependency failed
};

//===----------------------------------------------------------------------===//
// Enqueueing
//===----------------------------------------------------------------------===//

void Task::destroy(Task *task) {
  task->~Task();
  ::operator delete(task);
}

void Engine::launch(Task *task, const Dependencies &deps, size_t cost, bool isHeld) {
  if (inFlight.load(std::memory_order_relaxed) > limit() && !insideTask())
    waitForRoom();
  const size_t edgeCount = deps.needed.size() + deps.before.size();
  task->cost = std::min(cost, size_t(1) << 48) + sizeof(Task) + edgeCount * sizeof(Task::Edge);
  task->retain(); // the engine's reference, until the task is done
  task->pending.store(static_cast<uint32_t>(edgeCount + 1), std::memory_order_relaxed);
  const uint32_t arrived = link(task, deps) + (isHeld ? 0 : 1);

  Wake wake;
  bool isDoomed;
  {
    std::lock_guard guard(lock);
    task->order = ++enqueued;
    live.fetch_add(1);
    inFlight.fetch_add(task->cost);
    isDoomed = arrive(*task, arrived, wake);
  }
  if (isDoomed)
    giveUp(*task);
  send(wake);
}

void Engine::begin(Task &task) {
  Wake wake;
  bool isDoomed;
  {
    std::lock_guard guard(lock);
    isDoomed = arrive(task, 1, wake);
  }
  if (isDoomed)
    giveUp(task);
  send(wake);
}

/// Under the lock: `count` of the things that the task waits for are done. Returns whether they are all done and it
/// cannot run, because one of them has failed.
bool Engine::arrive(Task &task, uint32_t count, Wake &wake) {
  if (task.pending.fetch_sub(count, std::memory_order_acq_rel) != count)
    return false;
  if (task.failure)
    return true;
  pushReady(&task);
  callForHelp(wake);
  return false;
}

void Engine::giveUp(Task &task) {
  StackMark mark;
  task.behaviour(task, false);
  complete(&task, task.failure, 0);
}

Task::Edge Task::closed;

/// Adds the task to the dependents of its dependencies. Returns the number of dependencies that are done.
uint32_t Engine::link(Task *task, const Dependencies &deps) {
  uint32_t arrived = 0;
  Task::Edge *const closed = &Task::closed;
  Task::Edge *next = task->edges;
  auto add = [&](Task *dep, bool isOrder) {
    Task::Edge *head = dep ? dep->dependents.load(std::memory_order_acquire) : closed;
    auto *edge = new (next++) Task::Edge{task, nullptr, isOrder};
    do
      edge->next = head;
    while (head != closed && !dep->dependents.compare_exchange_weak(head, edge, std::memory_order_acq_rel));
    if (head != closed)
      return;
    ++arrived;
    if (dep && dep->failure && !isOrder)
      inherit(task, dep->failure);
  };
  for (Task *dep : deps.needed)
    add(dep, false);
  for (Task *dep : deps.before)
    add(dep, true);
  return arrived;
}

/// Keeps the earliest failure, so that a task's reported failure does not depend on timing.
void Engine::inherit(Task *task, FailureRef failure) {
  static SpinLock inheriting;
  std::lock_guard guard(inheriting);
  if (!task->failure || failure->order < task->failure->order)
    std::swap(task->failure, failure);
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// Runs a task obtained from popReady or claim, and completes it. Returns the next task to run if there is one enqueued
/// at `newest` or before.
Task *Engine::run(Task *task, uint64_t newest) {
  IntrusivePtr<Failure> failure;
  {
    StackMark mark;
    failure = task->behaviour(*task, true);
  }
  if (failure)
    failure->order = task->order;
  return complete(task, FailureRef::adopt(failure.detach()), newest);
}

bool Engine::runOne(uint64_t newest) {
  if (firstReady.load() > newest)
    return false;
  Task *task;
  {
    std::lock_guard guard(lock);
    task = popReady(newest);
  }
  if (task)
    run(task, 0);
  return task;
}

Task *Engine::complete(Task *task, FailureRef failure, uint64_t newest) {
  Completion completion;
  bool failedHere = failure && failure->order == task->order;
  settle(task, failure, completion);
  while (Task *doomed = completion.doomed) { // a loop, because chains may be long
    completion.doomed = doomed->sibling;
    StackMark mark;
    doomed->behaviour(*doomed, false);
    settle(doomed, doomed->failure, completion);
  }

  Wake wake;
  Task *next = nullptr;
  bool drained, room;
  {
    std::lock_guard guard(lock);
    drained = live.fetch_sub(completion.tasks) == completion.tasks;
    room = inFlight.fetch_sub(completion.bytes) - completion.bytes <= limit() / 2;
    if (failedHere && (!firstFailure || failure->order < firstFailure->order))
      std::swap(firstFailure, failure);
    while (Task *ready = completion.ready) {
      completion.ready = ready->sibling;
      pushReady(ready);
    }
    if (newest)
      next = popReady(newest);
    callForHelp(wake);
  }
  if ((drained && idleWaiters.load()) || (room && roomWaiters.load())) {
    progress.fetch_add(1);
    futexWake(progress, INT_MAX);
    wake.guest = true;
  }
  send(wake);
  return next;
}

/// Ends a task whose work has been destroyed: notifies waiters, and drops the engine's reference.
void Engine::settle(Task *task, FailureRef failure, Completion &completion) {
  ++completion.tasks;
  completion.bytes += task->cost;
  task->failure = failure;
  uint32_t before = task->state.exchange(failure ? Task::Failed : Task::Done);
  if (before & Task::kSleeperWaits)
    futexWake(task->state, INT_MAX);
  if (before & Task::kGuestWaits)
    task->engine.pool.pokeGuest();

  Task::Edge *const closed = &Task::closed;
  Task::Edge *edge = task->dependents.exchange(closed, std::memory_order_acq_rel);
  while (edge) {
    Task *dependent = edge->to;
    const bool isOrder = edge->isOrder;
    edge = edge->next; // before the dependent can run and free its edges
    if (failure && !isOrder)
      inherit(dependent, failure);
    if (dependent->pending.fetch_sub(1, std::memory_order_acq_rel) != 1)
      continue;
    Task *&list = dependent->failure ? completion.doomed : completion.ready;
    dependent->sibling = std::exchange(list, dependent);
  }
  task->release();
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

// Goals that a thread outside of tasks waits for: whether the goal is reached, the newest task worth helping with,
// preparation before lending the thread to the pool, and how to sleep.

struct Engine::TaskDone {
  Engine &engine;
  Task &task;
  uint64_t newest = task.order;

  bool reached() const { return (task.state.load() & Task::kStateMask) >= Task::Done; }
  void beforeLending() { task.state.fetch_or(Task::kGuestWaits); }
  void sleep() {
    uint32_t state = task.state.fetch_or(Task::kSleeperWaits) | Task::kSleeperWaits;
    if ((state & Task::kStateMask) < Task::Done)
      futexWait(task.state, state);
  }
};

struct Engine::Progress {
  Engine &engine;
  std::atomic<int> &waiters;
  bool (Engine::*isReached)() const;
  uint64_t newest = UINT64_MAX;

  Progress(Engine &engine, std::atomic<int> &waiters, bool (Engine::*isReached)() const)
      : engine(engine), waiters(waiters), isReached(isReached) {
    waiters.fetch_add(1);
  }
  ~Progress() { waiters.fetch_sub(1); }
  Progress(const Progress &) = delete;

  bool reached() const { return (engine.*isReached)(); }
  void beforeLending() {}
  void sleep() {
    uint32_t seen = engine.progress.load();
    if (!reached())
      futexWait(engine.progress, seen);
  }
};

void Engine::waitUntilIdle() { waitOutside(Progress(*this, idleWaiters, &Engine::idle)); }
void Engine::waitForRoom() { waitOutside(Progress(*this, roomWaiters, &Engine::roomy)); }

template <class Goal> void Engine::waitOutside(Goal goal) {
  Pool::Guest guest{[](void *goal) { return static_cast<Goal *>(goal)->reached(); },
                    [](void *goal) {
                      auto *self = static_cast<Goal *>(goal);
                      return self->engine.runOne(self->newest);
                    },
                    &goal};
  while (!goal.reached()) {
    if (pool.workers() > 0 || outOfThreads.load()) {
      if (runOne(goal.newest))
        continue;
      goal.beforeLending();
      if (pool.lend(guest))
        return;
    } else if (standIn(goal.newest)) {
      continue;
    }
    goal.sleep();
  }
}

/// A thread with tasks on its stack may only run the task that it waits for, see insideTask. While it sleeps, another
/// thread may run tasks in its place.
void Engine::waitInside(Task &task) {
  if (claim(task)) {
    run(&task, 0);
    return;
  }
  for (int i = 0; i < 64 && !task.done(); ++i)
    relax();
  if (task.done())
    return;
  Wake wake;
  {
    std::lock_guard guard(lock);
    ++sparesAllowed;
    callForHelp(wake);
  }
  send(wake);
  while (!task.done())
    if (!outOfThreads.load() || !runOne(UINT64_MAX)) // a small risk of deadlock is better than no progress
      TaskDone{*this, task}.sleep();
  std::lock_guard guard(lock);
  --sparesAllowed;
}

const Failure *Task::wait() {
  if (!done()) {
    if (insideTask())
      engine.waitInside(*this);
    else
      engine.waitOutside(Engine::TaskDone{engine, *this});
  }
  return error();
}

FailureRef Engine::synchronize() {
  if (insideTask())
    return FailureRef::adopt(new Failure(
        Status(ErrorCode::InvalidArgument, "synchronize() inside a task waits for that task; wait for single tasks"),
        nullptr));
  waitUntilIdle();
  std::lock_guard guard(lock);
  return std::exchange(firstFailure, nullptr);
}

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

Engine &Engine::shared() {
  static Engine *engine = [] {
    auto *made = new Engine(Pool::shared());
    static const pid_t process = getpid();
    // Tasks must not outlive objects that the process destroys at exit. The child of a fork has none to wait for.
    std::atexit([] {
      if (getpid() == process && !insideTask())
        shared().waitUntilIdle();
    });
    return made;
  }();
  return *engine;
}

} // namespace burin::rt
