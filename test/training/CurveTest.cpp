// 50 training steps of five networks, compiled, compared with PyTorch in f64; see make_curves.py.
#include "test/frontend/Check.h"
#include "test/training/Cases.h"
#include "test/training/Networks.h"

using namespace burin::test;

namespace {

constexpr int kSteps = 50;

const Tensors &expectedOf(const std::string &name) {
  static const auto cases = loadCases("curves.json");
  return cases.at(name);
}

std::vector<double> lossesOf(Training &t, DType type) {
  auto step = jit([&](const Tensor &x, const Tensor &target) { return trainStep(t, x, target); });
  std::vector<double> losses;
  for (int i = 0; i < kSteps; ++i) {
    auto [x, target] = t.batch(i);
    losses.push_back(step(isFloat(x.dtype()) ? x.to(type) : x, target).item());
  }
  CHECK(step.traces() == 1);
  return losses;
}

/// In f64, all that a training leaves behind is PyTorch's.
void check(const std::string &name, Training t) {
  const Tensors &expected = expectedOf(name);
  const std::vector<double> losses = lossesOf(t, f64);
  checkClose(from_vector(losses), expected.at("losses"), 1e-9, name + ", losses");
  auto checkSums = [&](const std::string &prefix, const StateDict &state) {
    for (const auto &[key, sums] : expected.part(prefix)) {
      INFO(name << ": " << prefix << key);
      REQUIRE(state.find(key));
      Tensor x = state.at(key).to(f64);
      checkClose(stack({x.sum(), x.abs().sum(), (x * wave(x.shape(), 0.5)).sum()}), sums, 1e-9, key);
    }
  };
  checkSums("state.", t.module.state_dict());
  checkSums("optimizer.", t.optimizer.state_dict());
}

/// In f32, losses stay as close to PyTorch's in f64 as rounding allows.
void checkLosses(const std::string &name, Training t) {
  INFO(name);
  const std::vector<double> losses = lossesOf(t, f32), expected = expectedOf(name).at("losses").to_vector<double>();
  for (int i = 0; i < kSteps; ++i) {
    INFO("step " << i + 1 << ": " << losses[size_t(i)] << " for " << expected[size_t(i)]);
    const double tolerance = 1e-6 + 9e-6 * i / (kSteps - 1);
    CHECK(std::abs(losses[size_t(i)] - expected[size_t(i)]) <= tolerance * std::abs(expected[size_t(i)]));
  }
}

} // namespace

TEST_CASE("an MLP trained by SGD with momentum follows PyTorch") { check("mlp", mlp(f64)); }
TEST_CASE("a LeNet trained by Adam follows PyTorch") { check("lenet", leNet(f64)); }
TEST_CASE("a residual network with batch norm trained by AdamW follows PyTorch") {
  check("resnet", residual(f64, kSteps));
}
TEST_CASE("a GPT trained by AdamW with warm-up and clipping follows PyTorch") { check("gpt", gpt(f64)); }
TEST_CASE("a bidirectional LSTM trained by RMSprop follows PyTorch") { check("lstm", lstm(f64)); }

TEST_CASE("training in f32 follows PyTorch's in f64") {
  checkLosses("mlp", mlp(f32));
  checkLosses("lenet", leNet(f32));
  checkLosses("resnet", residual(f32, kSteps));
  checkLosses("gpt", gpt(f32));
  checkLosses("lstm", lstm(f32));
}
