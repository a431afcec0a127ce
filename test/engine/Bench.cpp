// Measures costs that the design relies on: dispatch to workers, enqueueing, allocation. Not part of the tests.
#include "runtime/support/Memory.h"
#include "runtime/threads/Engine.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

using namespace burin::rt;
using Clock = std::chrono::steady_clock;

/// Prints percentiles of the time per call, as the mean over `batch` calls. `prepare` runs before each batch, untimed.
template <class Prepare, class Call>
static void measure(const char *name, int samples, int batch, Prepare prepare, Call call) {
  std::vector<double> times(samples);
  for (double &time : times) {
    prepare();
    auto begin = Clock::now();
    for (int i = 0; i < batch; ++i)
      call();
    time = std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / batch;
  }
  std::sort(times.begin(), times.end());
  std::printf("%-58s %9.0f %9.0f %9.0f ns\n", name, times[samples / 10], times[samples / 2], times[samples * 9 / 10]);
}

static void nothing() {}
static void letWorkersSleep() { std::this_thread::sleep_for(std::chrono::milliseconds(3)); }

static void dispatch(Pool &pool) {
  auto empty = [](int64_t, int64_t, int) {};
  // A barrier of all threads: a round trip between the cores.
  auto meet = [&] {
    std::atomic<int> arrived{0};
    pool.parallelFor(pool.threads(), 1, [&](int64_t, int64_t, int) {
      for (arrived++; arrived < pool.threads();)
        relax();
    });
  };
  Pool::Awake awake(pool);
  measure("parallelFor, 1 chunk", 300, 1000, nothing, [&] { pool.parallelFor(1, 1, empty); });
  measure("parallelFor, 2 empty chunks", 300, 1000, nothing, [&] { pool.parallelFor(2, 1, empty); });
  measure("parallelFor, 64 empty chunks", 300, 1000, nothing, [&] { pool.parallelFor(64, 1, empty); });
  measure("parallelFor, all threads meet, workers awake", 3000, 10, nothing, meet);
  measure("parallelFor, all threads meet, workers asleep", 100, 1, letWorkersSleep, meet);
}

/// Runs the same 64 chunks of work on one thread and on all.
static void speedUp(Pool &pool, const char *serial, const char *parallel, int steps) {
  std::atomic<uint32_t> sink{0};
  auto chunk = [&](int64_t lo, int64_t, int) {
    auto value = static_cast<uint32_t>(lo);
    for (int i = 0; i < steps; ++i) {
      value = value * 1664525 + 1013904223;
      asm volatile("" : "+r"(value)); // keeps the compiler from folding several steps into one
    }
    sink.store(value, std::memory_order_relaxed);
  };
  Pool alone(1);
  Pool::Awake awake(pool);
  measure(serial, 300, 10, nothing, [&] { alone.parallelFor(64, 1, chunk); });
  measure(parallel, 300, 10, nothing, [&] { pool.parallelFor(64, 1, chunk); });
}

static void enqueue(Engine &engine) {
  std::atomic<uint64_t> sum{0};
  auto drain = [&] { engine.synchronize(); };
  auto work = [&sum] { sum.fetch_add(1, std::memory_order_relaxed); };
  auto busy = [&sum] {
    for (auto end = Clock::now() + std::chrono::microseconds(5); Clock::now() < end;)
      relax();
    sum.fetch_add(1, std::memory_order_relaxed);
  };
  TaskRef last;
  auto chain = [&](auto &body) {
    return [&] { last = engine.enqueue(std::initializer_list<Task *>{last.get()}, 4096, body); };
  };
  measure("enqueue, independent, empty work", 300, 1000, drain, [&] { engine.enqueue({}, 4096, work); });
  measure("enqueue, chain, empty work", 300, 1000, drain, chain(work));
  measure("enqueue, chain, 5 us of work each", 100, 100, drain, chain(busy));
  engine.synchronize();
  measure("enqueue a chain of 1000 and synchronize", 300, 1, nothing, [&] {
    for (int i = 0; i < 1000; ++i)
      chain(work)();
    engine.synchronize();
  });
  measure("enqueue one and wait, warm", 3000, 10, nothing, [&] { engine.enqueue({}, 0, work)->wait(); });
  measure("enqueue one and wait, workers asleep", 100, 1, letWorkersSleep,
          [&] { engine.enqueue({}, 0, work)->wait(); });
  measure("enqueue one, workers asleep", 100, 1, letWorkersSleep, [&] { engine.enqueue({}, 0, work); });
}

static void allocate(Memory &memory) {
  for (size_t bytes : {100, 10000, 1000000, 100000000}) {
    BufferRef held = memory.allocate(bytes);
    char name[64];
    std::snprintf(name, sizeof name, "allocate and free %zu cached bytes", bytes);
    held = nullptr;
    measure(name, 300, 1000, nothing, [&] { memory.allocate(bytes); });
  }
}

int main() {
  std::printf("%d threads%45s %9s %9s %9s\n", Pool::shared().threads(), "", "p10", "median", "p90");
  dispatch(Pool::shared());
  speedUp(Pool::shared(), "10 us of work, one thread", "10 us of work, all threads", 120);
  speedUp(Pool::shared(), "1 ms of work, one thread", "1 ms of work, all threads", 12000);
  enqueue(Engine::shared());
  allocate(Memory::shared());
}
