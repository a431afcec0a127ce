// 50 steps of training of five small networks, compiled, in f64, against PyTorch's; see make_curves.py.
#include "test/frontend/Check.h"
#include "test/training/Cases.h"
#include <cmath>

using namespace burin::test;

namespace {

constexpr int kSteps = 50;

std::vector<double> waveOf(int64_t count, double seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(std::sin(double(i) * 0.7 + seed));
  return values;
}
Tensor wave(const Shape &shape, double seed) { return from_vector(waveOf(elements(shape).value(), seed), shape); }
Tensor classes(int64_t count, int64_t of, int64_t seed) { return (arange(count) * 7 + seed * 3) % of; }

void setWeights(nn::Module &module) {
  module.to(f64);
  double seed = 0;
  for (Parameter p : module.parameters()) {
    const bool isVector = p->rank() == 1;
    const double scale = std::sqrt(isVector ? 4.0 : double(p->size(-1)));
    p.set(wave(p->shape(), seed++) / scale + (isVector ? 0.5 : 0.0));
  }
}

struct Training {
  nn::Module module;
  optim::Optimizer optimizer;
  std::function<Tensor(const Tensor &, const Tensor &)> loss;
  std::function<std::pair<Tensor, Tensor>(int)> batch;
  std::optional<optim::LRScheduler> schedule = std::nullopt;
  double clip = INFINITY;
};

void check(const std::string &name, Training t) {
  static const auto cases = loadCases("curves.json");
  auto step = jit([&](const Tensor &x, const Tensor &target) {
    Tensor loss = t.loss(x, target);
    loss.backward();
    if (std::isfinite(t.clip))
      optim::clip_grad_norm_(t.module.parameters(), t.clip);
    t.optimizer.step();
    t.optimizer.zero_grad();
    if (t.schedule)
      t.schedule->step();
    return loss;
  });
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

struct Residual : nn::Module {
  nn::Conv2d stem = register_module("stem", nn::Conv2d(1, 4, 3, {.padding = 1, .bias = false}));
  nn::BatchNorm2d norm = register_module("norm", nn::BatchNorm2d(4));
  nn::Conv2d conv = register_module("conv", nn::Conv2d(4, 4, 3, {.padding = 1, .bias = false}));
  nn::BatchNorm2d norm2 = register_module("norm2", nn::BatchNorm2d(4));
  nn::Linear fc = register_module("fc", nn::Linear(4, 3));
  Tensor operator()(const Tensor &image) {
    Tensor x = gelu(norm(stem(image)));
    x = gelu(x + norm2(conv(x)));
    return fc(x.mean({2, 3}));
  }
};

struct Gpt : nn::Module {
  nn::Embedding token = register_module("token", nn::Embedding(11, 8));
  nn::Embedding position = register_module("position", nn::Embedding(6, 8));
  nn::TransformerEncoder blocks = register_module("blocks", nn::TransformerEncoder(makeLayer, 2, nn::LayerNorm(8)));
  nn::Linear head = register_module("head", nn::Linear(8, 11, false));
  static nn::TransformerEncoderLayer makeLayer() {
    return {8, 2, {.dim_feedforward = 16, .dropout = 0, .activation = "gelu", .batch_first = true, .norm_first = true}};
  }
  Tensor operator()(const Tensor &x) { return head(blocks(token(x) + position.weight, {.is_causal = true})); }
};

struct Sequence : nn::Module {
  nn::LSTM lstm = register_module("lstm", nn::LSTM(3, 5, {.num_layers = 2, .bidirectional = true}));
  nn::Linear fc = register_module("fc", nn::Linear(10, 4));
  Tensor operator()(const Tensor &x) { return fc(std::get<0>(lstm(x))[-1]); }
};

/// Of a network of images or rows, and its classes.
template <class Net> auto lossOf(Net net, double smoothing = 0) {
  return [net, smoothing](const Tensor &x, const Tensor &target) mutable {
    return cross_entropy(net(x), target, {.label_smoothing = smoothing});
  };
}
auto batchOf(Shape shape, int64_t count, int64_t of) {
  return [=](int step) { return std::make_pair(wave(shape, step), classes(count, of, step)); };
}

} // namespace

TEST_CASE("an MLP trained by SGD with momentum follows PyTorch") {
  auto net = nn::Sequential(nn::Linear(8, 16), nn::Tanh(), nn::Linear(16, 8), nn::Tanh(), nn::Linear(8, 4));
  setWeights(net);
  check("mlp", {net, optim::SGD(net.parameters(), {.lr = 0.1, .momentum = 0.9}), lossOf(net), batchOf({16, 8}, 16, 4)});
}

TEST_CASE("a LeNet trained by Adam follows PyTorch") {
  auto net = nn::Sequential(nn::Conv2d(1, 3, 3, {.padding = 1}), nn::Sigmoid(), nn::AvgPool2d(2), nn::Conv2d(3, 4, 3),
                            nn::Tanh(), nn::AvgPool2d(2), nn::Flatten(), nn::Linear(16, 5));
  setWeights(net);
  check("lenet", {net, optim::Adam(net.parameters(), {.lr = 0.01}), lossOf(net), batchOf({4, 1, 12, 12}, 4, 5)});
}

TEST_CASE("a residual network with batch norm trained by AdamW follows PyTorch") {
  Residual net;
  setWeights(net);
  optim::AdamW optimizer(net.parameters(), {.lr = 0.01});
  check("resnet",
        {net, optimizer, lossOf(net, 0.1), batchOf({4, 1, 6, 6}, 4, 3), optim::CosineAnnealingLR(optimizer, kSteps)});
}

TEST_CASE("a GPT trained by AdamW with warm-up and clipping follows PyTorch") {
  Gpt net;
  setWeights(net);
  optim::AdamW optimizer(net.parameters(), {.lr = 0.01});
  auto loss = [=](const Tensor &x, const Tensor &target) mutable {
    return cross_entropy(net(x).flatten(0, 1), target);
  };
  auto batch = [](int step) {
    return std::make_pair(classes(18, 11, step).reshape({3, 6}), classes(18, 11, step + 1));
  };
  check("gpt", {net, optimizer, loss, batch, optim::LinearLR(optimizer, 0.1, 1, 10), 0.5});
}

TEST_CASE("a bidirectional LSTM trained by RMSprop follows PyTorch") {
  Sequence net;
  setWeights(net);
  check("lstm", {net, optim::RMSprop(net.parameters(), {.lr = 0.005}), lossOf(net), batchOf({7, 3, 3}, 3, 4)});
}
