// Whole training steps: eager and jitted ones agree, and a jitted one is traced once.
#include "test/frontend/Check.h"
#include <burin/nn/losses.h>
#include <burin/training/optim.h>

namespace {

/// Returns the losses of training steps of a LeNet on random images, new ones in each step.
template <class MakeOptimizer> std::vector<double> train(bool compiled, MakeOptimizer make) {
  manual_seed(2);
  auto net = nn::Sequential(nn::Conv2d(1, 4, 5), nn::ReLU(), nn::MaxPool2d({2}), nn::Flatten(),
                            nn::Linear(4 * 6 * 6, 24), nn::ReLU(), nn::Linear(24, 10));
  auto optimizer = make(net.parameters());
  auto step = [&](const Tensor &x, const Tensor &y) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  auto jitted = jit(step);
  std::vector<double> losses;
  for (int i = 0; i < 12; ++i) {
    Tensor x = randn({8, 1, 16, 16}), y = randint(0, 10, {8});
    if (i == 6)
      optimizer.set_lr(optimizer.lr() / 2);
    losses.push_back((compiled ? jitted(x, y) : step(x, y)).item());
  }
  CHECK(jitted.traces() == (compiled ? 1 : 0));
  return losses;
}

template <class MakeOptimizer> void checkSteps(MakeOptimizer make) {
  std::vector<double> eager = train(false, make), compiled = train(true, make);
  for (size_t i = 0; i < eager.size(); ++i)
    CHECK(compiled[i] == Approx(eager[i]).epsilon(1e-4));
}

} // namespace

TEST_CASE("a jitted training step is traced once, also when the learning rate changes: Adam") {
  checkSteps([](auto parameters) { return optim::Adam(parameters, {.lr = 3e-3}); });
}
TEST_CASE("a jitted training step is traced once, also when the learning rate changes: SGD with momentum") {
  checkSteps([](auto parameters) { return optim::SGD(parameters, {.lr = 0.05, .momentum = 0.9, .nesterov = true}); });
}
