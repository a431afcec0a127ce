#include "runtime/threads/Engine.h"
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace burin::rt;

template <class F> static TaskRef after(Engine &engine, std::initializer_list<Task *> deps, F &&work) {
  return engine.enqueue({deps.begin(), deps.size()}, 0, std::forward<F>(work));
}

static std::string whatFailed(const Failure *failure) { return failure ? failure->status.message() : "nothing"; }
static Status broken(const char *what) { return {ErrorCode::InvalidArgument, what}; }

TEST_CASE("tasks run after their dependencies") {
  Pool pool(GENERATE(1, 2, 4));
  Engine engine(pool);
  int value = 0;
  TaskRef a = after(engine, {}, [&] { value = 1; });
  TaskRef b = after(engine, {a.get(), nullptr, a.get()}, [&] { value = value * 10 + 2; });
  TaskRef c = after(engine, {b.get(), a.get()}, [&] { value = value * 10 + 3; });
  CHECK(c->wait() == nullptr);
  CHECK(value == 123);
  CHECK(a->done());
  CHECK(!a->failed());
  CHECK(!engine.synchronize());
}

TEST_CASE("random graphs compute what serial evaluation computes") {
  int threads = GENERATE(1, 2, 5);
  Pool pool(threads);
  Engine engine(pool);
  std::mt19937 random(threads);
  for (int round = 0; round < 20; ++round) {
    int count = 500;
    std::vector<uint64_t> expected(count), values(count);
    std::vector<TaskRef> tasks(count);
    for (int i = 0; i < count; ++i) {
      std::vector<int> inputs;
      for (int k = random() % 5; i > 0 && k > 0; --k)
        inputs.push_back(random() % 3 ? std::max<int>(0, i - 1 - random() % 8) : random() % i);
      auto combine = [i, inputs](const std::vector<uint64_t> &of) {
        uint64_t sum = i + 1;
        for (int input : inputs)
          sum = sum * 31 + of[input];
        return sum;
      };
      expected[i] = combine(expected);
      std::vector<Task *> deps;
      for (int input : inputs)
        deps.push_back(tasks[input].get());
      tasks[i] = engine.enqueue(deps, 100, [&values, combine, i] { values[i] = combine(values); });
      if (random() % 50 == 0)
        tasks[random() % (i + 1)]->wait();
    }
    if (round % 2)
      tasks.clear(); // a task runs even if nobody holds a reference to it
    CHECK(!engine.synchronize());
    CHECK(values == expected);
  }
  CHECK(engine.bytesInFlight() == 0);
}

TEST_CASE("one thread runs tasks in the order of the calls, asynchronously") {
  Pool pool(1);
  Engine engine(pool);
  std::atomic<bool> gate{false};
  std::vector<int> order;
  after(engine, {}, [&] {
    while (!gate)
      std::this_thread::yield();
  });
  for (int i = 0; i < 1000; ++i)
    after(engine, {}, [&order, i] { order.push_back(i); });
  gate = true;
  CHECK(!engine.synchronize());
  REQUIRE(order.size() == 1000);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("one thread: never two tasks at once, whichever threads wait and run them") {
  Pool pool(1);
  Engine engine(pool);
  std::atomic<int> running{0};
  std::atomic<bool> overlapped{false};
  auto caller = [&] {
    for (int i = 0; i < 2000; ++i) {
      TaskRef task = after(engine, {}, [&] {
        if (running.fetch_add(1))
          overlapped = true;
        running.fetch_sub(1);
      });
      if (i % 3)
        task->wait();
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i)
    callers.emplace_back(caller);
  for (std::thread &thread : callers)
    thread.join();
  CHECK(!engine.synchronize());
  CHECK(!overlapped);
}

TEST_CASE("one thread: a task that waits is run by the waiting thread while the engine's own sleeps") {
  Pool pool(1);
  Engine engine(pool);
  bool helped = false; // usually true: waking a thread takes longer than starting to wait
  for (int i = 0; i < 200000 && !helped; ++i) {
    std::thread::id runner;
    after(engine, {}, [&] { runner = std::this_thread::get_id(); })->wait();
    helped = runner == std::this_thread::get_id();
  }
  CHECK(helped);
}

TEST_CASE("independent tasks run in parallel, on all workers and on the waiting thread") {
  Pool pool(3);
  Engine engine(pool);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> arrived{0};
    for (int i = 0; i < 3; ++i)
      after(engine, {}, [&] {
        for (arrived++; arrived < 3;)
          std::this_thread::yield();
      });
    CHECK(!engine.synchronize());
    CHECK(arrived == 3);
  }
}

TEST_CASE("a failure reaches all that depend on it, and nothing else") {
  Pool pool(GENERATE(1, 3));
  Engine engine(pool);
  std::atomic<int> ran{0};
  TaskRef fine = after(engine, {}, [&] { ran++; });
  TaskRef bad = after(engine, {fine.get()}, [] { return broken("first"); });
  TaskRef worse = after(engine, {}, [] { return broken("second"); });
  TaskRef both = after(engine, {worse.get(), bad.get()}, [&] { ran += 100; });
  TaskRef last = after(engine, {both.get(), fine.get()}, [&] { ran += 100; });
  TaskRef apart = after(engine, {fine.get()}, [&]() -> Status {
    ran++;
    return {};
  });
  CHECK(whatFailed(last->wait()) == "first");
  CHECK(whatFailed(both->error()) == "first");
  CHECK(whatFailed(worse->wait()) == "second");
  CHECK(last->failed());
  CHECK(last->error()->status.code() == ErrorCode::InvalidArgument);
  CHECK(apart->wait() == nullptr);
  CHECK(fine->error() == nullptr);
  CHECK(ran == 2);

  CHECK(whatFailed(engine.synchronize().get()) == "first");
  CHECK(!engine.synchronize());
  // `synchronize` has reported the failure, but the tasks keep it, and so do tasks enqueued on them later.
  TaskRef late = after(engine, {bad.get()}, [&] { ran += 100; });
  CHECK(late->failed());
  CHECK(whatFailed(late->wait()) == "first");
  CHECK(!engine.synchronize());
  CHECK(ran == 2);
}

TEST_CASE("a task that only comes after another one runs whether that fails or not") {
  Pool pool(GENERATE(1, 3));
  Engine engine(pool);
  for (bool isDone : {false, true}) {
    std::atomic<bool> mayFail{isDone};
    std::vector<int> order;
    TaskRef bad = after(engine, {}, [&] {
      while (!mayFail)
        std::this_thread::yield();
      order.push_back(0);
      return broken("first");
    });
    if (isDone)
      bad->wait();
    Task *before[] = {bad.get(), nullptr};
    TaskRef next = engine.enqueue({{}, before}, 0, [&] { order.push_back(1); }, false);
    TaskRef needing = engine.enqueue({{before, 1}, before}, 0, [&] { order.push_back(2); }, false);
    TaskRef last = after(engine, {next.get()}, [&] { order.push_back(3); });
    mayFail = true;
    CHECK(last->wait() == nullptr);
    CHECK(whatFailed(needing->wait()) == "first");
    CHECK(order == std::vector<int>{0, 1, 3});
    CHECK(whatFailed(engine.synchronize().get()) == "first");
  }
}

TEST_CASE("a held task has its place in the order, but runs when it may begin") {
  Pool pool(GENERATE(1, 3));
  Engine engine(pool);
  std::vector<int> order;
  std::atomic<bool> isReady{false};
  TaskRef first = after(engine, {}, [&] {
    while (!isReady)
      std::this_thread::yield();
  });
  for (bool hasFailed : {false, true}) {
    TaskRef bad = after(engine, {first.get()}, [&] { return hasFailed ? broken("no") : Status(); });
    Task *needed[] = {bad.get()};
    TaskRef held = engine.enqueue({needed, {}}, 0, [&] { order.push_back(1); }, true);
    TaskRef next = after(engine, {held.get()}, [&] { order.push_back(2); });
    isReady = true;
    bad->wait();
    CHECK(!held->done());
    std::thread waiting([&] { next->wait(); });
    engine.begin(*held);
    waiting.join();
    CHECK(held->done());
    CHECK(held->failed() == hasFailed);
    CHECK(next->failed() == hasFailed);
  }
  CHECK(order == std::vector<int>{1, 2});
  CHECK(whatFailed(engine.synchronize().get()) == "no");
}

TEST_CASE("synchronize reports the failure enqueued first, whichever happens first") {
  Pool pool(3);
  Engine engine(pool);
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> otherFailed{false};
    after(engine, {}, [&] {
      while (!otherFailed)
        std::this_thread::yield();
      return broken("earlier");
    });
    after(engine, {}, [&] {
      otherFailed = true;
      return broken("later");
    });
    CHECK(whatFailed(engine.synchronize().get()) == "earlier");
  }
}

TEST_CASE("exceptions arrive where the task is waited for") {
  Pool pool(2);
  Engine engine(pool);
  TaskRef bad = after(engine, {}, [] { throw std::out_of_range("at line 7"); });
  TaskRef dependent = after(engine, {bad.get()}, [] {});
  const Failure *failure = dependent->wait();
  CHECK(whatFailed(failure) == "at line 7");
  CHECK_THROWS_AS(std::rethrow_exception(failure->exception), std::out_of_range);
  CHECK(engine.synchronize()->exception == failure->exception);
  TaskRef odd = after(engine, {}, [] { throw 5; });
  CHECK_THROWS_AS(std::rethrow_exception(odd->wait()->exception), int);
}

TEST_CASE("a producer that runs ahead waits") {
  Pool pool(GENERATE(1, 2));
  Engine engine(pool);
  engine.setLimit(100000);
  size_t most = 0;
  std::atomic<int> ran{0};
  for (int i = 0; i < 2000; ++i) {
    after(engine, {}, [&] { ran++; });
    engine.enqueue({}, 10000, [&] { ran++; });
    most = std::max(most, engine.bytesInFlight());
  }
  CHECK(most <= 100000 + 11000);
  engine.enqueue({}, SIZE_MAX, [&] { ran++; });
  engine.enqueue({}, 1 << 20, [&] { ran++; });
  engine.setLimit(0);
  for (int i = 0; i < 100; ++i)
    engine.enqueue({}, 1, [&] { ran++; });
  CHECK(!engine.synchronize());
  CHECK(ran == 4102);
}

TEST_CASE("tasks use parallelFor") {
  Pool pool(GENERATE(1, 2, 4));
  Engine engine(pool);
  std::vector<std::atomic<int64_t>> sums(60);
  std::vector<TaskRef> tasks;
  for (auto &sum : sums)
    tasks.push_back(engine.enqueue({}, 0, [&] {
      pool.parallelFor(1000, 10, [&](int64_t lo, int64_t hi, int) {
        for (; lo < hi; ++lo)
          sum += lo;
      });
    }));
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i]->wait();
    CHECK(sums[i] == 499500);
  }
}

TEST_CASE("tasks wait for tasks") {
  Pool pool(GENERATE(1, 2, 4));
  Engine engine(pool);
  std::function<int(int)> fibonacci = [&](int n) {
    if (n < 2)
      return n;
    int a = 0, b = 0;
    TaskRef left = after(engine, {}, [&, n] { a = fibonacci(n - 1); });
    TaskRef right = after(engine, {}, [&, n] { b = fibonacci(n - 2); });
    right->wait();
    left->wait();
    return a + b;
  };
  int result = 0;
  after(engine, {}, [&] { result = fibonacci(14); })->wait();
  CHECK(result == 377);
}

TEST_CASE("tasks that wait for chains of tasks, more of them than threads") {
  Pool pool(GENERATE(1, 2, 3));
  Engine engine(pool);
  std::atomic<int> finished{0};
  for (int i = 0; i < 12; ++i)
    after(engine, {}, [&] {
      std::vector<TaskRef> chain{after(engine, {}, [] {})};
      for (int k = 0; k < 5; ++k)
        chain.push_back(after(engine, {chain.back().get()}, [] { std::this_thread::yield(); }));
      chain.back()->wait();
      // The same from a body on any worker.
      pool.parallelFor(4, 1, [&](int64_t, int64_t, int) {
        TaskRef first = after(engine, {}, [] {});
        after(engine, {first.get()}, [] {})->wait();
      });
      finished++;
    });
  CHECK(!engine.synchronize());
  CHECK(finished == 12);
}

TEST_CASE("synchronize inside a task is an error, not a deadlock") {
  Pool pool(GENERATE(1, 2));
  Engine engine(pool);
  std::string message;
  after(engine, {}, [&] { message = whatFailed(engine.synchronize().get()); })->wait();
  CHECK(message.find("synchronize() inside a task") != std::string::npos);
}

TEST_CASE("many threads enqueue, wait and synchronize") {
  Pool pool(GENERATE(1, 3));
  Engine engine(pool);
  engine.setLimit(20000);
  std::atomic<int> mistakes{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      int64_t value = 0;
      TaskRef last;
      for (int i = 1; i <= 2000; ++i) {
        last = engine.enqueue(std::initializer_list<Task *>{last.get()}, random() % 1000, [&value, i] { value += i; });
        if (random() % 100 == 0) {
          last->wait();
          mistakes += value != int64_t(i) * (i + 1) / 2;
        }
        if (random() % 500 == 0)
          mistakes += static_cast<bool>(engine.synchronize());
      }
      last->wait();
      mistakes += value != 2001000;
    });
  for (auto &thread : threads)
    thread.join();
  CHECK(mistakes == 0);
}

TEST_CASE("chains of a million tasks run, fail and are freed without deep recursion") {
  Pool pool(2);
  Engine engine(pool);
  engine.setLimit(SIZE_MAX); // lets the whole chain wait
  constexpr int kLength = 1000000;
  std::atomic<bool> gate{false};
  std::atomic<int> ran{0};
  bool fails = GENERATE(false, true);
  TaskRef last = after(engine, {}, [&] {
    while (!gate)
      std::this_thread::yield();
    return fails ? broken("the root") : Status();
  });
  // Each task's closure holds a reference to the previous task.
  for (int i = 0; i < kLength; ++i)
    last = after(engine, {last.get()}, [&ran, before = last] { ran.fetch_add(1, std::memory_order_relaxed); });
  gate = true;
  CHECK(whatFailed(last->wait()) == (fails ? "the root" : "nothing"));
  CHECK(ran == (fails ? 0 : kLength));
  engine.synchronize();
}

TEST_CASE("a million ready tasks") {
  Pool pool(2);
  Engine engine(pool);
  engine.setLimit(SIZE_MAX);
  std::atomic<bool> gate{false};
  std::atomic<int> ran{0};
  TaskRef root = after(engine, {}, [&] {
    while (!gate)
      std::this_thread::yield();
  });
  for (int i = 0; i < 1000000; ++i)
    after(engine, {root.get()}, [&] { ran.fetch_add(1, std::memory_order_relaxed); });
  gate = true;
  engine.synchronize();
  CHECK(ran == 1000000);
}

TEST_CASE("work is destroyed before its task is done, also when it never ran") {
  Pool pool(2);
  Engine engine(pool);
  for (bool fails : {false, true}) {
    auto token = std::make_shared<int>(7);
    TaskRef first = after(engine, {}, [fails] { return fails ? broken("x") : Status(); });
    TaskRef second = after(engine, {first.get()}, [token] {});
    second->wait();
    CHECK(token.use_count() == 1);
    after(engine, {second.get()}, [token] {})->wait();
    CHECK(token.use_count() == 1);
  }
  engine.synchronize();
}

TEST_CASE("work may be only movable, and a failure outlives its task and engine") {
  FailureRef kept;
  {
    Pool pool(2);
    {
      Engine engine(pool);
      auto text = std::make_unique<std::string>("kept");
      after(engine, {}, [text = std::move(text)] { return broken(text->c_str()); });
      kept = engine.synchronize();
    }
  }
  CHECK(whatFailed(kept.get()) == "kept");
}

TEST_CASE("an engine waits for its tasks when it is destroyed, and tasks may outlive it") {
  Pool pool(GENERATE(1, 3));
  std::vector<TaskRef> tasks;
  std::atomic<int> ran{0};
  for (int round = 0; round < 100; ++round) {
    Engine engine(pool);
    for (int i = 0; i < 20; ++i)
      tasks.push_back(after(engine, {tasks.size() % 20 ? tasks.back().get() : nullptr}, [&] { ran++; }));
  }
  CHECK(ran == 2000);
  for (TaskRef &task : tasks)
    CHECK(task->wait() == nullptr);
}

TEST_CASE("an engine can be destroyed while the threads that helped it out are still coming and going") {
  Pool pool(GENERATE(1, 3));
  for (int round = 0; round < 500; ++round) {
    std::atomic<int> finished{0};
    Engine engine(pool);
    for (int i = 0; i < 4; ++i)
      after(engine, {}, [&] {
        TaskRef first = after(engine, {}, [] {});
        after(engine, {first.get()}, [&] { finished++; })->wait();
      });
    if (round % 2) {
      engine.synchronize();
      CHECK(finished == 4);
    }
  }
}

TEST_CASE("a work that cannot be copied in leaves the engine as it was") {
  Pool pool(2);
  Engine engine(pool);
  struct Throwing {
    Throwing() = default;
    Throwing(const Throwing &) { throw std::runtime_error("copy"); }
    void operator()() const {}
  } work;
  CHECK_THROWS_AS(engine.enqueue({}, 0, work), std::runtime_error);
  CHECK(engine.bytesInFlight() == 0);
  CHECK(!engine.synchronize());
}
