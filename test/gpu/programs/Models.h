// Models that tests compile for GPUs.
#pragma once
#include <burin/burin.h>
#include <burin/graph/program.h>
#include <burin/nn/losses.h>
#include <burin/nn/transformer.h>
#include <burin/training/optim.h>

namespace burin::test::models {

inline nn::Sequential mlp() {
  return nn::Sequential(nn::Linear(37, 65), nn::ReLU(), nn::Linear(65, 33), nn::Tanh(), nn::Linear(33, 5));
}

// ---- ResNet-18 for images of 32 by 32, with an eighth of the channels

struct Residual : nn::Module {
  nn::Conv2d conv1, conv2;
  std::optional<nn::Conv2d> shortcut;
  nn::BatchNorm2d norm1, norm2;

  Residual(int64_t in, int64_t out, int64_t stride)
      : conv1(in, out, 3, {.stride = stride, .padding = 1, .bias = false}),
        conv2(out, out, 3, {.padding = 1, .bias = false}), norm1(out), norm2(out) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    if (in != out)
      shortcut = register_module("shortcut", nn::Conv2d(in, out, 1, {.stride = stride, .bias = false}));
    register_module("norm1", norm1);
    register_module("norm2", norm2);
  }
  Tensor operator()(const Tensor &x) {
    Tensor y = norm2(conv2(relu(norm1(conv1(x)))));
    return relu(y + (shortcut ? (*shortcut)(x) : x));
  }
};

inline nn::Sequential resnet18(int64_t width) {
  nn::Sequential net(nn::Conv2d(3, width, 3, {.padding = 1, .bias = false}), nn::BatchNorm2d(width), nn::ReLU());
  int64_t in = width;
  for (int64_t stage = 0; stage < 4; ++stage) {
    int64_t out = width << stage;
    std::string name = "stage" + std::to_string(stage);
    net.push_back(name, nn::Sequential(Residual(in, out, stage ? 2 : 1), Residual(out, out, 1)));
    in = out;
  }
  net.push_back("last", nn::Sequential(nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(in, 10)));
  return net;
}

// ---- a GPT whose keys and values are states

inline constexpr int64_t kWords = 67, kSize = 32, kHeads = 4, kLayers = 2, kLength = 24, kBatch = 2;

struct Block : nn::Module {
  nn::LayerNorm norm1 = register_module("norm1", nn::LayerNorm(kSize)),
                norm2 = register_module("norm2", nn::LayerNorm(kSize));
  nn::Linear qkv = register_module("qkv", nn::Linear(kSize, 3 * kSize)),
             out = register_module("out", nn::Linear(kSize, kSize)),
             up = register_module("up", nn::Linear(kSize, 4 * kSize)),
             down = register_module("down", nn::Linear(4 * kSize, kSize));
  nn::KVCache cache = register_module("cache", nn::KVCache(kBatch, kHeads, kLength, kSize / kHeads));

  Tensor operator()(Tensor x, const Tensor &positions) const {
    const Dim n = x.shape()[0], m = x.shape()[1];
    Tensor all = transpose(reshape(qkv(norm1(x)), {n, m, 3, kHeads, kSize / kHeads}), {2, 0, 3, 1, 4});
    Tensor sees = cache.mask(positions, m);
    auto [keys, values] = cache.update(all(1), all(2), positions);
    Tensor y = scaled_dot_product_attention(all(0), keys, values, sees);
    x = x + out(reshape(transpose(y, {0, 2, 1, 3}), {n, m, kSize}));
    return x + down(gelu(up(norm2(x))));
  }
};

struct Gpt : nn::Module {
  nn::Embedding words = register_module("words", nn::Embedding(kWords, kSize)),
                places = register_module("places", nn::Embedding(kLength, kSize));
  nn::ModuleList<Block> blocks;
  nn::LayerNorm norm = register_module("norm", nn::LayerNorm(kSize));

  Gpt() {
    for (int64_t i = 0; i < kLayers; ++i)
      blocks.push_back(Block());
    register_module("blocks", blocks);
  }
  /// Of the word behind tokens [n, m] that begin at positions [n].
  Tensor logits(const Tensor &tokens, const Tensor &positions) const {
    Tensor at = unsqueeze(iota({tokens.shape()[1]}, i64), {0}) + unsqueeze(positions, {1});
    Tensor x = words(tokens) + places(at);
    for (const Block &block : blocks)
      x = block(x, positions);
    return matmul(norm(x), words.weight->t())(Slice(), -1);
  }
  Graph graph() const {
    Program program(*this);
    Dim n("batch", 1, kBatch), m("length");
    program.add("prefill", [&](const Tensor &tokens) { return logits(tokens, iota({tokens.shape()[0]}, i64) * 0); },
                {{i64, {n, m}}});
    program.add(
        "decode",
        [&](const Tensor &tokens, const Tensor &positions) { return logits(unsqueeze(tokens, {1}), positions); },
        {{i64, {n}}, {i64, {n}}});
    return program.graph();
  }
};

// ---- a network that learns

struct Learner {
  struct Net : nn::Module {
    nn::Linear hidden = register_module("hidden", nn::Linear(6, 24, {.bias = false})),
               out = register_module("out", nn::Linear(24, 3));
    nn::BatchNorm1d norm = register_module("norm", nn::BatchNorm1d(24));
    nn::Dropout dropout = register_module("dropout", nn::Dropout(0.25));
    Tensor operator()(const Tensor &x) { return out(dropout(relu(norm(hidden(x))))); }
  };
  Net net;
  // An eps far above rounding: Adam makes steps of full length of gradients that are 0 but for rounding.
  optim::AdamW optimizer{net.parameters(), {.lr = .01, .eps = 1e-3}};

  Tensor step(const Tensor &x, const Tensor &label) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(net(x), label);
    loss.backward();
    optimizer.step();
    return loss.detach();
  }
  Graph graph() {
    Program program(net);
    program.add("train_step", [&](const Tensor &x, const Tensor &label) { return step(x, label); },
                {{f32, {16, 6}}, {i64, {16}}}, {"x", "label"}, {"loss"});
    net.eval();
    program.add("predict", [&](const Tensor &x) { return softmax(net(x), 1); }, {{f32, {Dim("n"), 6}}});
    return program.graph();
  }
};

} // namespace burin::test::models
