// Training: a loss, an optimiser and a schedule.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

int main() {
  manual_seed(2);
  Tensor x = randn({512, 2}), inside = (pow(x, 2).sum(1) < 1.0).to(i64); // is the point in the unit circle?

  auto net = nn::Sequential(nn::Linear(2, 32), nn::Tanh(), nn::Linear(32, 2));
  optim::AdamW optimizer(optim::decay_matrices_only(net, optim::AdamWOptions{.lr = 0.02}));
  optim::CosineAnnealingLR schedule(optimizer, /*T_max=*/150);
  for (int step = 0; step < 150; ++step) {
    Tensor loss = cross_entropy(net(x), inside, {.label_smoothing = 0.01});
    loss.backward();
    optim::clip_grad_norm_(net.parameters(), 1.0);
    optimizer.step();
    optimizer.zero_grad();
    schedule.step();
  }
  double right = (net(x).argmax(1) == inside).to(f32).mean().item();
  std::cout << (right > 0.95 ? "learned" : "not learned") << ", learning rate " << optimizer.lr() << "\n";
}
