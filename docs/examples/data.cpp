// Data, checkpoints and a compiled training step.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

int main() {
  manual_seed(4);
  Tensor x = uniform({600, 2}, -1, 1), quadrant = (x > 0).to(i64)[{Slice(), 0}] * 2 + (x > 0).to(i64)[{Slice(), 1}];
  auto parts = data::random_split(data::tensor_dataset({x, quadrant}), {512, 88}, /*seed=*/1);
  data::DataLoader loader(parts[0], {.batch_size = 32, .shuffle = true, .workers = 2});

  auto net = nn::Sequential(nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 4));
  optim::Adam optimizer(net.parameters(), {.lr = 0.03});
  auto step = jit([&](const Tensor &input, const Tensor &target) {
    Tensor loss = cross_entropy(net(input), target);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return loss;
  });

  Checkpoint checkpoint("runs/quadrants", {.keep_last = 2});
  for (int epoch = 0; epoch < 8; ++epoch) {
    ProgressBar progress(loader.size(), "epoch " + std::to_string(epoch));
    Mean loss;
    for (const std::vector<Tensor> &batch : loader) {
      loss.add(step(batch[0], batch[1]));
      progress.step();
    }
    StateDict state;
    state.add("model.", net.state_dict());
    state.add("optimizer.", optimizer.state_dict());
    state.add("loader.", loader.state_dict());
    checkpoint.save(epoch, state, /*metric=*/loss.value());
  }
  std::cout << "traced " << step.traces() << " time\n";

  StateDict best = *checkpoint.load_best();
  net.load_state_dict(best.part("model."));
  data::DataLoader held(parts[1], {.batch_size = 88});
  std::vector<Tensor> all = *held.next();
  std::cout << (accuracy(net(all[0]), all[1]).item() > 0.9 ? "accurate" : "not accurate") << "\n";
}
