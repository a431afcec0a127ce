// Whole models in one artifact for processors and GPUs: the results on the CUDA driver for tests, which runs the
// kernels on the emulator, are those of the processor up to rounding.
#include "test/gpu/driver/FakeCuda.h"
#include "test/gpu/emulator/Simt.h"
#include "test/gpu/programs/Models.h"
#include "test/gpu/programs/TwoDevices.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using namespace burin::test::models;

namespace {

constexpr const char *kTarget = "cuda-sm_90a+ptx";

/// At the end of a test, when its sessions are gone, nothing is left and nothing was wrong.
struct Clean {
  Clean() { fake::failCall(0); }
  ~Clean() {
    CHECK(emulatorErrors() == "");
    CHECK(fake::problems() == "");
  }
};

} // namespace

TEST_CASE("gpu model: an MLP", "[gpu]") {
  Clean clean;
  manual_seed(1);
  auto net = mlp();
  TwoDevices devices(trace(net, {TensorSpec{f32, {Dim("batch"), 37}}}), kTarget);
  for (int64_t batch : {1, 70, 3, 0, 1})
    CHECK(devices.differences("main", {randn({batch, 37})}, 2e-6, 1e-5) == "");
}

TEST_CASE("gpu model: ResNet-18 on images of 32 by 32", "[gpu]") {
  Clean clean;
  manual_seed(2);
  auto net = resnet18(8);
  net(randn({4, 3, 32, 32})); // statistics to normalise by
  net.eval();
  uint64_t before = simt::counters().launches;
  TwoDevices devices(trace(net, {TensorSpec{f32, {Dim("batch"), 3, 32, 32}}}), kTarget);
  for (int64_t batch : {1, 2})
    CHECK(devices.differences("main", {randn({batch, 3, 32, 32})}, 1e-5, 1e-4) == "");
  CHECK(simt::counters().launches >= before + 2 * 21); // a kernel per convolution or product
}

TEST_CASE("gpu model: a GPT fills its cache and goes on from it", "[gpu]") {
  Clean clean;
  manual_seed(3);
  Gpt model;
  TwoDevices devices(model.graph(), kTarget);
  const double atol = 1e-5, rtol = 1e-4;
  for (int64_t batch : {kBatch, int64_t(1)}) {
    CHECK(devices.differences("prefill", {randint(0, kWords, {batch, 5 + batch})}, atol, rtol) == "");
    for (int64_t i = 0; i < 4; ++i) {
      Tensor tokens = argmax(devices.onCpu.results.at(0), 1), positions = zeros({batch}, i64) + (5 + batch + i);
      CHECK(devices.differences("decode", {tokens, positions}, atol, rtol) == "");
      CHECK(devices.differentStates(atol, rtol) == "");
    }
  }
  // A word that does not exist leaves the cache as it was.
  CHECK(devices.differences("decode", {tensor({int64_t(kWords)}), tensor({int64_t(3)})}) == "");
  CHECK(devices.onGpu.status.code() == rt::ErrorCode::Data);
  CHECK(devices.differentStates(atol, rtol) == "");
}

TEST_CASE("gpu model: training with state of the optimizer, statistics and random numbers", "[gpu]") {
  Clean clean;
  manual_seed(4);
  Learner learner;
  TwoDevices devices(learner.graph(), kTarget);
  CHECK(devices.gpu.states().size() > 12);
  double first = 0;
  Tensor centers = randn({3, 6}) * 2;
  for (int i = 0; i < 8; ++i) {
    Tensor label = randint(0, 3, {16}), x = take(centers, label, 0) + randn({16, 6});
    CHECK(devices.differences("train_step", {x, label}, 1e-5, 1e-4) == "");
    CHECK(devices.differentStates(1e-5, 1e-3) == "");
    if (i == 0)
      first = devices.onGpu.results.at(0).item();
  }
  CHECK(devices.onGpu.results.at(0).item() < first);
  CHECK(devices.differences("predict", {randn({5, 6})}, 1e-5, 1e-4) == "");
  // A class that does not exist changes nothing.
  CHECK(devices.differences("train_step", {randn({16, 6}), full({16}, 3, i64)}) == "");
  CHECK(devices.onGpu.status.code() == rt::ErrorCode::Data);
  CHECK(devices.differentStates(1e-5, 1e-3) == "");
}
