// Measures overheads of the runtime: loading, binding, a run per step. Needs an otherwise idle machine.
#include "runtime/support/Checksum.h"
#include "test/runtime/Model.h"
#include <benchmark/benchmark.h>
#include <unistd.h>

using namespace burin;
using namespace burin::rt;
using namespace burin::rt::test;

namespace {

/// A chain of steps that do nothing, each with three operands and two sizes.
Model emptySteps(int64_t count) {
  Model m;
  ExprId batch = m.symbol("batch", 0, 0), four = m.constant(4);
  m.input("x", {batch, four});
  m.output("y", {batch, four});
  ExprId bytes = m.op(Expr::Op::Mul, batch, m.constant(16));
  Slot previous = in(0), weight = m.weight("w", std::vector<float>(4));
  for (int64_t i = 0; i < count; ++i) {
    Slot next = i + 1 == count ? out(0) : m.buffer(bytes, uint32_t(i), uint32_t(i + 1));
    m.step("nothing", {previous, weight, next}, {batch, four}, batch);
    previous = next;
  }
  return m;
}

struct Call {
  std::unique_ptr<Session> session;
  std::vector<float> x = std::vector<float>(64), y = x;
  int64_t shape[2] = {1, 4};

  explicit Call(Program::Ptr program) { (void)!Session::create(std::move(program), {}, session).ok(); }
  bool operator()(int64_t batch) {
    shape[0] = batch;
    TensorView input{x.data(), shape, 2, f32}, output{y.data(), shape, 2, f32};
    return session->run({&input, 1}, {&output, 1}).ok();
  }
};

void run(benchmark::State &state) {
  Call call(emptySteps(state.range(0)).load());
  for (auto _ : state)
    if (!call(1))
      state.SkipWithError("the run failed");
  state.counters["per step"] = benchmark::Counter(
      double(state.range(0)), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(run)->Arg(1)->Arg(10)->Arg(1000);

void alternateShapes(benchmark::State &state) {
  Call call(emptySteps(10).load());
  for (int64_t i = 0; auto _ : state)
    if (!call(1 + i++ % 4))
      state.SkipWithError("the run failed");
}
BENCHMARK(alternateShapes);

void bindNewShapes(benchmark::State &state) {
  Program::Ptr program = emptySteps(state.range(0)).load();
  std::unique_ptr<Session> session;
  (void)!Session::create(program, {}, session).ok();
  int64_t shape[] = {0, 4};
  TensorView input{nullptr, shape, 2, f32};
  for (auto _ : state) {
    ++shape[0];
    if (!session->bind({&input, 1}).ok())
      state.SkipWithError("the bind failed");
  }
}
BENCHMARK(bindNewShapes)->Arg(10)->Arg(1000);

void load(benchmark::State &state) {
  std::vector<std::byte> file = emptySteps(state.range(0)).bytes();
  Program::Ptr program;
  for (auto _ : state)
    if (!Program::loadMemory(file, nullptr, {}, program).ok())
      state.SkipWithError("the load failed");
}
BENCHMARK(load)->Arg(1)->Arg(20)->Arg(1000);

// Loads a file with many weights from the page cache, to measure the time of checking them.
void loadWeights(benchmark::State &state) {
  Model m = emptySteps(1);
  m.weight("large", std::vector<float>(size_t(state.range(0)) << 18, 1.f));
  std::string path = "runtime-bench.plate";
  if (!writeFile(path, m.bytes()).ok())
    state.SkipWithError("cannot write");
  LoadOptions options{state.range(1) ? WeightCheck::Verify : WeightCheck::Trust};
  Program::Ptr program;
  for (auto _ : state)
    if (!Program::loadFile(path, options, program).ok())
      state.SkipWithError("the load failed");
  ::unlink(path.c_str());
}
BENCHMARK(loadWeights)->ArgNames({"MiB", "verify"})->Args({256, 0})->Args({256, 1})->Unit(benchmark::kMillisecond);

void sectionChecksum(benchmark::State &state) {
  std::vector<std::byte> data(size_t(state.range(0)), std::byte(3));
  for (auto _ : state)
    benchmark::DoNotOptimize(checksum(data));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(sectionChecksum)->Arg(1 << 12)->Arg(1 << 20)->Arg(1 << 26);

} // namespace

BENCHMARK_MAIN();
