// Scheduling of ready tasks on threads. Completion of tasks is in Engine.cpp.
#include "runtime/threads/Engine.h"
#include <climits>
#include <csignal>
#include <mutex>

namespace burin::rt {

struct Engine::SpareThread {
  pthread_t handle;
  SpareThread *next;
};

//===----------------------------------------------------------------------===//
// The heap of ready tasks; all under the lock
//===----------------------------------------------------------------------===//

Task *Engine::merge(Task *a, Task *b) {
  if (!a || !b)
    return a ? a : b;
  if (b->order < a->order)
    std::swap(a, b);
  b->sibling = std::exchange(a->child, b);
  return a;
}

void Engine::pushReady(Task *task) {
  task->state.fetch_add(Task::Ready - Task::Waiting);
  task->child = task->sibling = nullptr;
  ready = merge(ready, task);
  ++readyCount;
  firstReady.store(ready->order);
}

/// Takes the task that was enqueued first, if that was at `newest` or before.
Task *Engine::popReady(uint64_t newest) {
  while (ready && ready->order <= newest) {
    Task *first = ready, *pairs = nullptr;
    for (Task *child = first->child; child;) {
      Task *partner = child->sibling, *rest = partner ? partner->sibling : nullptr;
      Task *pair = merge(child, partner);
      pair->sibling = pairs;
      pairs = pair;
      child = rest;
    }
    ready = nullptr;
    while (pairs) {
      Task *rest = pairs->sibling;
      ready = merge(ready, pairs);
      pairs = rest;
    }
    firstReady.store(ready ? ready->order : UINT64_MAX);
    if ((first->state.load(std::memory_order_relaxed) & Task::kStateMask) != Task::Ready) {
      first->release(); // claimed before
      continue;
    }
    first->state.fetch_add(Task::Running - Task::Ready);
    --readyCount;
    return first;
  }
  return nullptr;
}

/// Takes this task if it is ready. The heap keeps an entry with a reference until it is popped.
bool Engine::claim(Task &task) {
  std::lock_guard guard(lock);
  if ((task.state.load(std::memory_order_relaxed) & Task::kStateMask) != Task::Ready)
    return false;
  task.state.fetch_add(Task::Running - Task::Ready);
  task.retain();
  --readyCount;
  return true;
}

//===----------------------------------------------------------------------===//
// Threads that run tasks
//===----------------------------------------------------------------------===//

Engine::Runner *Engine::takeIdleRunner() {
  Runner *runner = idleRunners;
  idleRunners = runner->nextIdle;
  ++startingRunners;
  return runner;
}

/// Called under the lock. Wakes one runner; when it starts, it wakes as many others as there are tasks, so that the
/// enqueueing thread pays for one only.
void Engine::callForHelp(Wake &wake) {
  if (!readyCount)
    return;
  if (!idleRunners)
    wake.guest = true;
  else if (!startingRunners) {
    wake.runners = takeIdleRunner();
    wake.runners->nextIdle = nullptr;
  }
  if (sparesActive + standIns < sparesAllowed) {
    ++sparesActive;
    wake.idleSpare = sparesIdle > 0;
    wake.newSpare = !wake.idleSpare;
    sparesIdle -= wake.idleSpare;
  }
}

void Engine::send(const Wake &wake) {
  for (Runner *runner = wake.runners; runner;) {
    Runner *next = runner->nextIdle; // before it runs and becomes idle again
    pool.submit(*runner);
    runner = next;
  }
  if (wake.idleSpare) {
    spareTokens.fetch_add(1);
    futexWake(spareTokens, 1);
  }
  if (wake.newSpare)
    startSpare();
  if (wake.guest)
    pool.pokeGuest();
}

void Engine::runnerMain(Pool::Work &work) {
  auto &runner = static_cast<Runner &>(work);
  Engine &engine = *runner.engine;
  Wake wake;
  Task *task;
  auto popOrRest = [&] {
    task = engine.popReady(UINT64_MAX);
    if (!task)
      runner.nextIdle = std::exchange(engine.idleRunners, &runner);
  };
  {
    std::lock_guard guard(engine.lock);
    --engine.startingRunners;
    popOrRest();
    while (engine.idleRunners && static_cast<size_t>(engine.startingRunners) < engine.readyCount) {
      Runner *other = engine.takeIdleRunner();
      other->nextIdle = std::exchange(wake.runners, other);
    }
  }
  engine.send(wake);
  while (task) {
    task = engine.run(task, UINT64_MAX);
    if (!task) {
      std::lock_guard guard(engine.lock);
      popOrRest();
    }
  }
}

void Engine::startSpare() {
  auto *spare = new SpareThread;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool failed = pthread_create(&spare->handle, nullptr, spareMain, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::lock_guard guard(lock);
  if (failed) {
    delete spare;
    --sparesActive;
    outOfThreads.store(true);
  } else {
    spare->next = std::exchange(spares, spare);
  }
}

void *Engine::spareMain(void *argument) {
  Engine &engine = *static_cast<Engine *>(argument);
  pthread_setname_np(pthread_self(), "burin-engine");
  for (Task *task = nullptr;;) {
    {
      std::lock_guard guard(engine.lock);
      engine.sparesRunning -= task != nullptr;
      bool mayRun = engine.sparesActive + engine.standIns <= engine.sparesAllowed;
      task = mayRun ? engine.popReady(UINT64_MAX) : nullptr;
      engine.sparesRunning += task != nullptr;
      engine.sparesActive -= !task;
      engine.sparesIdle += !task;
    }
    if (task) {
      engine.run(task, 0);
      continue;
    }
    uint32_t left = 0;
    while (!left || !engine.spareTokens.compare_exchange_weak(left, left - 1)) {
      if (!left)
        futexWait(engine.spareTokens, 0);
      left = engine.spareTokens.load();
    }
    if (engine.stopping.load())
      return nullptr;
  }
}

/// Runs ready tasks up to `newest` in place of a spare thread; returns false if there are none or all places are taken.
bool Engine::standIn(uint64_t newest) {
  Task *task = nullptr;
  {
    std::lock_guard guard(lock);
    if (sparesRunning + standIns < sparesAllowed)
      task = popReady(newest);
    standIns += task != nullptr;
  }
  if (!task)
    return false;
  while (task)
    task = run(task, newest);
  Wake wake;
  {
    std::lock_guard guard(lock);
    --standIns;
    callForHelp(wake);
  }
  send(wake);
  return true;
}

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

Engine::Engine(Pool &pool) : pool(pool) {
  int count = pool.workers();
  sparesAllowed = count == 0;
  runners.reset(new Runner[count]);
  for (int i = 0; i < count; ++i) {
    runners[i].run = runnerMain;
    runners[i].engine = this;
    runners[i].nextIdle = std::exchange(idleRunners, &runners[i]);
  }
}

Engine::~Engine() {
  waitUntilIdle();
  // The threads that ran the last tasks may not have returned yet.
  for (int busy = 1; busy; sched_yield()) {
    std::lock_guard guard(lock);
    busy = pool.workers() + sparesActive;
    for (Runner *runner = idleRunners; runner; runner = runner->nextIdle)
      --busy;
    popReady(UINT64_MAX); // only claimed tasks remain
  }
  stopping.store(true);
  for (SpareThread *spare = spares; spare; spare = spare->next)
    spareTokens.fetch_add(1);
  futexWake(spareTokens, INT_MAX);
  while (spares) {
    pthread_join(spares->handle, nullptr);
    delete std::exchange(spares, spares->next);
  }
}

} // namespace burin::rt
