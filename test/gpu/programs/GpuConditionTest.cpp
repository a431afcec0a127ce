// Branches and loops within CUDA graphs: runs that depend on data are replayed without waiting for the GPU in between.
// The GPU is the CUDA driver for tests.
#include "runtime/gpu/Device.h"
#include "test/Features.h"
#include "test/gpu/driver/FakeCuda.h"
#include "test/gpu/programs/TwoDevices.h"
#include "test/gpu/ptx/Ptx.h"
#include <burin/graph/program.h>
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;

namespace {

using List = std::vector<Tensor>;

/// At the end of a test, when its sessions are gone, nothing is left and nothing was wrong.
struct Clean {
  Clean() { fake::failCall(0); }
  ~Clean() {
    fake::setVersion(13000);
    CHECK(emulatorErrors() == "");
    CHECK(fake::problems() == "");
  }
};

Graph branches() {
  Tensor c = tensor({1.5f, -2.0f, 7.0f});
  auto f = [&](const Tensor &x, const Tensor &i) {
    Tensor y = cond(
        x.sum() > 0, [&] { return cond(x[0] > 10, [&] { return x * c; }, [&] { return x + c; }); },
        [&] { return c - x * 0.5; });
    Tensor z = switch_case(i, [&] { return y.sum(); }, [&] { return y.max(); }, [&] { return -y.min(); });
    return List{y, z, y * z};
  };
  return trace(f, {{f32, {3}}, {i64, {}}});
}

/// A loop within a loop, and a branch in each: sums of the digits of the numbers from n down to 1, even ones twice.
Graph digits() {
  auto f = [](const Tensor &n) {
    return while_loop([](const Tensor &n, const Tensor &) { return n > 0; },
                      [](const Tensor &n, const Tensor &sum) {
                        auto [rest, ofOne] = while_loop([](const Tensor &rest, const Tensor &) { return rest > 0; },
                                                        [](const Tensor &rest, const Tensor &all) {
                                                          return std::pair((rest / 10).to(i64), all + rest % 10);
                                                        },
                                                        std::pair(n, tensor(int64_t(0))));
                        Tensor counted = cond(n % 2 == 0, [&] { return ofOne * 2; }, [&] { return ofOne + 0; });
                        return std::pair(n - 1, sum + counted);
                      },
                      std::pair(n, tensor(int64_t(0))))
        .second;
  };
  return trace(f, {{i64, {}}});
}

int64_t digitsOf(int64_t n) {
  int64_t sum = 0;
  for (; n > 0; --n)
    for (int64_t rest = n; rest > 0; rest /= 10)
      sum += rest % 10 * (n % 2 ? 1 : 2);
  return sum;
}

/// All values that decide on branches and loops, several times each.
void checkAll(int64_t replaysOfBranches, int64_t replaysOfDigits) {
  TwoDevices ofBranches(branches()), ofDigits(digits());
  int64_t before = fake::replays();
  for (int round = 0; round < 2; ++round)
    for (const Tensor &x : {tensor({1.0f, 2.0f, 3.0f}), tensor({11.0f, 2.0f, 3.0f}), tensor({-9.0f, 2.0f, 3.0f})})
      for (int64_t i : {0, 1, 2})
        CHECK(ofBranches.differences("main", {x, tensor(i)}) == "");
  CHECK(fake::replays() - before == replaysOfBranches);
  before = fake::replays();
  for (int64_t n : {3, 0, 1, 12, 2, 21, 0, 12}) {
    CHECK(ofDigits.differences("main", {tensor(n)}) == "");
    CHECK(ofDigits.onGpu.results.at(0).item<int64_t>() == digitsOf(n));
  }
  CHECK(fake::replays() - before == replaysOfDigits);
}

} // namespace

TEST_CASE("gpu condition: branches and loops are replayed", "[gpu]") {
  Clean clean;
  checkAll(17, 7); // all runs but the first one
}

TEST_CASE("gpu condition: a driver without conditional nodes waits for each decision", "[gpu]") {
  Clean clean;
  fake::setVersion(12030);
  checkAll(0, 0);
}

TEST_CASE("gpu condition: one replay copies nothing to the host but its results", "[gpu]") {
  Clean clean;
  TwoDevices devices(digits());
  Tensor n = tensor(int64_t(12));
  for (int run = 0; run < 3; ++run)
    CHECK(devices.differences("main", {n}) == "");
  const fake::CopyCounts before = fake::copies();
  CHECK(devices.differences("main", {n}) == "");
  CHECK(fake::copies().toHost - before.toHost == 8);
  CHECK(fake::copies().toDevice - before.toDevice == 8);
}

TEST_CASE("gpu condition: after an invalid value loops end, and the value is named", "[gpu]") {
  Clean clean;
  // With the wrong index the loop would start from undefined contents.
  auto f = [](const Tensor &table, const Tensor &at) {
    Tensor start = take(table, at, 0).sum();
    return while_loop([](const Tensor &x) { return x < 100; }, [](const Tensor &x) { return x * 2 + 1; }, start);
  };
  TwoDevices devices(trace(f, {{f32, {4}}, {i64, {2}}}));
  Tensor table = tensor({1.0f, 2.0f, 3.0f, 4.0f});
  const int64_t replays = fake::replays();
  for (int round = 0; round < 3; ++round) {
    CHECK(devices.differences("main", {table, tensor({1, 3})}) == "");
    CHECK(devices.onGpu.status.ok());
    CHECK(devices.differences("main", {table, tensor({1, 7})}) == "");
    CHECK(devices.onGpu.status.code() == rt::ErrorCode::Data);
  }
  CHECK(fake::replays() - replays == 5);
}

TEST_CASE("gpu condition: the first of several invalid values in loops and branches is named", "[gpu]") {
  Clean clean;
  // Indices out of range in the condition, the body, a loop in the body, a branch, and behind the loop.
  auto f = [](const Tensor &next, const Tensor &more, const Tensor &start) {
    auto at = [](const Tensor &table, const Tensor &i) { return take(table, reshape(i, {1}), 0).reshape({}); };
    auto [last, sum] = while_loop([&](const Tensor &i, const Tensor &) { return at(more, i) > 0; },
                                  [&](const Tensor &i, const Tensor &sum) {
                                    Tensor j = at(next, i);
                                    Tensor part = cond(j % 2 == 0, [&] { return at(more, j + 1); }, [&] { return j; });
                                    Tensor inner = while_loop([](const Tensor &k) { return k > 3; },
                                                              [&](const Tensor &k) { return at(next, k); }, j);
                                    return std::pair(j, sum + part + inner);
                                  },
                                  std::pair(start, tensor(int64_t(0))));
    return List{last, sum, at(next, sum)};
  };
  TwoDevices devices(trace(f, {{i64, {8}}, {i64, {8}}, {i64, {}}}));
  const int64_t replays = fake::replays();
  int right = 0, wrong = 0, runs = 0;
  const Tensor next = tensor({1, 2, 7, 9, 3, 4, -12, 0}), other = tensor({3, 0, 1, 9, 7, 1, 5, 2});
  const Tensor more = tensor({1, 1, 1, 0, 1, 1, 1, 0});
  for (const Tensor &table : {next, other, tensor({2, 0, 5, 4, 8, 7, 3, 1})})
    for (const Tensor &limit : {more, tensor({0, 1, 1, 0, 0, 1, 1, 0})})
      for (int64_t start : {0, 3, 4, 6, 7, 8, -9}) {
        CHECK(devices.differences("main", {table, limit, tensor(start)}) == "");
        ++(devices.onGpu.status.ok() ? right : wrong);
        ++runs;
      }
  CHECK((right > 5 && wrong > 10));
  CHECK(fake::replays() - replays == runs - 1);
}

TEST_CASE("gpu condition: states change with a branch in the same graph", "[gpu]") {
  Clean clean;
  struct Rows : nn::Module {
    Parameter rows = register_buffer("rows", zeros({6, 5})), count = register_buffer("count", zeros({}, i64));
  } module;
  Program program(module);
  program.add("main",
              [&](const Tensor &x) {
                Tensor step = cond(x.sum() > 0, [&] { return x * 2; }, [&] { return -x; });
                module.rows.set(module.rows.value() + step);
                module.count.set(module.count + 1);
                return module.rows.value().sum({1});
              },
              {{f32, {6, 5}}});
  TwoDevices devices(program.graph());
  const int64_t replays = fake::replays();
  for (int i = 0; i < 6; ++i)
    CHECK(devices.differences("main", {full({6, 5}, double(i % 3 - 1))}) == "");
  CHECK(devices.differentStates() == "");
  CHECK(fake::replays() > replays);
}

TEST_CASE("gpu condition: a run that decides is part of what the caller captures", "[gpu]") {
  Clean clean;
  rt::Program::Ptr program = programForBoth(digits());
  rt::gpu::Device::Ptr device;
  REQUIRE(rt::gpu::Device::open(0, device).ok());
  const rt::gpu::Device &d = *device;
  rt::gpu::Device::Use use(*device);
  rt::gpu::Stream stream = nullptr;
  REQUIRE(d->streamCreate(&stream, 1) == rt::gpu::kSuccess);
  rt::BufferRef in, out;
  REQUIRE(device->allocateBuffer(8, in).ok());
  REQUIRE(device->allocateBuffer(8, out).ok());
  {
    std::unique_ptr<rt::Session> session;
    REQUIRE(rt::Session::create(program, {.device = "cuda:0", .stream = {rt::gpu::StreamChoice::Kind::Given, stream}},
                                session)
                .ok());
    const rt::DeviceTag there{1, 0, 0};
    std::vector<rt::TensorView> inputs{{in->data(), nullptr, 0, DType::i64, there}};
    std::vector<rt::TensorView> outputs{{out->data(), nullptr, 0, DType::i64, there}};
    auto set = [&](int64_t n) {
      REQUIRE(d->copyToDevice(reinterpret_cast<rt::gpu::DevicePointer>(in->data()), &n, 8, stream) ==
              rt::gpu::kSuccess);
    };
    auto result = [&] {
      int64_t n = -1;
      REQUIRE(d->copyToHost(&n, reinterpret_cast<rt::gpu::DevicePointer>(out->data()), 8, stream) == rt::gpu::kSuccess);
      REQUIRE(d->streamSynchronize(stream) == rt::gpu::kSuccess);
      return n;
    };
    set(7);
    REQUIRE(session->run(inputs, outputs).ok());
    CHECK(result() == digitsOf(7));
    rt::gpu::Graph graph = nullptr;
    rt::gpu::GraphExec executable = nullptr;
    REQUIRE(d->streamBeginCapture(stream, 1) == rt::gpu::kSuccess);
    rt::Status captured = session->run(inputs, outputs);
    INFO(captured.message());
    CHECK(captured.ok());
    REQUIRE(d->streamEndCapture(stream, &graph) == rt::gpu::kSuccess);
    REQUIRE(d->graphInstantiate(&executable, graph, 0) == rt::gpu::kSuccess);
    for (int64_t n : {0, 31, 4}) {
      set(n);
      REQUIRE(d->graphLaunch(executable, stream) == rt::gpu::kSuccess);
      CHECK(result() == digitsOf(n));
    }
    CHECK(d->graphExecDestroy(executable) == rt::gpu::kSuccess);
    CHECK(d->graphDestroy(graph) == rt::gpu::kSuccess);
  }
  CHECK(d->streamDestroy(stream) == rt::gpu::kSuccess);
}

TEST_CASE("gpu condition: ptxas assembles the kernel that decides", "[gpu]") {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    return skipWithout("ptxas");
  for (const char *target : {"cuda-sm_80+ptx", "cuda-sm_90a+ptx"}) {
    std::vector<AssembledKernel> kernels = assembled(rt::gpu::kConditionPtx, target, ptxas);
    REQUIRE(kernels.size() == 1);
    CHECK((kernels[0].entry == "set_conditions" && kernels[0].spilledBytes == 0));
  }
}
