// Mixed precision, fine-tuning of what PyTorch has saved, and values that are computed again.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

/// Two of PyTorch's layers, and a new head.
struct Classifier : nn::Layer<Classifier> {
  nn::Sequential features =
      register_module("features", nn::Sequential(nn::Linear(2, 24), nn::Tanh(), nn::Linear(24, 24), nn::Tanh()));
  nn::Linear head = register_module("head", nn::Linear(24, 3));
  Tensor forward(const Tensor &x) { return head(features(x)); }
};

int main() {
  manual_seed(1);
  Tensor x = uniform({600, 2}, -1, 1), radius = x.norm(2, 1), ring = (radius > 0.45).to(i64) + (radius > 0.8).to(i64);

  Classifier net;
  net.features.load_state_dict(load_pth("features.pth").part("features.")); // what torch.save() has written
  net.features.freeze();

  auto stepOf = [&](optim::Optimizer optimizer) {
    return jit([&, optimizer](const Tensor &input, const Tensor &target) mutable {
      Tensor loss;
      {
        Autocast scope(bf16);
        loss = cross_entropy(net(input), target);
      }
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      return loss;
    });
  };
  auto accuracyNow = [&] { return accuracy(net(x), ring).item(); };

  auto tuneHead = stepOf(optim::Adam(net.head.parameters(), {.lr = 0.03}));
  for (int i = 0; i < 100; ++i)
    tuneHead(x, ring);
  double headOnly = accuracyNow();

  net.features.requires_grad_();
  auto tuneAll = stepOf(optim::Adam(net.parameters(), {.lr = 0.01}));
  for (int i = 0; i < 200; ++i)
    tuneAll(x, ring);
  std::cout << (accuracyNow() > 0.95 && accuracyNow() > headOnly ? "tuned" : "not tuned") << "\n";

  optim::GradScaler scaler; // f16 has a small range: the loss is scaled, and steps that overflow are left out
  optim::SGD optimizer(net.parameters(), {.lr = 0.01});
  auto step = jit([&](const Tensor &input, const Tensor &target) {
    Tensor loss;
    {
      Autocast scope(f16);
      loss = cross_entropy(net.head(remat(net.features)(input)), target);
    }
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    optimizer.zero_grad();
    return loss;
  });
  for (int i = 0; i < 3; ++i)
    step(x, ring);
  std::cout << "scale " << scaler.get_scale() << "\n";
}
