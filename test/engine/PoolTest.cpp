#include "runtime/threads/Pool.h"
#include "runtime/threads/CpuTopology.h"
#include <catch2/catch.hpp>
#include <chrono>
#include <numeric>
#include <sched.h>
#include <thread>
#include <vector>

using namespace burin::rt;

/// Checks that every index runs once, one or two chunks of the grain at a time, and that no two chunks run at the same
/// time under one worker index.
static bool coversOnce(Pool &pool, int64_t n, int64_t grain) {
  std::vector<std::atomic<int>> visits(n);
  std::vector<std::atomic<int>> inside(pool.threads());
  std::atomic<int> mistakes{0};
  pool.parallelFor(n, grain, [&](int64_t lo, int64_t hi, int worker) {
    mistakes += worker < 0 || worker >= pool.threads() || inside[worker]++ != 0;
    mistakes += lo % grain != 0 || (hi != std::min(n, lo + grain) && hi != std::min(n, lo + 2 * grain));
    for (int64_t i = lo; i < hi; ++i)
      visits[i]++;
    inside[worker]--;
  });
  for (auto &count : visits)
    mistakes += count != 1;
  return mistakes == 0;
}

TEST_CASE("parallelFor covers the range once, in chunks of the grain, or two at a time") {
  int threads = GENERATE(1, 2, 4, 9);
  Pool pool(threads);
  CHECK(pool.threads() == threads);
  for (int64_t n : {0, 1, 2, 7, 64, 1000})
    for (int64_t grain : {1, 2, 3, 64, 2000})
      CHECK(coversOnce(pool, n, grain));
  for (int i = 0; i < 3000; ++i)
    if (!coversOnce(pool, 5, 1))
      FAIL("call " << i);
}

TEST_CASE("parallelFor accepts empty ranges and the largest ones") {
  Pool pool(3);
  int calls = 0;
  auto count = [&](int64_t, int64_t, int) { ++calls; };
  pool.parallelFor(0, 1, count);
  pool.parallelFor(-5, 1, count);
  CHECK(calls == 0);
  std::atomic<int64_t> sum{0};
  pool.parallelFor(INT64_MAX, INT64_MAX / 3, [&](int64_t lo, int64_t hi, int) { sum += hi - lo; });
  CHECK(sum == INT64_MAX);
}

TEST_CASE("what bodies write is visible to the caller") {
  Pool pool(4);
  std::vector<int64_t> values(4096);
  for (int round = 0; round < 500; ++round) {
    pool.parallelFor(4096, 100, [&](int64_t lo, int64_t hi, int) {
      for (int64_t i = lo; i < hi; ++i)
        values[i] += i;
    });
    CHECK(std::accumulate(values.begin(), values.end(), int64_t(0)) == (round + 1) * int64_t(4095) * 4096 / 2);
  }
}

TEST_CASE("nested calls finish") {
  Pool pool(GENERATE(1, 2, 4));
  std::atomic<int64_t> leaves{0};
  for (int round = 0; round < 50; ++round)
    pool.parallelFor(6, 1, [&](int64_t, int64_t, int) {
      pool.parallelFor(7, 2, [&](int64_t lo, int64_t hi, int) {
        pool.parallelFor(3, 1, [&](int64_t, int64_t, int) { leaves++; });
        leaves += 10 * (hi - lo);
      });
    });
  CHECK(leaves == 50 * 6 * (4 * 3 + 70));
}

TEST_CASE("nesting deeper than the pool has room for jobs") {
  Pool pool(4);
  std::atomic<int> bottoms{0};
  std::function<void(int)> descend = [&](int depth) {
    if (depth == 0)
      bottoms++;
    else
      pool.parallelFor(2, 1, [&](int64_t lo, int64_t, int) {
        if (lo == 0)
          descend(depth - 1);
      });
  };
  descend(200);
  CHECK(bottoms == 1);
}

TEST_CASE("many callers at once") {
  Pool pool(GENERATE(1, 3));
  std::atomic<int> mistakes{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 8; ++t)
    callers.emplace_back([&] {
      for (int i = 0; i < 300; ++i)
        mistakes += !coversOnce(pool, 17, 2);
    });
  for (auto &caller : callers)
    caller.join();
  CHECK(mistakes == 0);
}

TEST_CASE("sleeping workers wake for work") {
  Pool pool(4);
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    // Four chunks that wait for each other need four threads.
    std::atomic<int> arrived{0};
    pool.parallelFor(4, 1, [&](int64_t, int64_t, int) {
      arrived++;
      while (arrived < 4)
        std::this_thread::yield();
    });
    CHECK(arrived == 4);
  }
}

TEST_CASE("each thread begins with the same share in every call") {
  Pool pool(GENERATE(2, 3, 5));
  for (int round = 0; round < 20; ++round) {
    // All threads wait for each other first, so no thread can take over another's share before that one has started.
    std::atomic<int> arrived{0}, mistakes{0};
    pool.parallelFor(12 * pool.threads(), 3, [&](int64_t lo, int64_t, int worker) {
      bool isFirst = arrived < pool.threads();
      mistakes += isFirst && lo != 12 * worker;
      arrived += isFirst;
      while (arrived < pool.threads())
        std::this_thread::yield();
    });
    CHECK(mistakes == 0);
  }
}

TEST_CASE("idle workers sleep, also under Awake") {
  Pool pool(2);
  pool.parallelFor(2, 1, [](int64_t, int64_t, int) {});
  Pool::Awake guard(pool);
  pool.parallelFor(2, 1, [](int64_t, int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  auto cpuTime = [] {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
  };
  double before = cpuTime();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(cpuTime() - before < 0.15); // a spinning worker would have used 0.3 s
}

namespace {
struct Job : Pool::Work {
  std::atomic<int> *ran;
};
} // namespace

TEST_CASE("submitted work runs on a worker") {
  std::atomic<int> ran{0};
  std::vector<Job> jobs(1000);
  Pool pool(3);
  for (Job &job : jobs) {
    job.ran = &ran;
    job.run = [](Pool::Work &work) { *static_cast<Job &>(work).ran += Pool::insideWork(); };
    pool.submit(job);
  }
  while (ran < 1000)
    std::this_thread::yield();
  CHECK(!Pool::insideWork());
}

TEST_CASE("a guest helps with a worker's job, not with another caller's") {
  Pool pool(2);
  struct State {
    Pool &pool;
    std::atomic<bool> finished{false};
    std::atomic<int> arrived{0};
  } state{pool};
  struct Outer : Pool::Work {
    State *state;
  } outer;
  outer.state = &state;
  outer.run = [](Pool::Work &work) {
    State &state = *static_cast<Outer &>(work).state;
    // The two chunks wait for each other, so the guest must run one of them.
    state.pool.parallelFor(2, 1, [&](int64_t, int64_t, int) {
      state.arrived++;
      while (state.arrived < 2)
        std::this_thread::yield();
    });
    Pool &pool = state.pool;
    state.finished = true;
    pool.pokeGuest();
  };
  pool.submit(outer);
  Pool::Guest guest{[](void *ctx) { return static_cast<State *>(ctx)->finished.load(); }, [](void *) { return false; },
                    &state};
  CHECK(pool.lend(guest));
  CHECK(state.arrived == 2);
}

TEST_CASE("a pool that never ran anything, or just did, can be destroyed") {
  for (int i = 0; i < 200; ++i) {
    Pool pool(3);
    if (i % 2)
      pool.parallelFor(3, 1, [](int64_t, int64_t, int) {});
  }
}

static cpu_set_t affinity() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  REQUIRE(!sched_getaffinity(0, sizeof mask, &mask));
  return mask;
}
static void setAffinity(const cpu_set_t &mask) { REQUIRE(!sched_setaffinity(0, sizeof mask, &mask)); }

TEST_CASE("a thread stays off the core that it left last, where it may use another") {
  std::thread([] {
    const cpu_set_t all = affinity();
    int core = currentCore();
    REQUIRE(core >= 0);
    cpu_set_t others = all;
    CPU_CLR(core, &others);
    leaveCore(core);
    if (CPU_COUNT(&all) < 2) {
      cpu_set_t now = affinity();
      CHECK(CPU_EQUAL(&now, &all));
      return;
    }
    cpu_set_t now = affinity();
    CHECK(CPU_EQUAL(&now, &others));

    int next = currentCore();
    CHECK(next != core);
    leaveCore(next);
    cpu_set_t butNext = all;
    CPU_CLR(next, &butNext);
    now = affinity();
    CHECK(CPU_EQUAL(&now, &butNext));
  }).join();
}

TEST_CASE("a thread that was told where to run stays there") {
  std::thread([] {
    int core = currentCore();
    REQUIRE(core >= 0);
    leaveCore(core); // must not affect the thread's later placement
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    setAffinity(one);
    leaveCore(core);
    CHECK(currentCore() == core);
    leaveCore(-1);
    leaveCore(1 << 20);
    cpu_set_t now = affinity();
    CHECK(CPU_EQUAL(&now, &one));
  }).join();
}
