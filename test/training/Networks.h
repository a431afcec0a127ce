// Five networks and how they are trained; make_curves.py has the same in PyTorch.
#pragma once
#include <burin/burin.h>
#include <cmath>

namespace burin::test {

inline std::vector<double> waveOf(int64_t count, double seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(std::sin(double(i) * 0.7 + seed));
  return values;
}
inline Tensor wave(const Shape &shape, double seed) {
  return from_vector(waveOf(elements(shape).value(), seed), shape);
}
inline Tensor classes(int64_t count, int64_t of, int64_t seed) { return (arange(count) * 7 + seed * 3) % of; }

inline void setWeights(nn::Module &module, DType type) {
  module.to(type);
  double seed = 0;
  for (Parameter p : module.parameters()) {
    const bool isVector = p->rank() == 1;
    const double scale = std::sqrt(isVector ? 4.0 : double(p->size(-1)));
    p.set((wave(p->shape(), seed++) / scale + (isVector ? 0.5 : 0.0)).to(type));
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

/// One training step; returns the loss before the update.
inline Tensor trainStep(Training &t, const Tensor &x, const Tensor &target) {
  Tensor loss = t.loss(x, target);
  loss.backward();
  if (std::isfinite(t.clip))
    optim::clip_grad_norm_(t.module.parameters(), t.clip);
  t.optimizer.step();
  t.optimizer.zero_grad();
  if (t.schedule)
    t.schedule->step();
  return loss;
}

/// A basic block of a ResNet (He et al. 2016), with smooth activations.
struct ResidualBlock : nn::Module {
  ResidualBlock(int64_t in, int64_t out, int64_t stride)
      : conv1(register_module("conv1", nn::Conv2d(in, out, 3, {.stride = stride, .padding = 1, .bias = false}))),
        bn1(register_module("bn1", nn::BatchNorm2d(out))),
        conv2(register_module("conv2", nn::Conv2d(out, out, 3, {.padding = 1, .bias = false}))),
        bn2(register_module("bn2", nn::BatchNorm2d(out))) {
    if (stride > 1 || in != out)
      downsample =
          register_module("downsample", nn::Sequential(nn::Conv2d(in, out, 1, {.stride = stride, .bias = false}),
                                                       nn::BatchNorm2d(out)));
  }
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  std::optional<nn::Sequential> downsample;
  Tensor operator()(const Tensor &x) {
    return gelu(bn2(conv2(gelu(bn1(conv1(x))))) + (downsample ? (*downsample)(x) : x));
  }
};

/// ResNet-18 with a stem of 3x3 and an eighth of the channels, or only its first blocks.
struct Residual : nn::Module {
  static constexpr int kBlocks = 8;
  explicit Residual(int count = kBlocks) {
    int64_t channels = 8;
    for (int i = 0; i < count; ++i) {
      const bool shrinks = i > 0 && i % 2 == 0;
      const int64_t next = shrinks ? 2 * channels : channels;
      blocks.push_back(ResidualBlock(channels, next, shrinks ? 2 : 1));
      channels = next;
    }
    fc = register_module("fc", nn::Linear(channels, 3));
  }
  nn::Conv2d stem = register_module("stem", nn::Conv2d(1, 8, 3, {.padding = 1, .bias = false}));
  nn::BatchNorm2d norm = register_module("norm", nn::BatchNorm2d(8));
  nn::ModuleList<ResidualBlock> blocks = register_module("blocks", nn::ModuleList<ResidualBlock>());
  nn::Linear fc{1, 1};
  Tensor operator()(const Tensor &image) {
    Tensor x = gelu(norm(stem(image)));
    for (ResidualBlock &block : blocks)
      x = block(x);
    return fc(x.mean({2, 3}));
  }
};

struct Gpt : nn::Module {
  nn::Embedding token = register_module("token", nn::Embedding(11, 8));
  nn::Embedding position = register_module("position", nn::Embedding(6, 8));
  nn::TransformerEncoder blocks = register_module("blocks", nn::TransformerEncoder(makeLayer, 4, nn::LayerNorm(8)));
  nn::Linear head = register_module("head", nn::Linear(8, 11, {.bias = false}));
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

/// The loss of a classifier of images or rows.
template <class Net> auto lossOf(Net net, double smoothing = 0) {
  return [net, smoothing](const Tensor &x, const Tensor &target) mutable {
    return cross_entropy(net(x), target, {.label_smoothing = smoothing});
  };
}
inline auto batchOf(Shape shape, int64_t count, int64_t of) {
  return [=](int step) { return std::make_pair(wave(shape, step), classes(count, of, step)); };
}

inline Training mlp(DType type) {
  auto net = nn::Sequential(nn::Linear(8, 16), nn::Tanh(), nn::Linear(16, 8), nn::Tanh(), nn::Linear(8, 4));
  setWeights(net, type);
  optim::SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  return {net, optimizer, lossOf(net), batchOf({16, 8}, 16, 4)};
}

inline Training leNet(DType type) {
  auto net = nn::Sequential(nn::Conv2d(1, 3, 3, {.padding = 1}), nn::Sigmoid(), nn::AvgPool2d(2), nn::Conv2d(3, 4, 3),
                            nn::Tanh(), nn::AvgPool2d(2), nn::Flatten(), nn::Linear(16, 5));
  setWeights(net, type);
  optim::Adam optimizer(net.parameters(), {.lr = 0.01});
  return {net, optimizer, lossOf(net), batchOf({4, 1, 12, 12}, 4, 5)};
}

inline Training residual(DType type, int steps, int blocks = Residual::kBlocks) {
  Residual net(blocks);
  setWeights(net, type);
  optim::AdamW optimizer(net.parameters(), {.lr = 0.01});
  return {net, optimizer, lossOf(net, 0.1), batchOf({4, 1, 14, 14}, 4, 3), optim::CosineAnnealingLR(optimizer, steps)};
}

inline Training gpt(DType type) {
  Gpt net;
  setWeights(net, type);
  optim::AdamW optimizer(net.parameters(), {.lr = 0.01});
  auto loss = [=](const Tensor &x, const Tensor &target) mutable {
    return cross_entropy(net(x).flatten(0, 1), target);
  };
  auto batch = [](int step) {
    return std::make_pair(classes(18, 11, step).reshape({3, 6}), classes(18, 11, step + 1));
  };
  return {net, optimizer, loss, batch, optim::LinearLR(optimizer, 0.1, 1, 10), 0.5};
}

inline Training lstm(DType type) {
  Sequence net;
  setWeights(net, type);
  optim::RMSprop optimizer(net.parameters(), {.lr = 0.005});
  return {net, optimizer, lossOf(net), batchOf({7, 3, 3}, 3, 4)};
}

} // namespace burin::test
