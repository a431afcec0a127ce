// The training demo: trains a network on Fashion-MNIST with a multithreaded loader, one compiled step, a progress bar,
// a plot of the curve, and checkpoints from which an interrupted run continues:
//   burin-train FOLDER-OF-DATA EPOCHS OUTPUT-FOLDER [lenet|resnet [IMAGES]]
#include "tools/demo/LeNet.h"
#include "tools/demo/ResNet.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>

using namespace burin;

namespace {

/// The first `most` images of a set.
data::DatasetRef images(data::Split split, const std::string &folder, int64_t most) {
  data::DatasetRef all = data::fashion_mnist(split, folder);
  std::vector<int64_t> first(size_t(std::min(most, all->size())));
  std::iota(first.begin(), first.end(), int64_t(0));
  return data::subset(all, first);
}

/// Returns the fraction of test images that are classified correctly.
template <class Net> double test(Net &net, const Jit<Net> &infer, const std::string &folder, int64_t most) {
  data::DataLoader loader(images(data::Split::Test, folder, most), {.batch_size = 500, .workers = 1});
  net.eval();
  Mean right;
  for (const std::vector<Tensor> &batch : loader)
    right.add(accuracy(infer(batch[0]), batch[1]), int64_t(batch[1].size(0)));
  net.train();
  return right.value();
}

template <class Net> void train(const std::string &folder, int epochs, const std::string &output, int64_t most) {
  manual_seed(1);
  Net net;
  optim::Adam optimizer(net.parameters(), {.lr = 2e-3});
  data::DataLoader loader(images(data::Split::Train, folder, most),
                          {.batch_size = 128, .shuffle = true, .drop_last = true, .workers = 1});
  optim::CosineAnnealingLR schedule(optimizer, epochs * loader.size());
  Checkpoint checkpoint(output + "/checkpoints");
  if (auto saved = checkpoint.load_latest()) {
    net.load_state_dict(saved->part("model."));
    optimizer.load_state_dict(saved->part("optimizer."));
    schedule.load_state_dict(saved->part("schedule."));
    loader.load_state_dict(saved->part("loader."));
    std::printf("going on after epoch %d\n", int(loader.epoch()));
  }
  auto step = jit([&](const Tensor &images, const Tensor &labels) {
    Tensor loss = cross_entropy(net(images), labels);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    schedule.step();
    return loss;
  });
  auto infer = jit(net);
  MetricLog log(output + "/curve.csv", loader.epoch()); // with the rows of an interrupted run
  while (loader.epoch() < epochs) {
    const int epoch = int(loader.epoch()) + 1;
    const auto start = std::chrono::steady_clock::now();
    ProgressBar progress(loader.size(), "epoch " + std::to_string(epoch));
    Mean loss;
    for (const std::vector<Tensor> &batch : loader) {
      loss.add(step(batch[0], batch[1]));
      progress.step();
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double right = test(net, infer, folder, most);
    std::printf("epoch %2d  loss %.4f  test accuracy %.4f  %.1f s\n", epoch, loss.value(), right, seconds);
    std::fflush(stdout);
    log.add(epoch, {{"training loss", loss.value()}, {"test accuracy", right}, {"seconds", seconds}});
    plot(output + "/curve.svg", {log.curve("training loss"), log.curve("test accuracy")}, {.x_label = "epoch"});
    StateDict state;
    state.add("model.", net.state_dict());
    state.add("optimizer.", optimizer.state_dict());
    state.add("schedule.", schedule.state_dict());
    state.add("loader.", loader.state_dict());
    checkpoint.save(epoch, state, 1 - right);
  }
  checkpoint.wait();
  save_safetensors(output + "/weights.safetensors", net.state_dict());
  std::printf("traces: %zu; weights: %s/weights.safetensors, curve: %s/curve.svg\n", step.traces(), output.c_str(),
              output.c_str());
}

} // namespace

int main(int argc, char **argv) {
  const std::string network = argc > 4 ? argv[4] : "lenet";
  if (argc < 4 || argc > 6 || (network != "lenet" && network != "resnet")) {
    std::fprintf(stderr, "usage: burin-train FOLDER-OF-DATA EPOCHS OUTPUT-FOLDER [lenet|resnet [IMAGES]]\n");
    return 2;
  }
  try {
    std::filesystem::create_directories(argv[3]);
    const int epochs = std::max(1, std::atoi(argv[2]));
    const int64_t most = argc > 5 ? std::max(128, std::atoi(argv[5])) : INT64_MAX;
    if (network == "resnet")
      train<ResNet18>(argv[1], epochs, argv[3], most);
    else
      train<LeNet>(argv[1], epochs, argv[3], most);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "burin-train: %s\n", error.what());
    return 1;
  }
}
