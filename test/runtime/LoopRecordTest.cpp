// Damaged records of loops in artifacts: parts that alternate between two buffers, loops, and steps that run a loop of
// functions. Each is refused with the reason, or has the meaning of another plan; none crashes.
#include "test/runtime/Checks.h"
#include <functional>

using namespace burin;
using namespace burin::rt;
using namespace burin::rt::test;

namespace {

constexpr int64_t kColumns = 4;

/// main(x[4], w[iterations, 4]) -> y[4]: y = x, then y = y * w[t] + 0.5 for each t, whose values alternate between the
/// output and a buffer.
Model alternating() {
  Model m;
  ExprId columns = m.constant(kColumns), row = m.constant(4 * kColumns), one = m.constant(1), zero = m.constant(0);
  ExprId iterations = m.symbol("iterations", 1, 0), after = m.op(Expr::Op::Add, iterations, one);
  m.input("x", {columns});
  m.input("w", {iterations, columns});
  m.output("y", {columns});
  auto all = [&](const char *name, float value) { return m.weight(name, std::vector<float>(kColumns, value)); };
  Slot spare = m.buffer(row, 0, 1);
  auto version = [&](ExprId begin) {
    m.plan().parts.push_back({out(0), begin, zero, Part::Kind::Alternating, spare});
    return Slot{Slot::Kind::Part, uint32_t(m.plan().parts.size() - 1)};
  };
  Slot before = version(iterations), next = version(after), factor = m.part(in(1), zero, row);
  m.step("affine", {in(0), all("ones", 1), all("none", 0), before}, {columns}, one);
  m.step("affine", {before, factor, all("half", .5f), next}, {columns}, one);
  m.plan().loops.push_back({1, 1, iterations, 1});
  return m;
}

Status load(Model m, const std::function<void(Model &)> &damage, Program::Ptr &program) {
  damage(m);
  return Program::loadMemory(m.bytes(), nullptr, {}, program);
}
void expect(Model m, const std::function<void(Model &)> &damage, const std::string &part) {
  Program::Ptr program;
  const Status status = load(std::move(m), damage, program);
  INFO(status.message());
  CHECK(status.code() == ErrorCode::BadArtifact);
  CHECK(contains(status.message(), part));
}

/// Flips each bit of the numbers that `fields` names: the artifact is refused with the record's name, or can be bound.
template <class T>
void flip(Model (*make)(), const std::function<std::vector<T *>(Model &)> &fields, const std::string &record,
          const std::vector<std::vector<int64_t>> &shapes) {
  Model model = make();
  const size_t count = fields(model).size();
  for (size_t field = 0; field < count; ++field)
    for (size_t bit = 0; bit < 8 * sizeof(T); ++bit) {
      Program::Ptr program;
      const Status status =
          load(make(), [&](Model &m) { *fields(m)[field] = T(uint32_t(*fields(m)[field]) ^ (1u << bit)); }, program);
      INFO(record << ", field " << field << ", bit " << bit << ": " << status.message());
      if (!status.ok()) {
        CHECK(status.code() == ErrorCode::BadArtifact);
        CHECK(contains(status.message(), record));
        continue;
      }
      std::unique_ptr<Session> session;
      requireOk(Session::create(program, {.threads = 1}, session));
      std::vector<TensorView> inputs;
      for (const std::vector<int64_t> &shape : shapes)
        inputs.push_back({nullptr, shape.data(), uint32_t(shape.size()), f32});
      (void)session->bind(inputs);
    }
}

} // namespace

TEST_CASE("a state alternates between two buffers for any number of iterations") {
  Model m = alternating();
  std::unique_ptr<Session> session;
  requireOk(Session::create(m.load(), {.threads = 1}, session));
  for (int64_t iterations : {0, 1, 2, 5}) {
    std::vector<float> x{1, 2, 3, 4}, w(size_t(iterations * kColumns)), y(kColumns, -1), want = x;
    for (size_t i = 0; i < w.size(); ++i)
      w[i] = .25f * float(i) - 1;
    for (size_t i = 0; i < w.size(); ++i)
      want[i % kColumns] = want[i % kColumns] * w[i] + .5f;
    const std::vector<int64_t> row{kColumns}, all{iterations, kColumns};
    const TensorView inputs[]{view(x, row), view(w, all)};
    TensorView output = view(y, row);
    requireOk(session->run(inputs, {&output, 1}));
    CHECK(y == want);
  }
}

TEST_CASE("damaged parts that alternate are refused") {
  auto part = [](Model &m) -> Part & { return m.plan().parts[0]; };
  auto damaged = [&](const std::function<void(Model &)> &damage, const std::string &what) {
    expect(alternating(), damage, what);
  };
  damaged([&](Model &m) { part(m).kind = Part::Kind(2); }, "part 0: no kind 2");
  damaged([&](Model &m) { part(m).begin = 999; }, "part 0: no expression 999");
  damaged([&](Model &m) { part(m).stride = 999; }, "part 0: no expression 999");
  damaged([&](Model &m) { part(m).whole.index = 1; }, "part 0: operand of kind 1 and index 1 does not exist");
  damaged([&](Model &m) { part(m).other.index = 1; }, "part 0: operand of kind 3 and index 1 does not exist");
  damaged([&](Model &m) { part(m).other.kind = Slot::Kind(9); }, "part 0: operand of kind 9");
  damaged([&](Model &m) { part(m).other = {Slot::Kind::Part, 1}; }, "part 0: is a part of a part");
  damaged([&](Model &m) { part(m).whole = {Slot::Kind::Part, 0}; }, "part 0: is a part of a part");
  damaged([](Model &m) { m.plan().loops[0].sequential = 0; }, "alternates in a loop of independent iterations");
  damaged([](Model &m) { m.plan().buffers[0].lastStep = 0; }, "buffer 0 is not live");
  damaged([](Model &m) { m.plan().buffers[0].firstStep = 1; }, "buffer 0 is not live");
  damaged([](Model &m) { m.plan().buffers[0].perWorker = 1; }, "buffer 0: one per worker, but not");
  damaged([](Model &m) { m.plan().steps[1].operands[0].index = 3; }, "operand of kind 4 and index 3 does not exist");
}

TEST_CASE("every flipped bit of a loop's records is refused by name, or leaves a plan that can be bound") {
  const std::vector<std::vector<int64_t>> shapes{{kColumns}, {3, kColumns}};
  flip<uint32_t>(
      alternating,
      [](Model &m) {
        std::vector<uint32_t *> fields;
        for (Part &part : m.plan().parts)
          fields.insert(fields.end(), {&part.begin, &part.stride, &part.whole.index, &part.other.index});
        return fields;
      },
      "part ", shapes);
  flip<Slot::Kind>(
      alternating, [](Model &m) { return std::vector{&m.plan().parts[0].whole.kind, &m.plan().parts[1].other.kind}; },
      "part ", shapes);
  flip<Part::Kind>(
      alternating, [](Model &m) { return std::vector{&m.plan().parts[0].kind, &m.plan().parts[2].kind}; }, "part ",
      shapes);
  flip<uint32_t>(
      alternating,
      [](Model &m) {
        Loop &loop = m.plan().loops[0];
        return std::vector{&loop.firstStep, &loop.lastStep, &loop.iterations};
      },
      "", shapes);
  flip<uint8_t>(alternating, [](Model &m) { return std::vector{&m.plan().loops[0].sequential}; }, "", shapes);
}

TEST_CASE("every flipped bit of a step that runs a loop is refused by name, or leaves a plan that can be bound") {
  const std::vector<std::vector<int64_t>> shapes{{2}};
  flip<uint32_t>(
      looping,
      [](Model &m) {
        Step &step = m.plan().steps[0];
        step.errorLocations.resize(1);
        std::vector<uint32_t *> fields{&step.kernel,       &step.hostCall,        &step.tasks,
                                       &step.scratchBytes, &step.gpuScratchBytes, &step.flops,
                                       &step.bytes,        &step.location,        &step.errorLocations[0]};
        for (auto *list : {&step.plans, &step.sizes})
          for (uint32_t &value : *list)
            fields.push_back(&value);
        for (Slot &slot : step.operands)
          fields.push_back(&slot.index);
        return fields;
      },
      "step 0", shapes);
  flip<Slot::Kind>(
      looping,
      [](Model &m) {
        std::vector<Slot::Kind *> fields;
        for (Slot &slot : m.plan().steps[0].operands)
          fields.push_back(&slot.kind);
        return fields;
      },
      "step 0", shapes);
  flip<Step::Kind>(looping, [](Model &m) { return std::vector{&m.plan().steps[0].kind}; }, "step 0", shapes);
  auto condition = [](Model &m) -> TensorInfo & { return m.a.plans[1].outputs[0]; };
  expect(looping(), [&](Model &m) { condition(m).dtype = f32; }, "the condition of a loop is not one bool");
  expect(looping(), [&](Model &m) { condition(m).dims = {0}; }, "the condition of a loop is not one bool");
  expect(looping(), [](Model &m) { m.plan().steps[0].errorLocations = {999}; }, "step 0: no location 999");
  expect(looping(), [](Model &m) { m.plan().steps[0].deps = {0}; }, "depends on step 0");
  expect(alternating(), [](Model &m) { m.plan().steps[0].plans = {7}; }, "step 0: names functions, but runs none");
}

TEST_CASE("a negative number of iterations is refused when it is known") {
  Model m = alternating();
  m.plan().loops[0].iterations = m.constant(-3);
  std::unique_ptr<Session> session;
  requireOk(Session::create(m.load(), {.threads = 1}, session));
  std::vector<float> x{1, 2, 3, 4}, w(2 * kColumns, 1), y(kColumns, -1);
  const std::vector<int64_t> row{kColumns}, all{2, kColumns};
  const TensorView inputs[]{view(x, row), view(w, all)};
  TensorView output = view(y, row);
  const Status status = session->run(inputs, {&output, 1});
  CHECK(contains(status.message(), "the number of iterations of the loop at step 1 would have the impossible size -3"));
}
