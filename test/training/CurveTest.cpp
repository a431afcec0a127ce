// 50 training steps of five small networks, compiled, in f64, compared with PyTorch; see make_curves.py.
#include "test/frontend/Check.h"
#include "test/training/Cases.h"
#include "test/training/Networks.h"

using namespace burin::test;

namespace {

constexpr int kSteps = 50;

void check(const std::string &name, Training t) {
  static const auto cases = loadCases("curves.json");
  auto step = jit([&](const Tensor &x, const Tensor &target) { return trainStep(t, x, target); });
  std::vector<double> losses;
  for (int i = 0; i < kSteps; ++i) {
    auto [x, target] = t.batch(i);
    losses.push_back(step(x, target).item());
  }
  CHECK(step.traces() == 1);
  const Tensors &expected = cases.at(name);
  checkClose(from_vector(losses), expected.at("losses"), 1e-9, name + ", losses");
  auto checkSums = [&](const std::string &prefix, const StateDict &state) {
    for (const auto &[key, sums] : expected.part(prefix)) {
      INFO(name << ": " << prefix << key);
      REQUIRE(state.find(key));
      Tensor x = state.at(key).to(f64);
      checkClose(stack({x.sum(), x.abs().sum()}), sums, 1e-9, key);
    }
  };
  checkSums("state.", t.module.state_dict());
  checkSums("optimizer.", t.optimizer.state_dict());
}

} // namespace

TEST_CASE("an MLP trained by SGD with momentum follows PyTorch") { check("mlp", mlp(f64)); }
TEST_CASE("a LeNet trained by Adam follows PyTorch") { check("lenet", leNet(f64)); }
TEST_CASE("a residual network with batch norm trained by AdamW follows PyTorch") {
  check("resnet", residual(f64, kSteps));
}
TEST_CASE("a GPT trained by AdamW with warm-up and clipping follows PyTorch") { check("gpt", gpt(f64)); }
TEST_CASE("a bidirectional LSTM trained by RMSprop follows PyTorch") { check("lstm", lstm(f64)); }
