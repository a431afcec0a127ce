// burin-bench-training eager|jit: times whole training steps on data in memory. Commands come on stdin, one per line,
// and answers go to stdout: "setup NAME" runs some steps and answers "ready LOSS"; "time STEPS" answers with
// milliseconds per step. tools/bench/pages/training.py has the same networks in PyTorch.
#include "tools/bench/models/TrainingStep.h"
#include "tools/demo/ResNet.h"
#include <chrono>
#include <functional>
#include <iostream>
#include <sstream>

using namespace burin;

namespace {

struct Step {
  std::function<Tensor()> run;
  std::function<Graph()> graph;
};

template <class F> Step bound(F step, Tensor x, Tensor y, bool isJitted) {
  auto graph = [=] { return trace(step, {x.spec(), y.spec()}); };
  if (!isJitted)
    return {[=]() mutable { return step(x, y); }, graph};
  auto jitted = jit(step);
  return {[=]() mutable { return jitted(x, y); }, graph};
}

Step mlp(bool isJitted) {
  auto net = nn::Sequential(nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 256), nn::ReLU(), nn::Linear(256, 10));
  optim::SGD optimizer(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  return bound(bench::trainingStep(net, optimizer), randn({256, 784}), arange(256) % 10, isJitted);
}

Step leNet(int64_t batch, bool isJitted) {
  auto net = nn::Sequential(nn::Conv2d(1, 6, 5, {.padding = 2}), nn::ReLU(), nn::MaxPool2d(2), nn::Conv2d(6, 16, 5),
                            nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(400, 120), nn::ReLU(),
                            nn::Linear(120, 84), nn::ReLU(), nn::Linear(84, 10));
  optim::SGD optimizer(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  return bound(bench::trainingStep(net, optimizer), randn({batch, 1, 28, 28}), arange(batch) % 10, isJitted);
}

Step resNet(bool isJitted) {
  ResNet18 net;
  optim::AdamW optimizer(net.parameters(), {.lr = 1e-3});
  return bound(bench::trainingStep(net, optimizer), randn({64, 1, 28, 28}), arange(64) % 10, isJitted);
}

struct Gpt : nn::Module {
  static constexpr int64_t kWidth = 256, kVocabulary = 256, kLength = 128;
  nn::Embedding token = register_module("token", nn::Embedding(kVocabulary, kWidth));
  nn::Embedding position = register_module("position", nn::Embedding(kLength, kWidth));
  nn::TransformerEncoder blocks = register_module("blocks", nn::TransformerEncoder(layer, 4, nn::LayerNorm(kWidth)));
  nn::Linear head = register_module("head", nn::Linear(kWidth, kVocabulary, {.bias = false}));
  static nn::TransformerEncoderLayer layer() {
    return {
        kWidth,
        4,
        {.dim_feedforward = 4 * kWidth, .dropout = 0, .activation = "gelu", .batch_first = true, .norm_first = true}};
  }
  Tensor operator()(const Tensor &x) {
    return head(blocks(token(x) + position.weight, {.is_causal = true})).flatten(0, 1);
  }
};

Step gpt(bool isJitted, bool inBf16) {
  Gpt net;
  optim::AdamW optimizer(net.parameters(), {.lr = 3e-4});
  Tensor text = arange(8 * 129) * 7919 % Gpt::kVocabulary;
  text = text.reshape({8, 129});
  return bound(bench::trainingStep(net, optimizer, inBf16), text(Slice(), Slice(0, 128)),
               text(Slice(), Slice(1, 129)).flatten(), isJitted);
}

struct Sequence : nn::Module {
  nn::LSTM lstm = register_module("lstm", nn::LSTM(256, 256, {.num_layers = 2}));
  nn::Linear fc = register_module("fc", nn::Linear(256, 10));
  Tensor operator()(const Tensor &x) { return fc(std::get<0>(lstm(x))[-1]); }
};

Step lstm(bool isJitted) {
  Sequence net;
  optim::RMSprop optimizer(net.parameters(), {.lr = 1e-3});
  return bound(bench::trainingStep(net, optimizer), randn({64, 32, 256}), arange(32) % 10, isJitted);
}

Step make(const std::string &name, bool isJitted) {
  manual_seed(1);
  return name == "mlp"         ? mlp(isJitted)
         : name == "lenet-256" ? leNet(256, isJitted)
         : name == "lenet-32"  ? leNet(32, isJitted)
         : name == "resnet-18" ? resNet(isJitted)
         : name == "gpt"       ? gpt(isJitted, false)
         : name == "gpt-bf16"  ? gpt(isJitted, true)
         : name == "lstm"      ? lstm(isJitted)
                               : throw std::runtime_error("there is no network " + name);
}

} // namespace

int main(int argc, char **argv) try {
  const bool isJitted = argc == 2 && std::string(argv[1]) == "jit";
  if (argc != 2 || (!isJitted && std::string(argv[1]) != "eager")) {
    std::cerr << "usage: burin-bench-training eager|jit\n";
    return 2;
  }
  Step step;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, argument;
    words >> command >> argument;
    if (command == "setup") {
      step = make(argument, isJitted);
      double loss = 0;
      for (int i = 0; i < 3; ++i)
        loss = step.run().item();
      std::cout << "ready " << loss << "\n" << std::flush;
    } else if (command == "time") {
      const int steps = std::stoi(argument);
      auto begin = std::chrono::steady_clock::now();
      Tensor loss;
      for (int i = 0; i < steps; ++i)
        loss = step.run();
      loss.item();
      std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
      std::cout << taken.count() / steps << "\n" << std::flush;
    } else if (command == "save") {
      step.graph().save(argument);
    }
  }
} catch (const std::exception &error) {
  std::cerr << error.what() << "\n";
  return 1;
}
