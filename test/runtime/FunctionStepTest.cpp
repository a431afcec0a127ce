// Steps that run functions of the artifact or of the host: their results, and that damaged ones are refused.
#include "test/runtime/Checks.h"
#include <bit>
#include <cmath>
#include <functional>
#include <thread>

using namespace burin;
using namespace burin::rt;
using namespace burin::rt::test;

namespace {

using Kind = Step::Kind;

std::unique_ptr<Session> sessionOf(Model &m, SessionOptions options = {}) {
  std::unique_ptr<Session> session;
  requireOk(Session::create(m.load(), options, session));
  return session;
}

struct Result {
  Status status;
  std::vector<float> y;
};
/// Runs main(x[n], …) -> y[n]; `more` are further inputs.
Result runOn(Session &session, std::vector<float> x, std::vector<TensorView> more = {}) {
  std::vector<int64_t> shape = {int64_t(x.size())};
  Result result{{}, std::vector<float>(x.size(), -1)};
  std::vector<TensorView> inputs = {view(x, shape)};
  inputs.insert(inputs.end(), more.begin(), more.end());
  TensorView output = view(result.y, shape);
  result.status = session.run(inputs, {&output, 1});
  return result;
}
std::vector<float> valuesOf(Session &session, std::vector<float> x, std::vector<TensorView> more = {}) {
  Result result = runOn(session, std::move(x), std::move(more));
  requireOk(result.status);
  return result.y;
}

/// main(x[n]) -> y[n] = x * 2 + 1 by a call.
Model calling() {
  Model m;
  ExprId n = m.symbol("n", 0, 0);
  m.input("x", {n});
  m.output("y", {n});
  uint32_t function = affineFunction(m, "double", 2, 1);
  m.run(Kind::Call, {function}, {in(0), out(0)}, {n});
  return m;
}

/// main(x[n], choice: bool) -> y[n] = choice ? x * 2 : x * 3.
Model branching() {
  Model m;
  ExprId n = m.symbol("n", 0, 0);
  m.input("x", {n});
  m.input("choice", {}, boolean);
  m.output("y", {n});
  uint32_t then = affineFunction(m, "then", 2, 0), otherwise = affineFunction(m, "else", 3, 0);
  m.run(Kind::Branch, {then, otherwise}, {in(1), in(0), out(0)}, {n, n});
  return m;
}

std::string problemOf(Model m, const std::function<void(Model &)> &damage) {
  damage(m);
  Program::Ptr program;
  Status status = Program::loadMemory(m.bytes(), nullptr, {}, program);
  CHECK(status.code() == ErrorCode::BadArtifact);
  return status.message();
}

/// main(x[n]) -> y[n], computed by a host function.
Model asking(HostCall::Kind kind = HostCall::Kind::Function) {
  Model m;
  ExprId n = m.symbol("n", 0, 0);
  m.input("x", {n});
  m.output("y", {n});
  HostCall call;
  call.kind = kind;
  call.label = "values";
  call.function = 7;
  call.inputs = {{"", f32, {n}, 0}};
  if (kind == HostCall::Kind::Function)
    call.results = {{"", f32, {n}, 0}};
  m.plan().hostCalls = {call};
  Step &step = m.run(Kind::Host, {}, {in(0)}, {});
  step.location = m.location("model.cpp:5");
  if (kind == HostCall::Kind::Function)
    step.operands.push_back(out(0));
  else
    m.step("exponential", {in(0), out(0)}, {}, n);
  return m;
}

} // namespace

TEST_CASE("a call runs another plan, bound once per set of sizes") {
  Model m = calling();
  auto session = sessionOf(m);
  for (int round = 0; round < 2; ++round) {
    CHECK(valuesOf(*session, {1, 2, 3}) == std::vector<float>{3, 5, 7});
    CHECK(valuesOf(*session, {-4}) == std::vector<float>{-7});
    CHECK(valuesOf(*session, {}).empty());
  }
}

TEST_CASE("a branch runs one of two plans") {
  Model m = branching();
  auto session = sessionOf(m);
  for (uint8_t choice : {1, 0, 1, 2}) { // any byte except 0 is true
    TensorView view{&choice, nullptr, 0, boolean};
    const float factor = choice ? 2 : 3;
    CHECK(valuesOf(*session, {1, -5, .5f}, {view}) == std::vector<float>{factor, -5 * factor, .5f * factor});
  }
}

TEST_CASE("a loop leaves its values in the results after any number of iterations") {
  Model m = looping();
  auto session = sessionOf(m);
  int iterations = 0;
  for (float start : {200.f, 100.f, 60.f, 30.f, 10.f, 0.f, NAN}) {
    float x = start, y = 3;
    for (; x < 100; ++iterations)
      x = x * 2 + 1, y = y * 2 + 1;
    std::vector<float> got = valuesOf(*session, {start, 3});
    CHECK(std::bit_cast<uint32_t>(got[0]) == std::bit_cast<uint32_t>(x));
    CHECK(got[1] == y);
  }
  CHECK(iterations == 1 + 2 + 4 + 7);
}

TEST_CASE("functions run functions") { // main calls `outer`, whose branches are a loop and an empty function
  Model m;
  ExprId n = m.symbol("n", 0, 0);
  m.input("x", {n});
  m.output("y", {n});
  uint32_t outer = m.function("outer");
  ExprId passed = m.passed("n"), bytes = m.op(Expr::Op::Mul, passed, m.constant(4));
  m.input("x", {passed});
  m.output("y", {passed});
  Model inner = looping(); // its functions follow
  const auto first = uint32_t(m.a.plans.size());
  uint32_t loop = m.function("loop");
  m.plan() = inner.a.plans[0];
  m.plan().name = "loop";
  m.plan().isPrivate = 1;
  m.plan().symbols[0] = {};
  m.plan().symbols[0].name = "n";
  m.plan().symbols[0].kind = Symbol::Kind::Passed;
  for (uint32_t &plan : m.plan().steps[0].plans)
    plan += first;
  m.current = 0;
  for (size_t i = 1; i < inner.a.plans.size(); ++i) {
    uint32_t copy = m.function(inner.a.plans[i].name);
    m.a.plans[copy] = inner.a.plans[i];
    for (Step &step : m.plan().steps) {
      step.kernel = m.kernel(inner.a.kernels[step.kernel].name);
      for (Slot &slot : step.operands)
        if (slot.kind == Slot::Kind::Constant) {
          const Constant &constant = inner.a.constants[slot.index];
          slot = m.weight(constant.name, {inner.weights[constant.offset / 4]});
        }
    }
  }
  m.current = 0;
  uint32_t same = affineFunction(m, "same", 1, 0);
  m.current = outer;
  Slot choice = m.buffer(m.constant(1), 0, 1);
  m.step("below", {in(0), m.weight("zero", {0}), choice}, {}, m.constant(1));
  m.run(Kind::Branch, {same, loop}, {choice, in(0), out(0)}, {passed, passed});
  m.current = 0;
  m.run(Kind::Call, {outer}, {in(0), out(0)}, {n});
  auto session = sessionOf(m);
  CHECK(valuesOf(*session, {30, 1}) == std::vector<float>{123, 7});
  CHECK(valuesOf(*session, {-30, 1}) == std::vector<float>{-30, 1});
  CHECK(valuesOf(*session, {99, 0, 0}) == std::vector<float>{199, 1, 1});
  (void)bytes;
}

TEST_CASE("an error in a function ends the run with its text and line") {
  Model m;
  ExprId n = m.symbol("n", 0, 0);
  m.input("x", {n});
  m.output("y", {n});
  uint32_t function = m.function("checked");
  ExprId passed = m.passed("n"), bytes = m.op(Expr::Op::Mul, passed, m.constant(4));
  m.input("x", {passed});
  m.output("y", {passed});
  Slot between = m.buffer(bytes, 0, 1);
  m.step("positiveOnly", {in(0), between}, {}, passed).errorLocations = {m.location("model.cpp:9")};
  m.a.kernels[m.kernel("positiveOnly")].errors = {"a value is negative"};
  m.step("exponential", {between, out(0)}, {}, passed);
  m.current = 0;
  m.run(Kind::Call, {function}, {in(0), out(0)}, {n});
  for (int threads : {1, 3}) {
    SessionOptions options;
    options.threads = threads;
    auto session = sessionOf(m, options);
    CHECK(valuesOf(*session, {0, 0}) == std::vector<float>{1, 1});
    Status status = runOn(*session, {1, 2, -3, -4}).status;
    CHECK(status.code() == ErrorCode::Data);
    CHECK(contains(status.message(), "a value is negative (element 2)\n  at model.cpp:9"));
    CHECK(valuesOf(*session, {0}) == std::vector<float>{1}); // the session is unchanged
  }
}

TEST_CASE("threads with sessions of their own run functions at once") {
  Model m = looping();
  Program::Ptr program = m.load();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      std::unique_ptr<Session> session;
      if (!Session::create(program, {.threads = 1}, session).ok())
        ++wrong;
      for (int i = 0; i < 200; ++i)
        wrong += runOn(*session, {30, float(t)}).y != std::vector<float>{123, float(t) * 4 + 3};
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("the host's functions get views of the operands and may fail") {
  Model m = asking();
  std::unique_ptr<Session> none;
  Status refused = Session::create(m.load(), {}, none);
  CHECK(refused.code() == ErrorCode::Unsupported);
  CHECK(contains(refused.message(), "only that process can run it"));
  SessionOptions options;
  int calls = 0;
  options.host.ctx = &calls;
  options.host.call = [](void *ctx, uint32_t function, std::span<const TensorView> inputs,
                         std::span<const TensorView> results) -> Status {
    ++*static_cast<int *>(ctx);
    if (function != 7 || inputs.size() != 1 || results.size() != 1 || results[0].shape[0] != inputs[0].shape[0])
      return {ErrorCode::Internal, "called with something else"};
    for (int64_t i = 0; i < inputs[0].shape[0]; ++i) {
      float x = static_cast<const float *>(inputs[0].data)[i];
      if (x < 0)
        return {ErrorCode::Data, "no root"};
      static_cast<float *>(results[0].data)[i] = std::sqrt(x);
    }
    return {};
  };
  auto session = sessionOf(m, options);
  CHECK(valuesOf(*session, {4, 9, 0}) == std::vector<float>{2, 3, 0});
  Status status = runOn(*session, {4, -9}).status;
  CHECK(status.code() == ErrorCode::Data);
  CHECK(status.message() == "no root\n  at model.cpp:5");
  CHECK(valuesOf(*session, {}).empty());
  CHECK(calls == 3);
}

TEST_CASE("damaged steps that run functions are refused") {
  auto step = [](Model &m) -> Step & { return m.a.plans[0].steps.back(); };
  auto expect = [](const std::string &problem, const std::string &part) {
    INFO(problem);
    CHECK(contains(problem, part));
  };
  for (auto &make : {calling, branching, looping}) {
    // A function that does not exist, the caller itself, and a public function.
    for (uint32_t plan : {uint32_t(9), UINT32_MAX, uint32_t(0)})
      expect(problemOf(make(), [&](Model &m) { step(m).plans[0] = plan; }), "not a private one behind its own");
    expect(problemOf(make(), [&](Model &m) { step(m).plans.clear(); }), "names 0 functions");
    expect(problemOf(make(), [&](Model &m) { step(m).plans.resize(3, 1); }), "names 3 functions");
    expect(problemOf(make(), [&](Model &m) { step(m).sizes.pop_back(); }), "sizes, not");
    expect(problemOf(make(), [&](Model &m) { step(m).sizes.push_back(0); }), "sizes, not");
    expect(problemOf(make(), [&](Model &m) { step(m).sizes[0] = 1000; }), "no expression 1000");
    expect(problemOf(make(), [&](Model &m) { step(m).operands.pop_back(); }), "fit");
    expect(problemOf(make(), [&](Model &m) { step(m).operands.push_back(in(0)); }), "fit");
    expect(problemOf(make(), [&](Model &m) { step(m).operands[0] = {Slot::Kind::Buffer, 99}; }), "does not exist");
    expect(problemOf(make(), [&](Model &m) { step(m).kind = Kind(6); }), "no kind 6");
    expect(problemOf(make(), [&](Model &m) { m.a.plans[1].isPrivate = 0; }), "not a private one behind its own");
    expect(problemOf(make(), [&](Model &m) { m.plan().isPrivate = 1; }), "no functions");
    expect(problemOf(make(), [&](Model &m) { m.a.plans[1].isPrivate = 2; }), "no kind 2");
    expect(problemOf(make(), [&](Model &m) { m.a.plans[1].inputs.pop_back(); }), "");
    expect(problemOf(make(),
                     [&](Model &m) {
                       m.plan().loops.push_back({0, 0, m.constant(2), 0}); // a parallel loop
                     }),
           "in a loop of independent iterations");
  }
  // Recursion: each function must precede the functions that run it.
  expect(problemOf(calling(),
                   [&](Model &m) {
                     m.current = 1;
                     m.run(Kind::Call, {1}, {in(0), out(0)}, {m.plan().inputs[0].dims[0]});
                   }),
         "function 1: step 1: runs function 1, which is not a private one behind its own");
  expect(problemOf(branching(),
                   [&](Model &m) {
                     m.current = 2;
                     m.run(Kind::Call, {1}, {in(0), out(0)}, {m.plan().inputs[0].dims[0]});
                   }),
         "runs function 1");
  // Loops: the body returns as many values as are carried, and the condition one bool.
  auto body = [](Model &m) -> Plan & { return m.a.plans[2]; };
  expect(problemOf(looping(), [&](Model &m) { body(m).outputs.push_back(body(m).outputs[0]); }), "a loop do not fit");
  expect(problemOf(looping(), [&](Model &m) { m.a.plans[1].outputs.push_back(m.a.plans[1].outputs[0]); }),
         "a loop do not fit");
  expect(problemOf(looping(), [&](Model &m) { m.a.plans[1].inputs.push_back(m.a.plans[1].inputs[0]); }),
         "a loop do not fit");
  // Private functions have neither states nor computed sizes.
  expect(problemOf(calling(),
                   [](Model &m) {
                     m.a.states.push_back({"s", f32, {1}, UINT32_MAX});
                     m.a.plans[1].stateInputs = {0};
                   }),
         "a private function has states");
}

TEST_CASE("damaged steps of the host are refused") {
  auto call = [](Model &m) -> HostCall & { return m.a.plans[0].hostCalls[0]; };
  auto step = [](Model &m) -> Step & { return m.a.plans[0].steps[0]; };
  auto expect = [](const std::string &problem, const std::string &part) {
    INFO(problem);
    CHECK(contains(problem, part));
  };
  for (auto kind : {HostCall::Kind::Print, HostCall::Kind::Function}) {
    expect(problemOf(asking(kind), [&](Model &m) { step(m).hostCall = 1; }), "no host call 1");
    expect(problemOf(asking(kind), [&](Model &m) { call(m).kind = HostCall::Kind(2); }), "no kind 2");
    expect(problemOf(asking(kind), [&](Model &m) { call(m).inputs.clear(); }), "do not fit host call 0");
    expect(problemOf(asking(kind), [&](Model &m) { step(m).operands.push_back(in(0)); }), "do not fit host call 0");
    expect(problemOf(asking(kind), [&](Model &m) { call(m).inputs[0].dtype = DType(200); }), "no element type 200");
    expect(problemOf(asking(kind), [&](Model &m) { call(m).inputs[0].dims = {77}; }), "no expression 77");
    expect(problemOf(asking(kind), [&](Model &m) { call(m).inputs[0].location = 77; }), "no location 77");
    expect(problemOf(asking(kind), [&](Model &m) { m.plan().loops.push_back({0, 0, m.constant(2), 0}); }),
           "in a loop of independent iterations");
  }
  expect(problemOf(asking(HostCall::Kind::Print),
                   [&](Model &m) {
                     call(m).results = call(m).inputs;
                     step(m).operands.push_back(out(0));
                   }),
         "a print has results");
}
