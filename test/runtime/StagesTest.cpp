// Sizes that a run computes: stages, their bindings, and errors for damaged artifacts and invalid calls.
#include "runtime/format/Stages.h"
#include "test/runtime/Checks.h"
#include <cmath>
#include <random>

using namespace burin;
using namespace burin::rt;
using namespace burin::rt::test;

namespace {

std::unique_ptr<Session> makeSession(const Model &model, SessionOptions options = {}) {
  std::unique_ptr<Session> session;
  Model copy = model;
  requireOk(Session::create(copy.load(), options, session));
  return session;
}

struct Results {
  std::vector<float> y, z;
  bool operator==(const Results &) const = default;
};

/// The expected results of positives().
Results expected(const std::vector<float> &x) {
  Results r;
  for (float v : x)
    if (v > 0) {
      r.y.push_back(std::exp(v));
      if (r.y.back() - 1 > 0)
        r.z.push_back(std::exp(r.y.back() - 1));
    }
  return r;
}

std::vector<float> valuesOf(const TensorView &view) {
  auto *data = static_cast<const float *>(view.data);
  REQUIRE(view.rank == 1);
  return {data, data + view.shape[0]};
}

Results run(Session &session, const std::vector<float> &x) {
  std::vector<int64_t> shape = {int64_t(x.size())};
  TensorView input = view(x, shape);
  std::vector<TensorView> outputs(2);
  requireOk(session.run({&input, 1}, outputs));
  return {valuesOf(outputs[0]), valuesOf(outputs[1])};
}

void requireClose(const Results &got, const Results &want) {
  REQUIRE(got.y.size() == want.y.size());
  REQUIRE(got.z.size() == want.z.size());
  for (size_t i = 0; i < got.y.size(); ++i)
    REQUIRE(std::fabs(got.y[i] - want.y[i]) <= 1e-5f * want.y[i]);
  for (size_t i = 0; i < got.z.size(); ++i)
    REQUIRE(std::fabs(got.z[i] - want.z[i]) <= 1e-4f * want.z[i]);
}

std::vector<float> mixed(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> x(n);
  for (float &v : x)
    v = std::uniform_real_distribution<float>(-1, 1)(random);
  return x;
}

} // namespace

TEST_CASE("a plan is cut where it needs a size that it computes") {
  Stages stages = stagesOf(positives().plan());
  REQUIRE(stages.list.size() == 3);
  CHECK(stages.list[0].endStep == 1);
  CHECK(stages.list[1].firstStep == 1);
  CHECK(stages.list[2].firstStep == 4);
  CHECK(stages.list[2].endStep == 5);
  CHECK(stages.ofOutput == std::vector<uint32_t>{1, 2});
}

TEST_CASE("computed sizes decide shapes and work of what follows") {
  for (int threads : {1, 3}) {
    auto session = makeSession(positives(), {.threads = threads});
    for (unsigned seed = 0; seed < 40; ++seed) {
      std::vector<float> x = mixed(seed % 4 * 50, seed);
      requireClose(run(*session, x), expected(x));
    }
    requireClose(run(*session, std::vector<float>(100, -1)), {}); // no element is positive
    requireClose(run(*session, std::vector<float>(100, .5f)), expected(std::vector<float>(100, .5f)));
  }
}

TEST_CASE("a run with sizes of an earlier one allocates nothing but what the caller sees") {
  auto session = makeSession(positives(), {.threads = 1});
  std::vector<float> x = mixed(64, 1), y = mixed(64, 2);
  Results first = run(*session, x);
  run(*session, y);
  struct Counter {
    int planned = 0;
  } counter;
  SessionOptions options{.threads = 1};
  options.logger = {&counter, [](void *ctx, int, const char *message) {
                      static_cast<Counter *>(ctx)->planned += std::string_view(message).find("planned") == 0;
                    }};
  auto logged = makeSession(positives(), options);
  for (int round = 0; round < 5; ++round) {
    CHECK(run(*logged, x) == first);
    run(*logged, y);
  }
  CHECK(counter.planned <= 5); // the inputs once, then k and m of each run
}

TEST_CASE("memory for an output of unknown size must be exactly right") {
  auto session = makeSession(positives());
  std::vector<float> x = mixed(20, 3), room(20);
  Results want = expected(x);
  std::vector<int64_t> shape = {20}, right = {int64_t(want.y.size())}, tooLarge = {right[0] + 1};
  TensorView input = view(x, shape);
  std::vector<TensorView> outputs = {view(room, right), {}};
  requireOk(session->run({&input, 1}, outputs));
  CHECK(outputs[0].data == room.data());
  requireClose({{room.begin(), room.begin() + right[0]}, valuesOf(outputs[1])}, want);

  outputs = {view(room, tooLarge), {}};
  Status s = session->run({&input, 1}, outputs);
  REQUIRE(s.code() == ErrorCode::InvalidArgument);
  CHECK(contains(s.message(), "output 0 (y) must be f32[" + std::to_string(right[0]) + "]"));
  CHECK(outputs[1].data == nullptr); // a failed run does not change the result descriptors
  outputs[0] = {};
  requireOk(session->run({&input, 1}, outputs));
  requireClose({valuesOf(outputs[0]), valuesOf(outputs[1])}, want);

  x.assign(20, 1); // the session's memory of the last run may be passed to it again
  requireOk(session->run({&input, 1}, outputs));
  CHECK(outputs[0].shape[0] == 20);
}

TEST_CASE("a size is -1 until a run has computed it") {
  auto session = makeSession(positives());
  std::vector<float> x = {1, -1, 2};
  std::vector<int64_t> shape = {3};
  TensorView input = view(x, shape);
  requireOk(session->bind({&input, 1}));
  CHECK(session->outputShape(0)[0] == -1);
  run(*session, x);
  CHECK(session->outputShape(0)[0] == 2);
  CHECK(session->outputBytes(1) == 8);
  CHECK(session->arenaBytes() >= 3 * 64);
}

TEST_CASE("a computed size out of range ends the run") {
  Model m = positives();
  m.plan().symbols[1].limit = m.constant(3);
  auto session = makeSession(m);
  std::vector<float> x(10, 1);
  std::vector<int64_t> shape = {10};
  TensorView input = view(x, shape);
  std::vector<TensorView> outputs(2);
  Status s = session->run({&input, 1}, outputs);
  REQUIRE(s.code() == ErrorCode::InvalidArgument);
  CHECK(contains(s.message(), "the size k is computed as 10, but must be in [0, 3]"));
  CHECK(contains(s.message(), "model.cpp:1"));
}

TEST_CASE("a size may be the value of an input") {
  Model m;
  ExprId n = m.symbol("n", 0, 0);
  m.input("x", {n});
  m.input("count", {}, i64);
  ExprId k = m.computed("k", in(1), 0, n);
  m.output("y", {k});
  m.step("exponential", {in(0), out(0)}, {}, k);
  auto session = makeSession(m);
  std::vector<float> x(8, 0);
  std::vector<int64_t> shape = {8};
  for (int64_t count : {0, 5, 8, 9, -1}) {
    TensorView inputs[] = {view(x, shape), {&count, nullptr, 0, i64}}, output;
    Status s = session->run(inputs, {&output, 1});
    CHECK(s.ok() == (count >= 0 && count <= 8));
    if (s.ok())
      CHECK(output.shape[0] == count);
  }
}

TEST_CASE("a plan that needs sizes before they are known is refused") {
  auto problem = [](void (*change)(Model &)) {
    Model m = positives();
    change(m);
    ArtifactView view;
    Status s = parseArtifact(m.bytes(), WeightCheck::Verify, view);
    REQUIRE(s.code() == ErrorCode::BadArtifact);
    return s.message();
  };
  using Kind = Symbol::Kind;
  CHECK(contains(problem([](Model &m) { m.plan().symbols[1].kind = Kind(3); }), "symbol 1: no kind 3"));
  CHECK(contains(problem([](Model &m) { std::swap(m.plan().symbols[1], m.plan().symbols[2]); }),
                 "symbol 2: comes after"));
  CHECK(contains(problem([](Model &m) { std::swap(m.plan().symbols[0], m.plan().symbols[1]); }),
                 "symbol 1: comes after"));
  CHECK(contains(problem([](Model &m) { m.plan().symbols[0].step = 1; }), "symbol 0: the size of an input"));
  CHECK(contains(problem([](Model &m) { m.plan().symbols[2].step = 6; }), "symbol 2: read before step 6"));
  CHECK(contains(problem([](Model &m) { m.plan().symbols[1].step = 2; }), "symbol 1: its number is not there"));
  CHECK(contains(problem([](Model &m) { m.plan().symbols[1].limit = 99; }), "symbol 1: no expression 99"));
  CHECK(contains(problem([](Model &m) { m.plan().symbols[1].location = 99; }), "symbol 1: no location 99"));
  CHECK(contains(problem([](Model &m) { m.plan().symbols[1].limit = m.plan().outputs[1].dims[0]; }),
                 "symbol 1: its limit"));
  CHECK(contains(problem([](Model &m) { m.plan().symbols[1].count = {Slot::Kind(9), 0}; }),
                 "symbol 1: operand of kind 9"));
  CHECK(contains(problem([](Model &m) { m.plan().symbols[1].count = in(0); }), "symbol 1: its number is not there"));
  CHECK(contains(problem([](Model &m) { m.plan().symbols[1].count = out(0); }), "symbol 1: its number is not there"));
  CHECK(contains(problem([](Model &m) { m.plan().symbols[1].count.index = 2; }), "symbol 1: its number is not there"));
  CHECK(
      contains(problem([](Model &m) { m.plan().symbols[1].count = {Slot::Kind::Constant, 0}; }), "its number is not"));
  CHECK(contains(problem([](Model &m) { m.plan().inputs[0].dims.push_back(m.plan().outputs[0].dims[0]); }),
                 "input 0: its shape"));
  CHECK(contains(problem([](Model &m) { m.plan().buffers[0].bytes = m.plan().outputs[0].dims[0]; }),
                 "buffer 0: its size"));
  CHECK(
      contains(problem([](Model &m) { m.plan().steps[0].tasks = m.plan().outputs[0].dims[0]; }), "step 0: expression"));
  CHECK(contains(problem([](Model &m) { m.plan().steps[0].operands[1] = out(0); }), "step 0: the shape of output 0"));
  CHECK(contains(problem([](Model &m) { m.plan().loops.push_back({0, 2, m.constant(1), 0}); }),
                 "loop 0: a size is computed"));
  CHECK(contains(problem([](Model &m) { m.plan().loops.push_back({0, 0, m.plan().outputs[0].dims[0], 0}); }),
                 "loop 0: expression"));
}

TEST_CASE("a changed plan with computed sizes is refused or can be bound") {
  std::mt19937 random(5);
  int refused = 0, accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    Model m = positives();
    for (uint32_t changes = 1 + random() % 3; changes--;) {
      Symbol &s = m.plan().symbols[random() % m.plan().symbols.size()];
      uint32_t number = random() % 4 ? random() % 7 : uint32_t(random());
      switch (random() % 7) {
      case 0:
        s.kind = Symbol::Kind(number % 3);
        break;
      case 1:
        s.step = number;
        break;
      case 2:
        s.limit = number;
        break;
      case 3:
        s.count = {Slot::Kind(random() % 5), number};
        break;
      case 4:
        m.plan().exprs[random() % m.plan().exprs.size()].program[0] = {Expr::Op::Symbol, number};
        break;
      case 5:
        m.plan().buffers[random() % m.plan().buffers.size()].firstStep = number;
        break;
      default:
        m.plan().buffers[random() % m.plan().buffers.size()].bytes = number;
      }
    }
    Program::Ptr program;
    if (!Program::loadMemory(m.bytes(), nullptr, {}, program).ok()) {
      ++refused;
      continue;
    }
    ++accepted;
    std::unique_ptr<Session> session;
    requireOk(Session::create(program, {.threads = 1}, session));
    std::vector<int64_t> shape = {3};
    TensorView input{nullptr, shape.data(), 1, f32};
    if (session->bind({&input, 1}).ok())
      REQUIRE(session->outputShape(0).size() == 1);
  }
  CHECK(refused > 500);
  CHECK(accepted > 100);
}
