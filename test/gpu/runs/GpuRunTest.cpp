// One artifact with code for processors and for GPUs runs on both, with the same results. The GPU is the CUDA driver
// for tests, whose launches run the kernels on the emulator.
#include "runtime/execute/session/Session.h"
#include "test/gpu/driver/FakeCuda.h"
#include "test/gpu/emulator/Simt.h"
#include "test/gpu/runs/RunOnGpu.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <catch2/catch.hpp>
#include <cmath>

using namespace burin;
using namespace burin::test;

namespace {

using Ints = std::vector<int64_t>;
constexpr const char *kGpuTarget = "cuda-sm_80+ptx";

/// What both devices run.
struct Model {
  rt::Program::Ptr program;
  Tensors inputs;
};

Model loaded(Graph &g, Tensors inputs) {
  std::vector<std::byte> bytes = g.artifact({"x86-64-v3", kGpuTarget}, [](codegen::CompileOptions &options) {
    options.emulate = ptxForFakeDriver(kGpuTarget);
  });
  Model model{nullptr, std::move(inputs)};
  rt::Status status = rt::Program::loadMemory(bytes, nullptr, {}, model.program);
  INFO(status.message());
  REQUIRE(status.ok());
  return model;
}

ir::RefTensor random(std::vector<int64_t> shape, uint64_t seed) {
  Random random(seed);
  return randomTensor(f32, std::move(shape), {-1, 1, Specials::None}, Mood::Plain, random);
}

/// LeNet-5's layers on small images, 28 by 28; the batch is known at run time.
Model lenet(int64_t batch) {
  Graph g;
  auto apply = [&](const char *op, Graph::Values v, Attrs attrs = {}) { return g.apply(op, v, attrs)[0]; };
  auto weight = [&](std::vector<int64_t> shape, uint64_t seed) { return g.constant(random(std::move(shape), seed)); };
  auto bias = [&](int64_t size, uint64_t seed) {
    return apply("broadcast_to", {weight({size}, seed)}, {{"shape", Shape{Dim("batch"), size}}});
  };
  Graph::Value x = g.input({f32, {Dim("batch"), 1, 28, 28}});
  x = apply("relu", {apply("conv", {x, weight({6, 1, 5, 5}, 1), weight({6}, 2)}, {{"padding", Ints{2}}})});
  x = apply("max_pool", {x}, {{"kernel", Ints{2}}});
  x = apply("relu", {apply("conv", {x, weight({16, 6, 5, 5}, 3), weight({16}, 4)})});
  x = apply("max_pool", {x}, {{"kernel", Ints{2}}});
  x = apply("reshape", {x}, {{"shape", Shape{Dim("batch"), 400}}});
  x = apply("tanh", {apply("add", {apply("matmul", {x, weight({400, 84}, 5)}), bias(84, 6)})});
  x = apply("add", {apply("matmul", {x, weight({84, 10}, 7)}), bias(10, 8)});
  g.output(apply("softmax", {x}, {{"axis", int64_t(1)}}));
  return loaded(g, {random({batch, 1, 28, 28}, 9)});
}

/// A linear layer, relu, and rows of the result that are chosen by an input, which may be out of range.
Model lookup(int64_t index) {
  Graph g;
  Graph::Value x = g.input({f32, {4, 33}}), i = g.input({i64, {1, 17}});
  Graph::Value y = g.apply("relu", {g.apply("matmul", {x, g.constant(random({33, 17}, 1))})[0]})[0];
  g.output(g.apply("gather", {y, i}, {{"axis", int64_t(0)}})[0]);
  ir::RefTensor at = ir::RefTensor::zeros(i64, {1, 17});
  at.ints().assign(17, index);
  return loaded(g, {random({4, 33}, 2), at});
}

/// Distance of each chosen row to the mean of all: several launches of one kernel if the rows are many.
Model distances(int64_t rows, int64_t index) {
  Graph g;
  auto apply = [&](const char *op, Graph::Values v, Attrs attrs = {}) { return g.apply(op, v, attrs)[0]; };
  Graph::Value x = g.input({f32, {6, 40}}), i = g.input({i64, {Dim("rows"), 40}});
  x = apply("gather", {x, i}, {{"axis", int64_t(0)}});
  Graph::Value mean = apply("reduce_mean", {x}, {{"axes", Ints{0}}, {"keepdims", true}});
  g.output(apply("sub", {x, apply("broadcast_to", {mean}, {{"shape", Shape{Dim("rows"), 40}}})}));
  ir::RefTensor at = ir::RefTensor::zeros(i64, {rows, 40});
  for (size_t n = 0; n < at.ints().size(); ++n)
    at.ints()[n] = int64_t(n % 6);
  if (rows)
    at.ints().back() = index;
  return loaded(g, {random({6, 40}, 2), at});
}

struct Outcome {
  rt::Status status;
  std::vector<std::vector<float>> results;
};

rt::Status runOnce(const Model &model, rt::Session &session, Outcome &out) {
  std::vector<std::vector<char>> bytes;
  std::vector<rt::TensorView> inputs, outputs(1);
  for (const ir::RefTensor &t : model.inputs)
    bytes.push_back(t.toBytes());
  for (size_t i = 0; i < bytes.size(); ++i)
    inputs.push_back(
        {bytes[i].data(), model.inputs[i].shape.data(), uint32_t(model.inputs[i].shape.size()), model.inputs[i].dtype});
  rt::Status status = session.run(inputs, outputs);
  if (status.ok()) {
    size_t count = 1;
    for (uint32_t i = 0; i < outputs[0].rank; ++i)
      count *= size_t(outputs[0].shape[i]);
    const auto *data = static_cast<const float *>(outputs[0].data);
    out.results.push_back({data, data + count});
  }
  return status;
}

/// Three runs of one session: the second one is recorded on a GPU, the third replayed.
Outcome run(const Model &model, const char *device) {
  Outcome out;
  std::unique_ptr<rt::Session> session;
  out.status = rt::Session::create(model.program, {.threads = 1, .device = device}, session);
  for (int i = 0; i < 3 && out.status.ok(); ++i)
    out.status = runOnce(model, *session, out);
  return out;
}

void checkClose(const std::vector<float> &got, const std::vector<float> &want, float atol, float rtol) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i);
    CHECK(std::abs(got[i] - want[i]) <= atol + rtol * std::abs(want[i]));
  }
}

std::string emulatorErrors() {
  std::string text;
  for (const std::string &error : simt::takeErrors())
    text += error + "\n";
  return text;
}

} // namespace

TEST_CASE("gpu run: LeNet on cuda:0 agrees with the processor", "[gpu]") {
  Model model = lenet(3);
  fake::failCall(0);
  uint64_t before = simt::counters().launches;
  int64_t replays = fake::replays();
  Outcome cpu = run(model, "cpu"), gpu = run(model, "cuda:0");
  INFO(gpu.status.message());
  REQUIRE(cpu.status.ok());
  REQUIRE(gpu.status.ok());
  CHECK(simt::counters().launches >= before + 12); // the kernels of three runs
  CHECK(fake::replays() == replays + 2);
  for (size_t i = 0; i < 3; ++i) {
    checkClose(gpu.results[i], cpu.results[i], 1e-6f, 1e-5f);
    CHECK(gpu.results[i] == gpu.results[0]);
  }
  CHECK(emulatorErrors() == "");
  CHECK(fake::problems() == "");
}

TEST_CASE("gpu run: a value that is not allowed", "[gpu]") {
  fake::failCall(0);
  Model good = lookup(3);
  Outcome cpu = run(good, "cpu"), gpu = run(good, "cuda:0");
  INFO(gpu.status.message());
  REQUIRE(gpu.status.ok());
  checkClose(gpu.results[0], cpu.results[0], 1e-6f, 1e-5f);
  Model bad = lookup(7);
  rt::Status onCpu = run(bad, "cpu").status, onGpu = run(bad, "cuda:0").status;
  CHECK(onCpu.code() == rt::ErrorCode::Data);
  CHECK(onGpu.code() == rt::ErrorCode::Data);
  CHECK(onGpu.message() == onCpu.message());
  CHECK(fake::problems() == "");
}

TEST_CASE("gpu run: a reduction that is split over blocks", "[gpu]") {
  fake::failCall(0);
  for (int64_t rows : {0, 1, 300, 3000}) {
    INFO(rows << " rows");
    Model good = distances(rows, 5), bad = distances(rows, 6);
    Outcome cpu = run(good, "cpu"), gpu = run(good, "cuda:0");
    INFO(gpu.status.message());
    REQUIRE(gpu.status.ok());
    for (size_t i = 0; i < 3; ++i)
      checkClose(gpu.results[i], cpu.results[0], 5e-5f, 1e-5f);
    fake::setMultiprocessors(3);
    CHECK(run(good, "cuda:0").results == gpu.results); // the same bits
    fake::setMultiprocessors(132);
    if (rows == 0)
      continue;
    rt::Status onCpu = run(bad, "cpu").status, onGpu = run(bad, "cuda:0").status;
    CHECK(onGpu.code() == rt::ErrorCode::Data);
    CHECK(onGpu.message() == onCpu.message());
  }
  CHECK(emulatorErrors() == "");
  CHECK(fake::problems() == "");
}

TEST_CASE("gpu run: each driver call fails in turn", "[gpu]") {
  Model model = lookup(2);
  fake::failCall(0);
  REQUIRE(run(model, "cuda:0").status.ok());
  const int64_t calls = fake::calls();
  CHECK(calls > 40);
  int failures = 0;
  for (int64_t n = 1; n <= calls; ++n) {
    fake::failCall(n);
    Outcome outcome = run(model, "cuda:0");
    INFO("call " << n << " of " << calls << ": " << outcome.status.message());
    failures += !outcome.status.ok();
    if (!outcome.status.ok()) {
      CHECK(outcome.status.message().find("CUDA_ERROR_UNKNOWN (999)") != std::string::npos);
    }
    CHECK(fake::problems() == "");
  }
  CHECK(failures > calls / 2); // the others give back what the session had
  fake::failCall(0);
  CHECK(run(model, "cuda:0").status.ok());
  CHECK(emulatorErrors() == "");
}

/// A product whose tiles differ between compute capabilities, interpreted.
Model product(std::initializer_list<std::string> targets) {
  Graph g;
  auto apply = [&](const char *op, Graph::Values v, Attrs attrs = {}) { return g.apply(op, v, attrs)[0]; };
  Graph::Value x = apply("cast", {g.input({f32, {Dim("rows"), 72}})}, {{"dtype", bf16}});
  Graph::Value w = apply("cast", {g.constant(random({72, 200}, 1))}, {{"dtype", bf16}});
  g.output(apply("cast", {apply("matmul", {x, w})}, {{"dtype", f32}}));
  Model model{nullptr, {random({150, 72}, 2)}};
  rt::Status status = rt::Program::loadMemory(g.artifact(targets), nullptr, {}, model.program);
  INFO(status.message());
  REQUIRE(status.ok());
  return model;
}

TEST_CASE("gpu run: an artifact for several GPUs has the blocks of each", "[gpu]") {
  fake::failCall(0);
  Model both = product({"x86-64-v3", "cuda-sm_80+ptx", "cuda-sm_90a+ptx"});
  const rt::Artifact &a = both.program->artifact();
  CHECK(a.codes[1].gpuKernels.back().sharedBytes <= 48 << 10);
  CHECK(a.codes[2].gpuKernels.back().sharedBytes > 48 << 10);
  const rt::Step &step = a.plans[0].steps.back();
  REQUIRE(step.blocks.size() == 2);
  CHECK(step.blocks[0] != step.blocks[1]);
  const int64_t before = fake::earlyLaunches();
  Outcome cpu = run(both, "cpu"), gpu = run(both, "cuda:0");
  const int64_t early = fake::earlyLaunches();
  CHECK(early > before); // kernels of sm_90a wait for those before them
  Outcome older = run(product({"cuda-sm_80+ptx"}), "cuda:0");
  CHECK(fake::earlyLaunches() == early);
  INFO(gpu.status.message() << older.status.message());
  REQUIRE((cpu.status.ok() && gpu.status.ok() && older.status.ok()));
  checkClose(gpu.results[2], cpu.results[0], 1e-2f, 1e-2f);
  checkClose(older.results[2], cpu.results[0], 1e-2f, 1e-2f);
  CHECK(fake::problems() == "");
}

TEST_CASE("gpu run: devices and artifacts that do not fit", "[gpu]") {
  fake::failCall(0);
  Model model = lookup(2);
  CHECK(run(model, "cuda:1").status.message() == "there is no GPU cuda:1: this machine has 1");
  CHECK(run(model, "gpu").status.message() == "there is no device gpu: devices are cpu, cuda:0, cuda:1, …");
  CHECK(run(model, "cuda:x").status.code() == rt::ErrorCode::InvalidArgument);

  Graph g;
  g.output(g.apply("relu", {g.input({f32, {5}})})[0]);
  auto programOf = [&](const char *target) {
    rt::Program::Ptr program;
    REQUIRE(rt::Program::loadMemory(g.artifact({target}), nullptr, {}, program).ok());
    return Model{program, {random({5}, 1)}};
  };
  CHECK(run(programOf("x86-64-v3"), "cuda:0").status.message() ==
        "the artifact has no code for cuda:0 (Fake H200, compute capability 9.0): it has x86-64-v3\n"
        "  compile it again with --target cuda-sm_80+ptx");
  CHECK(run(programOf(kGpuTarget), "cpu").status.code() == rt::ErrorCode::Unsupported);
  CHECK(run(programOf(kGpuTarget), "cuda:0").status.ok()); // interpreted
  auto broken = [](llvm::Module &, llvm::ArrayRef<std::string>) {
    return codegen::CompileOptions::GpuImage{kGpuTarget, {'n', 'o', ' ', 'P', 'T', 'X'}, {}};
  };
  rt::Program::Ptr program;
  auto bytes = g.artifact({kGpuTarget}, [&](codegen::CompileOptions &options) { options.emulate = broken; });
  REQUIRE(rt::Program::loadMemory(bytes, nullptr, {}, program).ok());
  CHECK(run({program, {random({5}, 1)}}, "cuda:0").status.message() ==
        "cuda:0: loading the code: CUDA_ERROR_INVALID_IMAGE (200)");
  CHECK(fake::problems() == "");
}
