// ResNet-18 (He et al. 2015) for images of 28×28×1: the first convolution is 3×3 with stride 1, and no pooling precedes
// the blocks. Trained by the training demo, and timed by burin-bench-training.
#pragma once
#include <burin/burin.h>

namespace burin {

struct ResidualBlock : nn::Module {
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1, bn2;
  nn::Sequential shortcut; // a convolution if the block changes the size of its input; otherwise empty

  ResidualBlock(int64_t from, int64_t to, int64_t stride)
      : Module("ResidualBlock"),
        conv1(register_module("conv1", nn::Conv2d(from, to, 3, {.stride = stride, .padding = 1, .bias = false}))),
        conv2(register_module("conv2", nn::Conv2d(to, to, 3, {.padding = 1, .bias = false}))),
        bn1(register_module("bn1", nn::BatchNorm2d(to))), bn2(register_module("bn2", nn::BatchNorm2d(to))),
        shortcut(register_module("shortcut", from == to ? nn::Sequential() : projection(from, to, stride))) {}

  Tensor operator()(const Tensor &x) {
    nn::ModuleScope scope(*this);
    Tensor y = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(y + shortcut(x));
  }

private:
  static nn::Sequential projection(int64_t from, int64_t to, int64_t stride) {
    return nn::Sequential(nn::Conv2d(from, to, 1, {.stride = stride, .bias = false}), nn::BatchNorm2d(to));
  }
};

struct ResNet18 : nn::Module {
  nn::Sequential stem = register_module(
      "stem", nn::Sequential(nn::Conv2d(1, 64, 3, {.padding = 1, .bias = false}), nn::BatchNorm2d(64), nn::ReLU()));
  nn::Sequential blocks = register_module(
      "blocks", nn::Sequential(ResidualBlock(64, 64, 1), ResidualBlock(64, 64, 1), ResidualBlock(64, 128, 2),
                               ResidualBlock(128, 128, 1), ResidualBlock(128, 256, 2), ResidualBlock(256, 256, 1),
                               ResidualBlock(256, 512, 2), ResidualBlock(512, 512, 1)));
  nn::Linear fc = register_module("fc", nn::Linear(512, 10));

  Tensor operator()(const Tensor &image) { return fc(blocks(stem(image)).mean({2, 3})); }
};

} // namespace burin
