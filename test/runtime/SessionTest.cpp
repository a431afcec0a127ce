// Running artifacts: shapes, threads, memory, profiles, asynchronous runs.
#include "runtime/execute/session/AsyncRunner.h"
#include "test/runtime/Checks.h"
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

using namespace burin;
using namespace burin::rt;
using namespace burin::rt::test;

// Counts the allocations of a run. Sanitizers replace these functions themselves.
#if defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif
#if !SANITIZED
namespace {
std::atomic<int64_t> allocations;
}
void *operator new(size_t bytes) {
  ++allocations;
  return std::malloc(bytes);
}
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, size_t) noexcept { std::free(p); }
#endif

namespace {

std::unique_ptr<Session> makeSession(Program::Ptr program, SessionOptions options = {}) {
  std::unique_ptr<Session> session;
  requireOk(Session::create(std::move(program), options, session));
  return session;
}

std::vector<float> ramp(size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i)
    x[i] = float(i % 7) * .1f - .3f;
  return x;
}

void requireClose(const std::vector<float> &got, const std::vector<float> &want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (std::fabs(got[i] - want[i]) > 1e-5f * std::fabs(want[i]))
      FAIL("element " << i << " is " << got[i] << ", expected " << want[i]);
}

/// Runs threeSteps(n) on a batch and returns y.
std::vector<float> runThreeSteps(Session &session, const std::vector<float> &x, int64_t n) {
  std::vector<float> y(x.size(), -1);
  std::vector<int64_t> shape = {int64_t(x.size()) / n, n};
  TensorView input = view(x, shape), output = view(y, shape);
  requireOk(session.run({&input, 1}, {&output, 1}));
  return y;
}

Status runWith(Session &session, const std::vector<TensorView> &inputs, std::vector<TensorView> outputs) {
  return session.run(inputs, outputs);
}

/// Steps that are large enough for several threads at any size.
Model heavySteps(int64_t n) {
  Model m = threeSteps(n);
  for (Step &step : m.plan().steps)
    step.flops = m.constant(int64_t(1) << 30);
  return m;
}

const std::vector<int64_t> shape23 = {2, 3}, shape24 = {2, 4}, shape6 = {6};

} // namespace

TEST_CASE("one artifact serves every batch size") {
  auto session = makeSession(threeSteps(5).load());
  for (int64_t batch : {1, 7, 256, 0, 7}) {
    std::vector<float> x = ramp(size_t(batch) * 5);
    requireClose(runThreeSteps(*session, x, 5), expectedThreeSteps(x, 5));
  }
}

TEST_CASE("a session owns the outputs nobody gave memory for") {
  auto session = makeSession(threeSteps(3).load());
  std::vector<float> x = ramp(6);
  TensorView input = view(x, shape23), output;
  requireOk(session->run({&input, 1}, {&output, 1}));
  REQUIRE(std::vector<int64_t>(output.shape, output.shape + output.rank) == shape23);
  REQUIRE(output.dtype == f32);
  auto *y = static_cast<float *>(output.data);
  requireClose({y, y + 6}, expectedThreeSteps(x, 3));
}

TEST_CASE("inputs and outputs may be unaligned") {
  auto session = makeSession(threeSteps(3).load());
  std::vector<float> x = ramp(6);
  std::vector<std::byte> xBytes(25), yBytes(25);
  std::memcpy(xBytes.data() + 1, x.data(), 24);
  TensorView input{xBytes.data() + 1, shape23.data(), 2, f32}, output{yBytes.data() + 1, shape23.data(), 2, f32};
  requireOk(session->run({&input, 1}, {&output, 1}));
  std::vector<float> y(6);
  std::memcpy(y.data(), yBytes.data() + 1, 24);
  requireClose(y, expectedThreeSteps(x, 3));
}

TEST_CASE("results do not depend on threads or on who runs them") {
  std::vector<float> x = ramp(1000 * 5);
  auto program = heavySteps(5).load();
  std::vector<float> serial = runThreeSteps(*makeSession(program, {.threads = 1}), x, 5);
  requireClose(serial, expectedThreeSteps(x, 5));
  CHECK(runThreeSteps(*makeSession(program), x, 5) == serial);
  CHECK(runThreeSteps(*makeSession(program, {.threads = 4}), x, 5) == serial);

  SessionOptions hooked;
  int calls = 0;
  hooked.parallelFor = {&calls,
                        [](void *ctx, int64_t n, int64_t grain, Pool::Body body, void *bodyCtx) {
                          ++*static_cast<int *>(ctx);
                          for (int64_t hi = n; hi > 0; hi -= grain) // from the end, with alternating workers
                            body(bodyCtx, std::max<int64_t>(0, hi - grain), hi, int(hi % 3));
                        },
                        3};
  CHECK(runThreeSteps(*makeSession(program, hooked), x, 5) == serial);
  CHECK(calls == 3);
}

TEST_CASE("iterations of a loop give the same on any number of threads") {
  Model model = loopOverRows(5);
  SECTION("cheap iterations") {}
  SECTION("iterations that are worth a thread") {
    ExprId much = model.constant(1'000'000);
    for (Step &step : model.plan().steps)
      step.flops = much;
  }
  auto program = model.load();
  for (size_t rows : {0, 1, 2, 3, 7, 16, 101}) {
    std::vector<float> x = ramp(rows * 5);
    for (int threads : {1, 2, 3, 8}) {
      INFO(rows << " rows, " << threads << " threads");
      auto session = makeSession(program, {.threads = threads});
      for (int again = 0; again < 2; ++again)
        requireClose(runThreeSteps(*session, x, 5), expectedThreeSteps(x, 5));
      CHECK(session->arenaBytes() <= uint64_t(threads) * 128); // two buffers of one row per thread
    }
  }
}

TEST_CASE("iterations of a loop with state follow each other, any number of them, from either end") {
  constexpr int64_t n = 5;
  for (bool reverse : {false, true})
    for (int threads : {1, 2}) {
      auto session = makeSession(recurrence(n, reverse).load(), {.threads = threads});
      for (int64_t iterations : {3, 0, 1, 20}) {
        std::vector<float> first = ramp(4 * n), w = ramp(size_t(iterations * n)), want = first;
        std::vector<float> got(size_t((iterations + 1) * 4 * n), -1);
        for (int64_t t = 0; t < iterations; ++t)
          for (int64_t i = 0, row = reverse ? iterations - 1 - t : t; i < 4 * n; ++i)
            want.push_back(want[size_t(t * 4 * n + i)] * w[size_t(row * n + i % n)] + .5f);
        std::vector<int64_t> shape = {4, n}, factors = {iterations, n}, all = {iterations + 1, 4, n};
        requireOk(runWith(*session, {view(first, shape), view(w, factors)}, {view(got, all)}));
        requireClose(got, want);
      }
    }
}

TEST_CASE("parts of a loop that lie outside of what they are a part of are refused") {
  auto messageOf = [](void (*change)(Model &)) {
    Model m = recurrence(5, false);
    change(m);
    const std::vector<float> first = ramp(20), w = ramp(20);
    return std::string(runWith(*makeSession(m.load()), {view(first, {4, 5}), view(w, {4, 5})}, {{}}).message());
  };
  CHECK(messageOf([](Model &) {}) == "");
  CHECK(contains(messageOf([](Model &m) { m.plan().parts[1].begin = m.constant(404); }), "part 1 of a loop of 4"));
  CHECK(contains(messageOf([](Model &m) { m.plan().parts[2].stride = m.constant(-20); }), "part 2 of a loop of 4"));
  CHECK(contains(messageOf([](Model &m) { m.plan().parts[2].begin = m.constant(-20); }), "part 2 of a loop of 4"));
  CHECK(
      contains(messageOf([](Model &m) { m.plan().parts[0].stride = m.constant(INT64_MAX); }), "part 0 of a loop of 4"));
}

TEST_CASE("a profile counts the iterations of a loop") {
  auto session = makeSession(loopOverRows(5).load(), {.threads = 2});
  std::vector<StepProfile> profile;
  requireOk(session->setProfile(
      {&profile, [](void *ctx, const StepProfile &p) { static_cast<std::vector<StepProfile> *>(ctx)->push_back(p); }}));
  std::vector<float> x = ramp(20);
  requireClose(runThreeSteps(*session, x, 5), expectedThreeSteps(x, 5));
  REQUIRE(profile.size() == 12);
  for (uint32_t i = 0; i < 12; ++i) {
    CHECK(profile[i].step == i % 3);
    CHECK(profile[i].iteration == i / 3);
    CHECK(profile[i].iterations == 4);
    CHECK(profile[i].flops == 5);
  }
}

TEST_CASE("small steps stay on the calling thread") {
  SessionOptions hooked;
  hooked.parallelFor = {nullptr, [](void *, int64_t, int64_t, Pool::Body, void *) { FAIL("went to the pool"); }, 3};
  std::vector<float> x = ramp(10);
  requireClose(runThreeSteps(*makeSession(threeSteps(5).load(), hooked), x, 5), expectedThreeSteps(x, 5));
}

TEST_CASE("sessions of one artifact run at the same time") {
  auto program = heavySteps(5).load();
  std::vector<float> x = ramp(500);
  std::vector<float> expected = expectedThreeSteps(x, 5);
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::unique_ptr<Session> session;
      bool ok = Session::create(program, {}, session).ok();
      for (int i = 0; ok && i < 50; ++i) {
        std::vector<float> y(x.size());
        std::vector<int64_t> shape = {100, 5};
        TensorView input = view(x, shape), output = view(y, shape);
        ok = session->run({&input, 1}, {&output, 1}).ok();
        for (size_t k = 0; k < y.size(); ++k)
          ok = ok && std::fabs(y[k] - expected[k]) <= 1e-5f * expected[k];
      }
      good += ok;
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(good == 4);
}

#if !SANITIZED
TEST_CASE("a run with known shapes allocates nothing") {
  auto session = makeSession(heavySteps(5).load());
  std::vector<std::vector<float>> xs = {ramp(5), ramp(50), ramp(35)};
  std::vector<float> y(50);
  auto runAll = [&] {
    for (const auto &x : xs) {
      int64_t shape[] = {int64_t(x.size()) / 5, 5};
      TensorView input{const_cast<float *>(x.data()), shape, 2, f32}, output{y.data(), shape, 2, f32};
      if (!session->run({&input, 1}, {&output, 1}).ok())
        std::abort();
      output = {};
      if (!session->run({&input, 1}, {&output, 1}).ok())
        std::abort();
    }
  };
  runAll();
  int64_t before = allocations;
  for (int i = 0; i < 100; ++i)
    runAll();
  CHECK(allocations - before == 0);
}
#endif

TEST_CASE("many shapes do not grow a session") {
  struct Counter {
    int64_t bytes = 0, peak = 0;
  } counter;
  SessionOptions options;
  options.allocator = {&counter,
                       [](void *ctx, size_t bytes, size_t align) {
                         auto &c = *static_cast<Counter *>(ctx);
                         c.peak = std::max(c.peak, c.bytes += int64_t(bytes));
                         return std::aligned_alloc(align, bytes);
                       },
                       [](void *ctx, void *data, size_t bytes) {
                         static_cast<Counter *>(ctx)->bytes -= int64_t(bytes);
                         std::free(data);
                       }};
  auto session = makeSession(threeSteps(5).load(), options);
  for (int round = 0; round < 3; ++round)
    for (int64_t batch = 1; batch <= 100; ++batch) {
      std::vector<float> x = ramp(size_t(batch) * 5);
      requireClose(runThreeSteps(*session, x, 5), expectedThreeSteps(x, 5));
    }
  CHECK(counter.bytes > 0);
  CHECK(counter.peak <= 32768); // two buffers of 2,000 bytes and scratch, in whole pages
  session.reset();
  CHECK(counter.bytes == 0);
}

TEST_CASE("memory that is not there is an error") {
  SessionOptions options;
  options.allocator = {nullptr, [](void *, size_t, size_t) -> void * { return nullptr; },
                       [](void *, void *, size_t) {}};
  auto session = makeSession(threeSteps(3).load(), options);
  std::vector<float> x = ramp(6), y(6);
  Status s = runWith(*session, {view(x, shape23)}, {view(y, shape23)});
  REQUIRE(s.code() == ErrorCode::OutOfMemory);
  CHECK(contains(s.message(), "intermediate results"));
}

TEST_CASE("wrong calls are refused with all that is wrong") {
  Model m;
  ExprId batch = m.symbol("batch", 0, 0, 1, 64), three = m.constant(3);
  ExprId twice = m.op(Expr::Op::Mul, batch, m.constant(2));
  m.input("x", {batch, three});
  m.input("mask", {twice, three}, i32);
  m.output("y", {batch, three});
  m.step("nothing", {in(0), in(1), out(0)}, {}, batch);
  auto session = makeSession(m.load());
  std::vector<float> x(1000), y(6);
  const std::vector<int64_t> shape43 = {4, 3}, shape33 = {3, 3}, shape653 = {65, 3};
  TensorView mask{x.data(), shape43.data(), 2, i32};

  requireOk(runWith(*session, {view(x, shape23), mask}, {view(y, shape23)}));
  auto refused = [&](const std::vector<TensorView> &inputs, const std::vector<TensorView> &outputs) {
    Status s = runWith(*session, inputs, outputs);
    REQUIRE(s.code() == ErrorCode::InvalidArgument);
    CHECK(std::count(s.message().begin(), s.message().end(), '\n') < 6);
    return s.message();
  };
  TensorView ok = view(x, shape23), result = view(y, shape23), wrongType = mask, noData = ok;
  wrongType.dtype = f32;
  noData.data = nullptr;
  CHECK(contains(refused({ok}, {result}), "takes 2 inputs, 1 were given"));
  CHECK(contains(refused({ok, mask}, {}), "has 1 outputs, 0 were given"));
  CHECK(contains(refused({ok, wrongType}, {result}), "input 1 (mask) must be i32[batch*2, 3], got f32[4, 3]"));
  std::string both = refused({view(x, shape6), wrongType}, {result});
  CHECK(contains(both, "input 0 (x) must be f32[batch, 3], got f32[6]"));
  CHECK(contains(both, "input 1 (mask)"));
  CHECK(contains(refused({view(x, shape24), mask}, {result}), "input 0 (x) axis 1: expected 3, got 4"));
  CHECK(contains(refused({view(x, shape33), mask}, {result}),
                 "input 1 (mask) axis 0: expected batch*2 = 6, got 4 (batch = 3)"));
  CHECK(contains(refused({view(x, shape653), mask}, {result}), "input 0 (x) axis 0: batch must be in [1, 64], got 65"));
  CHECK(contains(refused({noData, mask}, {result}), "input 0 (x) has no data"));
  CHECK(contains(refused({ok, mask}, {view(y, shape6)}), "output 0 (y) must be f32[2, 3], got f32[6]"));
  CHECK(contains(refused({{nullptr, nullptr, 2, f32}, mask}, {result}), "input 0 (x) has no shape"));
  CHECK(contains(refused({{x.data(), shape23.data(), 2, DType(77)}, mask}, {result}), "got an unknown type[2, 3]"));

  requireOk(runWith(*session, {ok, mask}, {result})); // the refused run has not damaged the session
}

TEST_CASE("sizes that make no sense are refused, not run") {
  Model m;
  ExprId n = m.symbol("n", 0, 0);
  m.input("x", {n});
  m.output("y", {m.op(Expr::Op::Sub, n, m.constant(10))});
  m.step("nothing", {in(0), m.buffer(m.op(Expr::Op::Mul, n, m.constant(int64_t(1) << 40)), 0, 0), out(0)}, {},
         m.op(Expr::Op::FloorDiv, m.constant(100), m.op(Expr::Op::Sub, n, m.constant(20))));
  auto session = makeSession(m.load());
  auto bind = [&](int64_t size) {
    TensorView input{nullptr, &size, 1, f32};
    return session->bind({&input, 1});
  };
  CHECK(contains(bind(9).message(), "output 0 (y) would have the impossible shape f32[-1]"));
  CHECK(contains(bind(20).message(), "not computable with these shapes: 100/(n - 20) for n = 20"));
  CHECK(contains(bind(12).message(), "the task count of step 0 would have the impossible size -13"));
  CHECK(contains(bind(1 << 20).message(), "buffer 0 would have the impossible size"));
  CHECK(contains(bind(int64_t(1) << 50).message(), "not computable"));
  CHECK_FALSE(session->isBound());
  requireOk(bind(25));
  CHECK(session->outputShape(0)[0] == 15);
}

TEST_CASE("sizes that a plan takes to be equal are checked") {
  Model m = threeSteps(3);
  ExprId batch = m.plan().inputs[0].dims[0];
  m.plan().checks.push_back({m.op(Expr::Op::Min, batch, m.constant(4)), batch, m.location("net.cpp:7")});
  std::unique_ptr<Session> session = makeSession(m.load());
  std::vector<float> x(15);
  std::vector<int64_t> fits{4, 3}, isLarger{5, 3};
  TensorView input = view(x, fits);
  CHECK(session->bind({&input, 1}).ok());
  input = view(x, isLarger);
  Status s = session->bind({&input, 1});
  CHECK(s.code() == ErrorCode::InvalidArgument);
  CHECK(contains(s.message(), "net.cpp:7: min(batch, 4) must be equal to batch, but they are 4 and 5 for batch = 5"));
}

TEST_CASE("output shapes are known before a run") {
  auto session = makeSession(threeSteps(4).load());
  TensorView input{nullptr, shape24.data(), 2, f32};
  requireOk(session->bind({&input, 1}));
  CHECK(std::vector<int64_t>(session->outputShape(0).begin(), session->outputShape(0).end()) == shape24);
  CHECK(session->outputBytes(0) == 32);
  CHECK(session->arenaBytes() == 128);
}

TEST_CASE("a profile names kernel and source of every step") {
  auto session = makeSession(threeSteps(5).load(), {.threads = 1});
  std::vector<StepProfile> profile;
  requireOk(session->setProfile(
      {&profile, [](void *ctx, const StepProfile &p) { static_cast<std::vector<StepProfile> *>(ctx)->push_back(p); }}));
  std::vector<float> x = ramp(10);
  runThreeSteps(*session, x, 5);
  REQUIRE(profile.size() == 3);
  const char *kernels[] = {"affine", "exponential", "reversed"};
  for (uint32_t i = 0; i < 3; ++i) {
    CHECK(profile[i].step == i);
    CHECK(std::string(profile[i].kernel) == kernels[i]);
    CHECK(std::string(profile[i].location) == "model.cpp:" + std::to_string(7 + i));
    CHECK(profile[i].startNs <= profile[i].endNs);
    CHECK((i == 0 || profile[i - 1].endNs <= profile[i].startNs));
    CHECK(profile[i].flops == 10);
    CHECK(profile[i].bytes == 40);
    CHECK(profile[i].tasks == (i == 1 ? 10 : 2));
    CHECK_FALSE(profile[i].parallel);
  }
  requireOk(session->setProfile({}));
  runThreeSteps(*session, x, 5);
  CHECK(profile.size() == 3);
}

TEST_CASE("a session that runs refuses a second run") {
  auto session = makeSession(threeSteps(5).load());
  struct Inner {
    Session &session;
    int refused = 0;
  } inner{*session};
  requireOk(session->setProfile({&inner, [](void *ctx, const StepProfile &) {
                                   auto &i = *static_cast<Inner *>(ctx);
                                   i.refused += i.session.run({}, {}).code() == ErrorCode::Busy;
                                   i.refused += i.session.setProfile({}).code() == ErrorCode::Busy;
                                 }}));
  std::vector<float> x = ramp(10);
  runThreeSteps(*session, x, 5);
  CHECK(inner.refused == 6);
}

TEST_CASE("impossible session options are refused") {
  std::unique_ptr<Session> session;
  auto program = threeSteps(3).load();
  CHECK_FALSE(Session::create(program, {.threads = -1}, session).ok());
  CHECK_FALSE(Session::create(program, {.threads = 1 << 20}, session).ok());
  CHECK_FALSE(session);
}

TEST_CASE("queued runs happen in order and report their end") {
  auto session = makeSession(threeSteps(5).load());
  struct Call {
    int index = 0;
    std::vector<int> *order = nullptr;
    std::vector<float> x, y;
    std::vector<int64_t> shape;
    ErrorCode code{};
    bool done = false;
  };
  std::vector<int> order;
  std::vector<Call> calls(200); // more than the queue holds: the caller blocks
  {
    AsyncRunner runner(*session);
    for (int i = 0; i < int(calls.size()); ++i) {
      Call &c = calls[size_t(i)];
      c.index = i, c.order = &order;
      c.x = ramp(size_t(1 + i % 9) * 5);
      c.y.resize(c.x.size());
      c.shape = {1 + i % 9, i % 50 == 17 ? 6 : 5}; // some are invalid
      TensorView input = view(c.x, c.shape), output = view(c.y, c.shape);
      Status queued = runner.enqueue(0, {&input, 1}, {&output, 1},
                                     {&c, [](void *ctx, const Status &status, std::span<const TensorView> out) {
                                        auto &call = *static_cast<Call *>(ctx);
                                        call.code = status.code();
                                        call.done = out.size() == 1 && out[0].data == call.y.data();
                                        call.order->push_back(call.index);
                                      }});
      requireOk(queued);
    }
  }
  REQUIRE(order.size() == calls.size());
  for (Call &c : calls) {
    CHECK(order[size_t(c.index)] == c.index);
    CHECK(c.done);
    if (c.index % 50 == 17)
      CHECK(c.code == ErrorCode::InvalidArgument);
    else
      requireClose(c.y, expectedThreeSteps(c.x, 5));
  }
}

TEST_CASE("a finished run may queue the next") {
  auto session = makeSession(threeSteps(5).load());
  AsyncRunner runner(*session);
  struct Chain {
    AsyncRunner &runner;
    std::vector<float> x;
    std::vector<int64_t> shape = {2, 5};
    std::atomic<int> left = 200; // more than the queue holds

    void next() {
      TensorView input = view(x, shape), output;
      Status queued = runner.enqueue(0, {&input, 1}, {&output, 1},
                                     {this, [](void *ctx, const Status &status, std::span<const TensorView>) {
                                        auto &chain = *static_cast<Chain *>(ctx);
                                        if (status.ok() && --chain.left > 0)
                                          chain.next();
                                      }});
      if (!queued.ok())
        left = -1;
    }
  } chain{runner, ramp(10)};
  chain.next();
  while (chain.left > 0)
    std::this_thread::yield();
  CHECK(chain.left == 0);
}
