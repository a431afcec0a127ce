// Memory of a device, tensors that stay there, streams of the caller, all through the C interface. The GPU is the CUDA
// driver for tests.
#include "burin/runtime.h"
#include "runtime/gpu/libraries/Driver.h"
#include "test/gpu/driver/FakeCuda.h"
#include "test/gpu/emulator/Simt.h"
#include "test/gpu/runs/RunOnGpu.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <catch2/catch.hpp>
#include <cstdlib>

using namespace burin;
using namespace burin::test;
namespace gpu = burin::rt::gpu;

namespace {

constexpr burin_device kCpu = {BURIN_CPU, 0, 0}, kGpu = {BURIN_CUDA, 0, 0}, kSecond = {BURIN_CUDA, 1, 0};

const burin_runtime_api &api() { return *burin_runtime_get(BURIN_RUNTIME_VERSION); }

std::string take(burin_status *status) {
  std::string message = status ? api().status_message(status) : "";
  api().status_release(status);
  return message;
}

#define REQUIRE_OK(call)                                                                                               \
  do {                                                                                                                 \
    std::string problem = take(call);                                                                                  \
    INFO(problem);                                                                                                     \
    REQUIRE(problem.empty());                                                                                          \
  } while (false)

/// At the end of a test nothing is left, and nothing was wrong.
struct Clean {
  Clean() { fake::failCall(0); }
  ~Clean() {
    fake::setDevices(1);
    CHECK(simt::takeErrors().empty());
    CHECK(fake::problems() == "");
  }
};

std::vector<float> numbers(size_t count, float first) {
  std::vector<float> all(count);
  for (size_t i = 0; i < count; ++i)
    all[i] = first + float(i % 251);
  return all;
}

/// Floats on a GPU.
struct DeviceFloats {
  burin_device device;
  size_t count;
  void *data = nullptr;

  explicit DeviceFloats(const std::vector<float> &values, burin_device device = kGpu)
      : device(device), count(values.size()) {
    REQUIRE_OK(api().device_alloc(device, bytes(), nullptr, &data));
    REQUIRE_OK(api().device_copy(device, data, kCpu, values.data(), bytes(), nullptr));
  }
  ~DeviceFloats() { CHECK(take(api().device_free(device, data, nullptr)) == ""); }
  DeviceFloats(const DeviceFloats &) = delete;
  size_t bytes() const { return count * sizeof(float); }
  std::vector<float> read() const {
    std::vector<float> values(count);
    REQUIRE_OK(api().device_copy(kCpu, values.data(), device, data, bytes(), nullptr));
    return values;
  }
};

/// relu(x + y) for x, y: f32[n, 33], and rows of it that an index chooses; a kernel may find the index out of range.
std::vector<std::byte> lookup() {
  Graph g;
  Graph::Value x = g.input({f32, {Dim("n"), 33}}), y = g.input({f32, {Dim("n"), 33}}), at = g.input({i64, {1, 33}});
  Graph::Value sum = g.apply("relu", {g.apply("add", {x, y})[0]})[0];
  g.output(sum);
  g.output(g.apply("gather", {sum, at}, {{"axis", int64_t(0)}})[0]);
  return g.artifact({"cuda-sm_80+ptx"},
                    [](codegen::CompileOptions &options) { options.emulate = ptxForFakeDriver("cuda-sm_80+ptx"); });
}

/// The model loaded, with a session on the first GPU.
struct Model {
  burin_artifact *artifact = nullptr;
  burin_session *session = nullptr;

  explicit Model(void *stream = nullptr, const char *device = "cuda:0") {
    std::vector<std::byte> file = lookup();
    REQUIRE_OK(api().artifact_load_memory(file.data(), file.size(), nullptr, &artifact));
    burin_session_options options = {};
    options.struct_size = sizeof options;
    options.device = device;
    options.stream = stream;
    REQUIRE_OK(api().session_create(artifact, &options, &session));
  }
  ~Model() {
    api().session_release(session);
    api().artifact_release(artifact);
  }
  Model(const Model &) = delete;
};

/// What a run takes and gives, on the GPU.
struct Arguments {
  std::vector<float> x = numbers(5 * 33, -70), y = numbers(5 * 33, 3);
  DeviceFloats xs{x}, ys{y}, sum{numbers(5 * 33, 0)}, rows{numbers(33, 0)};
  std::vector<int64_t> at;
  void *index = nullptr;
  int64_t shape[2] = {5, 33}, one[2] = {1, 33};

  explicit Arguments(int64_t row) : at(33, row) {
    REQUIRE_OK(api().device_alloc(kGpu, 33 * sizeof(int64_t), nullptr, &index));
    setRow(row);
  }
  ~Arguments() { CHECK(take(api().device_free(kGpu, index, nullptr)) == ""); }
  void setRow(int64_t row) {
    at.assign(33, row);
    REQUIRE_OK(api().device_copy(kGpu, index, kCpu, at.data(), 33 * sizeof(int64_t), nullptr));
  }
  std::string run(const Model &model) {
    burin_tensor inputs[] = {
        {xs.data, shape, 2, BURIN_F32, kGpu}, {ys.data, shape, 2, BURIN_F32, kGpu}, {index, one, 2, BURIN_I64, kGpu}};
    burin_tensor outputs[] = {{sum.data, shape, 2, BURIN_F32, kGpu}, {rows.data, one, 2, BURIN_F32, kGpu}};
    return take(api().session_run(model.session, inputs, 3, outputs, 2));
  }
  void check() const {
    std::vector<float> got = sum.read(), chosen = rows.read();
    for (size_t i = 0; i < got.size(); ++i)
      REQUIRE(got[i] == std::max(0.0f, x[i] + y[i]));
    for (size_t i = 0; i < chosen.size(); ++i)
      REQUIRE(chosen[i] == got[size_t(at[0]) * 33 + i]);
  }
};

gpu::Driver driver() {
  gpu::Driver opened;
  REQUIRE(gpu::Driver::open(opened).ok());
  return opened;
}

/// A stream of the caller, in the context of a device.
struct CallersStream {
  gpu::Driver d = driver();
  gpu::Context context = nullptr;
  gpu::Stream stream = nullptr;
  CallersStream() {
    REQUIRE(d->primaryCtxRetain(&context, 0) == gpu::kSuccess);
    REQUIRE(d->ctxPush(context) == gpu::kSuccess);
    REQUIRE(d->streamCreate(&stream, 1) == gpu::kSuccess);
  }
  ~CallersStream() {
    CHECK(d->streamDestroy(stream) == gpu::kSuccess);
    CHECK(d->ctxPop(&context) == gpu::kSuccess);
    CHECK(d->primaryCtxRelease(0) == gpu::kSuccess);
  }
  CallersStream(const CallersStream &) = delete;
};

} // namespace

TEST_CASE("gpu device: memory is allocated, copied, counted and limited", "[gpu]") {
  Clean clean;
  CHECK(api().device_count(BURIN_CPU) == 1);
  CHECK(api().device_count(BURIN_CUDA) == 1);
  {
    std::vector<float> sent = numbers(1001, 7);
    DeviceFloats a(sent), b(numbers(1001, 0));
    REQUIRE_OK(api().device_copy(kGpu, b.data, kGpu, a.data, a.bytes(), nullptr));
    CHECK(b.read() == sent);
    burin_device_memory memory;
    REQUIRE_OK(api().device_memory(kGpu, &memory));
    CHECK((memory.in_use == 8008 && memory.tensors == 8008 && memory.weights == 0 && memory.limit == 0));
    CHECK(memory.peak >= memory.in_use);
    CHECK(memory.reserved >= memory.in_use);
    CHECK(memory.total == uint64_t(1) << 30);

    REQUIRE_OK(api().device_set_memory_limit(kGpu, 10'000));
    void *more = nullptr;
    CHECK(take(api().device_alloc(kGpu, 4000, nullptr, &more)) ==
          "cuda:0: allocating 4000 bytes: the limit is 10000 bytes\n"
          "  in use of 1024 MiB: tensors 8008 bytes, weights 0 bytes, states 0 bytes, intermediate results 0 bytes");
    REQUIRE_OK(api().device_set_memory_limit(kGpu, 0));
    REQUIRE_OK(api().device_alloc(kGpu, 4000, nullptr, &more));
    CHECK(take(api().device_free(kSecond, more, nullptr)) == "this memory was not allocated on cuda:1");
    REQUIRE_OK(api().device_free(kGpu, more, nullptr));
    CHECK(take(api().device_free(kGpu, more, nullptr)) == "this memory was not allocated on cuda:0");
    burin_status *tooMuch = api().device_alloc(kGpu, size_t(2) << 30, nullptr, &more);
    CHECK(api().status_code(tooMuch) == BURIN_OUT_OF_MEMORY);
    CHECK(take(tooMuch).find("CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos);
  }
  burin_tensor none = {};
  CHECK(none.device.type == BURIN_CPU); // zeros are the memory of the process
  void *data = nullptr;
  CHECK(take(api().device_alloc(kSecond, 4, nullptr, &data)) == "there is no GPU cuda:1: this machine has 1");
}

TEST_CASE("gpu device: large copies go through pinned pieces", "[gpu]") {
  Clean clean;
  std::vector<float> sent = numbers(size_t(3) << 20, 1); // 12 MiB
  DeviceFloats on(sent);
  CHECK(on.read() == sent);
}

TEST_CASE("gpu device: inputs and outputs on the GPU are not copied", "[gpu]") {
  Clean clean;
  Model model;
  Arguments arguments(3);
  const int64_t replays = fake::replays();
  CHECK(arguments.run(model) == "");
  arguments.check();
  fake::CopyCounts before = fake::copies();
  for (int i = 0; i < 3; ++i)
    CHECK(arguments.run(model) == "");
  fake::CopyCounts after = fake::copies();
  CHECK(after.toDevice == before.toDevice);
  CHECK(after.within == before.within);
  CHECK(after.toHost - before.toHost == 3 * 8); // whether the index was allowed
  CHECK(fake::replays() == replays + 3);
  arguments.check();

  arguments.setRow(7);
  std::string problem = arguments.run(model);
  INFO(problem);
  CHECK(problem.find("out of range") != std::string::npos);
  arguments.setRow(2);
  CHECK(arguments.run(model) == "");
  arguments.check();
}

TEST_CASE("gpu device: tensors of several places in one run", "[gpu]") {
  Clean clean;
  Model model;
  Arguments a(1);
  std::vector<int64_t> at(33, 4);
  std::vector<float> rows(33);
  burin_tensor inputs[] = {{a.x.data(), a.shape, 2, BURIN_F32, kCpu},
                           {a.ys.data, a.shape, 2, BURIN_F32, kGpu},
                           {at.data(), a.one, 2, BURIN_I64, kCpu}};
  burin_tensor outputs[] = {{nullptr, nullptr, 0, 0, kGpu}, {rows.data(), a.one, 2, BURIN_F32, kCpu}};
  for (int i = 0; i < 3; ++i) {
    REQUIRE_OK(api().session_run(model.session, inputs, 3, outputs, 2));
    CHECK((outputs[0].device.type == BURIN_CUDA && outputs[0].rank == 2 && outputs[0].shape[0] == 5));
    std::vector<float> sum(5 * 33);
    REQUIRE_OK(api().device_copy(kCpu, sum.data(), kGpu, outputs[0].data, sum.size() * sizeof(float), nullptr));
    for (size_t i = 0; i < sum.size(); ++i)
      REQUIRE(sum[i] == std::max(0.0f, a.x[i] + a.y[i]));
    for (size_t i = 0; i < rows.size(); ++i)
      REQUIRE(rows[i] == sum[4 * 33 + i]);
  }
  inputs[1].device = kSecond;
  CHECK(
      take(api().session_run(model.session, inputs, 3, outputs, 2)).find("is on cuda:1, the session runs on cuda:0") !=
      std::string::npos);
}

TEST_CASE("gpu device: a run on the caller's stream returns when it is enqueued", "[gpu]") {
  Clean clean;
  CallersStream callers;
  Model model(callers.stream);
  Arguments arguments(3);
  CHECK(arguments.run(model) == "");
  CHECK(fake::pendingWork(0) > 0);
  REQUIRE_OK(api().session_synchronize(model.session));
  CHECK(fake::pendingWork(0) == 0);
  arguments.check();
  arguments.setRow(9); // what is wrong shows when somebody waits
  CHECK(arguments.run(model) == "");
  CHECK(arguments.run(model) == "");
  CHECK(take(api().session_synchronize(model.session)).find("out of range") != std::string::npos);
  arguments.setRow(0);
  CHECK(arguments.run(model) == "");
  CHECK(take(api().session_synchronize(model.session)) == "");
  arguments.check();
}

TEST_CASE("gpu device: a run is part of what the caller captures", "[gpu]") {
  Clean clean;
  CallersStream callers;
  const gpu::Driver &d = callers.d;
  Model model(callers.stream);
  Arguments arguments(3);
  gpu::Graph graph = nullptr;
  CHECK(arguments.run(model) == "");
  REQUIRE_OK(api().session_synchronize(model.session));
  REQUIRE(d->streamBeginCapture(callers.stream, 1) == gpu::kSuccess);
  CHECK(arguments.run(model) == "");
  REQUIRE(d->streamEndCapture(callers.stream, &graph) == gpu::kSuccess);
  gpu::GraphExec executable = nullptr;
  REQUIRE(d->graphInstantiate(&executable, graph, 0) == gpu::kSuccess);
  for (float first : {1.0f, -20.0f}) {
    arguments.x = numbers(5 * 33, first);
    REQUIRE_OK(api().device_copy(kGpu, arguments.xs.data, kCpu, arguments.x.data(), arguments.xs.bytes(), nullptr));
    REQUIRE(d->graphLaunch(executable, callers.stream) == gpu::kSuccess);
    REQUIRE(d->streamSynchronize(callers.stream) == gpu::kSuccess);
    arguments.check();
  }
  REQUIRE(d->graphDestroy(graph) == gpu::kSuccess);
  REQUIRE(d->graphExecDestroy(executable) == gpu::kSuccess);
}

TEST_CASE("gpu device: with BURIN_CUDA_CHECK an error names the launch", "[gpu]") {
  Clean clean;
  setenv("BURIN_CUDA_CHECK", "1", 1);
  {
    Model model;
    Arguments arguments(3);
    burin_tensor inputs[] = {{arguments.xs.data, arguments.shape, 2, BURIN_F32, kGpu},
                             {reinterpret_cast<void *>(uintptr_t(4096)), arguments.shape, 2, BURIN_F32, kGpu},
                             {arguments.index, arguments.one, 2, BURIN_I64, kGpu}};
    burin_tensor outputs[2] = {};
    std::string problem = take(api().session_run(model.session, inputs, 3, outputs, 2));
    INFO(problem);
    CHECK(problem.starts_with("cuda:0: launching add"));
    CHECK(problem.find("CUDA_ERROR_ILLEGAL_ADDRESS (700)") != std::string::npos);
  }
  unsetenv("BURIN_CUDA_CHECK");
}

TEST_CASE("gpu device: copies between two GPUs", "[gpu]") {
  fake::setDevices(2);
  Clean clean;
  std::vector<float> sent = numbers(333, 5);
  DeviceFloats first(sent), second(numbers(333, 0), kSecond);
  const int64_t before = fake::copies().between;
  REQUIRE_OK(api().device_copy(kSecond, second.data, kGpu, first.data, first.bytes(), nullptr));
  CHECK(fake::copies().between - before == int64_t(first.bytes()));
  CHECK(second.read() == sent);
}
