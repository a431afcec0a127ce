// Sessions on a GPU with states, and artifacts made by hand whose kernels are functions of this file. The GPU is the
// CUDA driver for tests.
#include "runtime/execute/session/Session.h"
#include "test/gpu/driver/FakeCuda.h"
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

using namespace burin;
using namespace burin::rt;
using namespace burin::test;

namespace {

constexpr int64_t kCount = 5;
using Floats = std::array<float, kCount>;

float *floats(void *data) { return static_cast<float *>(data); }

/// x, s -> y = s + x, s' = y
int64_t add(void *const *operands, const int64_t *, void *, int64_t, int64_t) {
  for (int64_t i = 0; i < kCount; ++i)
    floats(operands[3])[i] = floats(operands[2])[i] = floats(operands[1])[i] + floats(operands[0])[i];
  return INT64_MAX;
}
/// x -> y = x; a negative element is not allowed
int64_t require(void *const *operands, const int64_t *, void *, int64_t, int64_t) {
  int64_t at = INT64_MAX;
  for (int64_t i = 0; i < kCount; ++i) {
    if (floats(operands[0])[i] < 0)
      at = std::min(at, i);
    floats(operands[1])[i] = floats(operands[0])[i];
  }
  return at;
}

/// Writes the number of its blocks to all results.
int64_t countBlocks(void *const *operands, const int64_t *, void *, int64_t, int64_t blocks) {
  for (int64_t i = 0; i < kCount; ++i)
    floats(operands[2])[i] = floats(operands[3])[i] = float(blocks);
  return INT64_MAX;
}

/// Functions over one state s: f32[5]. "in place" and "replaced": y = s + x becomes s; "checked": the same in place,
/// after a kernel that may find an element of x that is not allowed.
Artifact artifact() {
  Artifact a;
  a.producer = "test";
  a.locations = {"", "model.cpp:3", "model.cpp:4"};
  a.states.push_back({"s", f32, {kCount}, UINT32_MAX});
  a.kernels.push_back({"add", 1, {}});
  a.kernels.push_back({"require", 2, {"an element is negative"}});
  for (const char *name : {"in place", "replaced", "checked"}) {
    Plan &p = a.plans.emplace_back();
    p.name = name;
    for (int64_t value : {int64_t(0), int64_t(1), kCount, int64_t(sizeof(Floats))})
      p.exprs.push_back({{{Expr::Op::Const, value}}});
    p.inputs = {{"x", f32, {2}, 1}, {"s", f32, {2}, 1}};
    p.outputs = {{"y", f32, {2}, 1}, {"s", f32, {2}, 1}};
    p.stateInputs = {0};
    const bool isReplaced = p.name == "replaced", isChecked = p.name == "checked";
    p.stateOutputs = {{0, isReplaced ? StateOutput::Update::Replace : StateOutput::Update::InPlace}};
    auto step = [&](uint32_t kernel, std::vector<Slot> operands) {
      Step &s = p.steps.emplace_back();
      s.kernel = kernel;
      s.operands = std::move(operands);
      s.tasks = 1; // expressions: the number 1
      s.blocks = {1};
      s.location = kernel + 1;
      if (p.steps.size() > 1)
        s.deps = {0};
    };
    Slot x{Slot::Kind::Input, 0};
    if (isChecked) {
      p.buffers.push_back({3, 0, 1, 0});
      step(1, {x, {Slot::Kind::Buffer, 0}});
      p.steps[0].errorLocations = {2};
      x = {Slot::Kind::Buffer, 0};
    }
    step(0, {x, {Slot::Kind::Input, 1}, {Slot::Kind::Output, 0}, {Slot::Kind::Output, 1}});
  }
  a.codes.push_back({"cuda-sm_80+ptx", {}, {{"add", 32}, {"require", 32}}});
  return a;
}

Status load(Artifact a, Program::Ptr &loaded, decltype(&add) first = add) {
  const std::string ptx = "functions of GpuRuntimeTest.cpp";
  fake::addModule(ptx, {{"add", {first, 32, 4, 0}}, {"require", {require, 32, 2, 0}}});
  std::vector<std::vector<std::byte>> images(1, std::vector<std::byte>(ptx.size()));
  std::memcpy(images[0].data(), ptx.data(), ptx.size());
  return Program::loadMemory(writeArtifact(a, images, Bytes()), nullptr, {}, loaded);
}

Program::Ptr program() {
  Program::Ptr loaded;
  Status status = load(artifact(), loaded);
  INFO(status.message());
  REQUIRE(status.ok());
  return loaded;
}

constexpr int64_t kShape[] = {kCount};

struct Runner {
  Program::Ptr loaded = program();
  std::unique_ptr<Session> session;

  explicit Runner(const std::string &device = "cuda:0") {
    Status status = Session::create(loaded, {.threads = 1, .device = device}, session);
    INFO(status.message());
    REQUIRE(status.ok());
  }
  Status run(uint32_t function, Floats x, Floats &y) {
    TensorView input{x.data(), kShape, 1, f32}, output{y.data(), kShape, 1, f32};
    return session->run({&input, 1}, {&output, 1}, function);
  }
  bool setState(const Floats &values) { return session->writeState(0, std::as_bytes(std::span(values))).ok(); }
  Floats state() {
    TensorView view;
    REQUIRE(session->readState(0, view).ok());
    Floats values;
    std::memcpy(values.data(), view.data, sizeof values);
    return values;
  }
};

struct Clean {
  Clean() { fake::failCall(0); }
  ~Clean() {
    fake::setDevices(1);
    CHECK(fake::problems() == "");
  }
};

} // namespace

TEST_CASE("gpu runtime: states stay on the GPU", "[gpu]") {
  Clean clean;
  Runner runner;
  Floats y{}, sum{};
  auto step = [&](uint32_t function, float first) {
    Floats x = {first, 2, 3, 4, 5};
    REQUIRE(runner.run(function, x, y).ok());
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += x[i];
    CHECK(y == sum);
  };
  for (int i = 0; i < 3; ++i) {
    step(0, 1);
    step(1, 2);
    step(2, 3);
  }
  CHECK(runner.state() == sum);
  fake::CopyCounts before = fake::copies();
  step(0, 7); // x and y are copied, the state is not
  fake::CopyCounts after = fake::copies();
  CHECK(after.toDevice - before.toDevice == sizeof(Floats));
  CHECK(after.toHost - before.toHost == sizeof(Floats));
  CHECK(after.within == before.within);
  step(1, 7);
  CHECK(fake::copies().within == after.within);
  step(2, 7); // a kernel may find a wrong value: a copy is updated
  CHECK(fake::copies().within - after.within >= int64_t(sizeof(Floats)));

  REQUIRE(runner.setState(Floats{1, 1, 1, 1, 1}));
  CHECK(runner.state() == Floats{1, 1, 1, 1, 1});
  Runner other;
  REQUIRE(other.session->resetStates().ok());
  CHECK(other.state() == Floats{});
  std::unique_ptr<Session> second;
  REQUIRE(Session::create(runner.loaded, {.threads = 1, .device = "cuda:0"}, second).ok());
  REQUIRE(second->copyStates(*runner.session).ok());
  TensorView view;
  REQUIRE(second->readState(0, view).ok());
  CHECK(floats(view.data)[4] == 1);
  const int64_t order[] = {4, 3, 2, 1, 0};
  REQUIRE(runner.setState(Floats{1, 2, 3, 4, 5}));
  REQUIRE(runner.session->reorderState(0, 0, order).ok());
  CHECK(runner.state() == Floats{5, 4, 3, 2, 1});
}

TEST_CASE("gpu runtime: a wrong value leaves the states as they were", "[gpu]") {
  Clean clean;
  Runner runner;
  Floats y{};
  REQUIRE(runner.run(2, {1, 2, 3, 4, 5}, y).ok());
  for (int i = 0; i < 3; ++i) {
    Status status = runner.run(2, {1, 2, -3, 4, -5}, y);
    CHECK(status.code() == ErrorCode::Data);
    CHECK(status.message() == "an element is negative (element 2)\n  at model.cpp:4");
    CHECK(runner.state() == Floats{1, 2, 3, 4, 5});
  }
  REQUIRE(runner.run(2, {1, 1, 1, 1, 1}, y).ok());
  CHECK(y == Floats{2, 3, 4, 5, 6});
}

TEST_CASE("gpu runtime: each driver call of a run fails in turn", "[gpu]") {
  Clean clean;
  Runner runner;
  Floats sum{};
  for (uint32_t function : {0u, 1u, 2u, 0u, 1u, 2u})
    for (int64_t n = 1; n < 40; ++n) {
      Floats y{}, x = {float(n), 2, 3, 4, 5}, next = sum;
      for (size_t i = 0; i < sum.size(); ++i)
        next[i] += x[i];
      fake::failCall(n, n % 2 ? 999 : 2);
      Status status = runner.run(function, x, y);
      const bool isReached = fake::calls() >= n;
      fake::failCall(0);
      INFO("function " << function << ", call " << n << ": " << status.message());
      if (status.ok()) {
        CHECK(y == next);
        sum = next;
      } else {
        CHECK(isReached);
        CHECK(status.message().find("CUDA_ERROR_") != std::string::npos);
      }
      REQUIRE(runner.state() == sum);
      if (!isReached)
        break;
    }
}

TEST_CASE("gpu runtime: random driver calls fail, and states are as before", "[gpu]") {
  Clean clean;
  int failures = 0, runs = 0;
  for (uint64_t seed = 1; runs < 5000; ++seed) {
    Runner runner;
    Floats sum{};
    for (int i = 0; i < 25; ++i, ++runs) {
      const uint32_t function = uint32_t((seed * 7 + uint64_t(i) * 3) % 3);
      Floats y{}, x = {float(i % 4), 2, 3, 4, 5}, next = sum;
      for (size_t j = 0; j < sum.size(); ++j)
        next[j] += x[j];
      fake::failRandomly(seed * 100 + uint64_t(i), 6);
      Status status = runner.run(function, x, y);
      fake::failCall(0);
      INFO("seed " << seed << ", run " << i << ", function " << function << ": " << status.message());
      if (status.ok()) {
        REQUIRE(y == next);
        sum = next;
      }
      failures += !status.ok();
      REQUIRE(runner.state() == sum);
    }
  }
  CHECK(failures > runs / 4);
  CHECK(failures < runs * 9 / 10);
}

TEST_CASE("gpu runtime: a run that leaves reports later", "[gpu]") {
  Clean clean;
  Runner runner;
  const Floats zero{};
  TensorView state = runner.session->state(0); // memory on the GPU, for want of an allocation
  CHECK((state.device == DeviceTag{1, 0, 0}));
  gpu::Device::Ptr device;
  REQUIRE(gpu::Device::open(0, device).ok());
  Floats x = {1, 2, -3, 4, 5};
  BufferRef on, out;
  REQUIRE(device->upload(x.data(), sizeof x, on).ok());
  REQUIRE(device->upload(zero.data(), sizeof zero, out).ok());
  std::unique_ptr<Session> shared;
  REQUIRE(
      Session::create(runner.loaded, {.device = "cuda:0", .stream = {gpu::StreamChoice::Kind::Shared}}, shared).ok());
  TensorView input{on->data(), kShape, 1, f32, {1, 0, 0}}, output{out->data(), kShape, 1, f32, {1, 0, 0}};
  std::shared_ptr<PendingRun> later;
  // What may be wrong is known before a state changes.
  CHECK(shared->run({&input, 1}, {&output, 1}, 2, &later).code() == ErrorCode::Data);
  CHECK(!later);
  REQUIRE(shared->run({&input, 1}, {&output, 1}, 0, &later).ok());
  CHECK(fake::pendingWork(0) > 0);
  Floats y{};
  REQUIRE(device->download(y.data(), out->data(), sizeof y).ok());
  CHECK(y == x);
  shared.reset();
  on = nullptr;
  out = nullptr;
}

TEST_CASE("gpu runtime: what is out of memory names what holds it", "[gpu]") {
  Clean clean;
  gpu::Device::Ptr device;
  REQUIRE(gpu::Device::open(0, device).ok());
  device->setMemoryLimit(100);
  std::unique_ptr<Session> session;
  Program::Ptr loaded = program();
  Status status = Session::create(loaded, {.device = "cuda:0"}, session);
  CHECK(status.code() == ErrorCode::OutOfMemory);
  INFO(status.message());
  CHECK(status.message().find("cuda:0: allocating 4096 bytes: the limit is 100 bytes\n  in use of 1024 MiB: tensors") ==
        0);
  CHECK(status.message().find("no memory for 20 bytes of the state s") != std::string::npos);
  device->setMemoryLimit(4 * 4096 + 100);
  REQUIRE(Session::create(loaded, {.device = "cuda:0"}, session).ok());
  Floats x{1, 2, 3, 4, 5}, y{};
  TensorView input{x.data(), kShape, 1, f32}, output{y.data(), kShape, 1, f32};
  REQUIRE(session->run({&input, 1}, {&output, 1}, 1).ok());
  status = session->run({&input, 1}, {&output, 1}, 2);
  INFO(status.message());
  CHECK(status.code() == ErrorCode::OutOfMemory);
  CHECK(status.message().find("is made by require\n  at model.cpp:4") != std::string::npos);
  device->setMemoryLimit(0);
  CHECK(session->run({&input, 1}, {&output, 1}, 2).ok());
}

TEST_CASE("gpu runtime: sessions on two GPUs share nothing but the driver", "[gpu]") {
  fake::setDevices(2);
  Clean clean;
  Runner first, second("cuda:1");
  Floats y{};
  REQUIRE(first.run(0, {1, 2, 3, 4, 5}, y).ok());
  REQUIRE(second.run(0, {2, 2, 2, 2, 2}, y).ok());
  CHECK(y == Floats{2, 2, 2, 2, 2});
  CHECK(first.state() == Floats{1, 2, 3, 4, 5});
  TensorView input = first.session->state(0), output{y.data(), kShape, 1, f32};
  Status status = second.session->run({&input, 1}, {&output, 1}, 0);
  CHECK(status.message().find("input 0 (x) is on cuda:0, the session runs on cuda:1") != std::string::npos);
}

TEST_CASE("gpu runtime: a persistent kernel gets no more blocks than multiprocessors have room for", "[gpu]") {
  Clean clean;
  for (auto [multiprocessors, expected] : {std::pair{3, 6}, {132, int(sizeof(Floats))}}) {
    fake::setMultiprocessors(multiprocessors);
    Artifact a = artifact();
    a.codes[0].gpuKernels[0].blocksPerMultiprocessor = 2;
    a.plans[0].steps[0].blocks = {3}; // expressions: the number 20
    Program::Ptr loaded;
    const Status status = load(std::move(a), loaded, countBlocks);
    REQUIRE(status.ok());
    std::unique_ptr<Session> session;
    REQUIRE(Session::create(loaded, {.threads = 1, .device = "cuda:0"}, session).ok());
    Floats x{}, y{};
    TensorView input{x.data(), kShape, 1, f32}, output{y.data(), kShape, 1, f32};
    REQUIRE(session->run({&input, 1}, {&output, 1}, 0).ok());
    CHECK(y[0] == float(expected));
  }
  fake::setMultiprocessors(132);
}

TEST_CASE("gpu runtime: launches that are malformed are refused") {
  auto refusal = [](void (*change)(Artifact &)) {
    Artifact a = artifact();
    change(a);
    Program::Ptr loaded;
    return load(std::move(a), loaded).message();
  };
  CHECK_THAT(refusal([](Artifact &a) { a.plans[0].steps[0].blocks.clear(); }),
             Catch::Matchers::Contains("has 0 numbers of blocks for 1 codes for GPUs"));
  CHECK_THAT(refusal([](Artifact &a) { a.plans[0].steps[0].blocks.push_back(1); }),
             Catch::Matchers::Contains("has 2 numbers of blocks for 1 codes for GPUs"));
  CHECK_THAT(refusal([](Artifact &a) { a.codes[0].gpuKernels[0].sharedBytes = 228 << 10; }),
             Catch::Matchers::Contains("add wants 233472 bytes of shared memory"));
  CHECK_THAT(refusal([](Artifact &a) { a.codes[0].gpuKernels[0].blocksPerMultiprocessor = 33; }),
             Catch::Matchers::Contains("add wants 33 blocks per multiprocessor"));
  for (LaunchSize group : {LaunchSize{0, 0}, {LaunchSize::kNone, -1}}) { // a kernel without sizes; a number
    static LaunchSize size;
    size = group;
    CHECK_THAT(refusal([](Artifact &a) { a.codes[0].gpuKernels[0].group = size; }),
               Catch::Matchers::Contains("add has groups of blocks of a size that is not known"));
  }
  const std::string unknown = "add has a tensor map that is not known", missing = "lacks an operand that kernel 0 ";
  auto refusalOfMap = [&](void (*change)(TensorMap &)) {
    static void (*changed)(TensorMap &);
    changed = change;
    return refusal([](Artifact &a) {
      TensorMap map{0, 64, {{LaunchSize::kNone, 32}, {LaunchSize::kNone, 4}}, {{LaunchSize::kNone, 64}}, {32, 4}};
      changed(map);
      a.codes[0].gpuKernels[0].maps.push_back(map);
    });
  };
  CHECK(refusalOfMap([](TensorMap &) {}) == "");
  CHECK_THAT(refusalOfMap([](TensorMap &map) { map.strides.clear(); }), Catch::Matchers::Contains(unknown));
  CHECK_THAT(refusalOfMap([](TensorMap &map) { map.box = {32, 257}; }), Catch::Matchers::Contains(unknown));
  CHECK_THAT(refusalOfMap([](TensorMap &map) { map.sizes[1].index = 0; }), Catch::Matchers::Contains(unknown));
  CHECK_THAT(refusalOfMap([](TensorMap &map) { map.line = 32; }), Catch::Matchers::Contains(unknown));
  CHECK_THAT(refusalOfMap([](TensorMap &map) { map.operand = 4; }), Catch::Matchers::Contains(missing));
}
