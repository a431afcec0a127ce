// Costs that the design counts on: dispatch to workers, enqueueing, allocation. Not part of the tests.
#include "runtime/Pool.h"
#include <benchmark/benchmark.h>
#include <thread>

using namespace burin::rt;

static void dispatch(benchmark::State &state) {
  Pool &pool = Pool::shared();
  Pool::Awake awake(pool);
  for (auto _ : state)
    pool.parallelFor(state.range(0), 1, [](void *, int64_t, int64_t, int) {}, nullptr);
}
BENCHMARK(dispatch)->Arg(1)->Arg(2)->Arg(16)->UseRealTime();

/// Both threads must meet, so this is a full round trip to another core.
static void rendezvous(benchmark::State &state) {
  Pool &pool = Pool::shared();
  Pool::Awake awake(pool);
  for (auto _ : state) {
    std::atomic<int> arrived{0};
    pool.parallelFor(2, 1, [&](int64_t, int64_t, int) {
      for (arrived++; arrived < 2;)
        relax();
    });
  }
}
static void rendezvousAfterSleep(benchmark::State &state) {
  Pool &pool = Pool::shared();
  for (auto _ : state) {
    state.PauseTiming();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    state.ResumeTiming();
    std::atomic<int> arrived{0};
    pool.parallelFor(2, 1, [&](int64_t, int64_t, int) {
      for (arrived++; arrived < 2;)
        relax();
    });
  }
}
[[maybe_unused]] static const bool registered = [] {
  if (Pool::shared().threads() < 2)
    return false;
  benchmark::RegisterBenchmark("rendezvous", rendezvous)->UseRealTime();
  benchmark::RegisterBenchmark("rendezvousAfterSleep", rendezvousAfterSleep)->UseRealTime()->Iterations(100);
  return true;
}();

BENCHMARK_MAIN();
