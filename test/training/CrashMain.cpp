// crash-trainer FOLDER STEPS: trains a small network from the newest checkpoint of the folder, saves a checkpoint every
// few steps, and prints a hash of the weights at the end. Exit code 1: training failed, with the reason on stderr.
// crash-trainer --check FOLDER: loads every checkpoint of the folder.
#include "test/training/Hash.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

using namespace burin;

namespace {

constexpr int kStepsPerCheckpoint = 4;

/// 24 images of noise in batches of 5, so that checkpoints occur within epochs.
data::DataLoader images() {
  manual_seed(3);
  auto set = data::tensor_dataset({randn({24, 1, 8, 8}), arange(24) % 4});
  return {set,
          {.batch_size = 5, .shuffle = true, .seed = 7, .workers = 1, .transform = data::random_horizontal_flip()}};
}

unsigned long long train(const std::string &folder, int64_t steps) {
  data::DataLoader loader = images();
  manual_seed(4);
  auto net = nn::Sequential(nn::Conv2d(1, 3, 3), nn::ReLU(), nn::Flatten(), nn::Dropout(0.2), nn::Linear(108, 4));
  optim::AdamW optimizer(net.parameters(), {.lr = 1e-2});
  optim::CosineAnnealingLR schedule(optimizer, steps);
  Generator generator = default_generator();

  Checkpoint checkpoint(folder);
  int64_t step = 0;
  if (auto saved = checkpoint.load_latest(&step)) {
    net.load_state_dict(saved->part("net."));
    optimizer.load_state_dict(saved->part("optimizer."));
    schedule.load_state_dict(saved->part("schedule."));
    loader.load_state_dict(saved->part("loader."));
    generator.state().set(saved->at("generator"));
  }
  while (step < steps) {
    auto batch = loader.next();
    if (!batch)
      continue; // end of an epoch
    Tensor loss = cross_entropy(net((*batch)[0]), (*batch)[1]);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    schedule.step();
    if (++step % kStepsPerCheckpoint == 0) {
      StateDict state;
      state.add("net.", net.state_dict());
      state.add("optimizer.", optimizer.state_dict());
      state.add("schedule.", schedule.state_dict());
      state.add("loader.", loader.state_dict());
      state.emplace_back("generator", generator.state().value());
      checkpoint.save(step, state, loss.item());
    }
  }
  checkpoint.wait();
  test::Hash hash;
  for (const auto &[name, value] : net.state_dict())
    hash.add(value);
  return hash.value();
}

} // namespace

int main(int argc, char **argv) try {
  if (argc == 3 && std::strcmp(argv[1], "--check") == 0) {
    Checkpoint checkpoint(argv[2]);
    for (int64_t step : checkpoint.steps())
      load_safetensors(std::string(argv[2]) + "/step-" + std::to_string(step) + ".safetensors");
    std::printf("%zu\n", checkpoint.steps().size());
    return 0;
  }
  std::printf("%016llx\n", train(argv[1], std::atoll(argv[2])));
  return 0;
} catch (const std::exception &error) {
  std::cerr << error.what() << "\n";
  return 1;
}
