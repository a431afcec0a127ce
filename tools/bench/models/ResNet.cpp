#include "tools/bench/models/Models.h"
#include "tools/bench/models/TrainingStep.h"

namespace burin::bench {
namespace {

// ---- ResNet-18 of "Dive into Deep Learning"

struct Residual : nn::Module {
  nn::Conv2d conv1, conv2;
  std::optional<nn::Conv2d> conv3;
  nn::BatchNorm2d bn1, bn2;

  Residual(int64_t in, int64_t out, int64_t stride)
      : conv1(in, out, 3, {.stride = stride, .padding = 1}), conv2(out, out, 3, {.padding = 1}), bn1(out), bn2(out) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    if (in != out || stride != 1)
      conv3 = register_module("conv3", nn::Conv2d(in, out, 1, {.stride = stride}));
    register_module("bn1", bn1);
    register_module("bn2", bn2);
  }
  Tensor operator()(const Tensor &x) {
    Tensor y = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(y + (conv3 ? (*conv3)(x) : x));
  }
};

struct ResNet18 : nn::Module {
  nn::Sequential net;

  ResNet18() {
    net.push_back("0", nn::Sequential(nn::Conv2d(1, 64, 7, {.stride = 2, .padding = 3}), nn::BatchNorm2d(64),
                                      nn::ReLU(), nn::MaxPool2d(3, {.stride = 2, .padding = 1})));
    int64_t in = 64;
    for (int64_t stage = 0; stage < 4; ++stage) {
      int64_t out = 64 << stage;
      net.push_back("b" + std::to_string(stage + 2),
                    nn::Sequential(Residual(in, out, stage ? 2 : 1), Residual(out, out, 1)));
      in = out;
    }
    net.push_back("last", nn::Sequential(nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(512, 10)));
    register_module("net", net);
  }
  Tensor operator()(const Tensor &image) const { return net(image); }
};

// ---- torchvision's resnet50: the stride is in the 3×3 convolution ("v1.5")

nn::Conv2d convWithoutBias(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
  return nn::Conv2d(in, out, kernel, {.stride = stride, .padding = kernel / 2, .bias = false});
}

struct Bottleneck : nn::Module {
  nn::Conv2d conv1, conv2, conv3;
  nn::BatchNorm2d bn1, bn2, bn3;
  std::optional<nn::Sequential> downsample;

  Bottleneck(int64_t in, int64_t width, int64_t stride)
      : conv1(convWithoutBias(in, width, 1)), conv2(convWithoutBias(width, width, 3, stride)),
        conv3(convWithoutBias(width, 4 * width, 1)), bn1(width), bn2(width), bn3(4 * width) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("bn2", bn2);
    register_module("conv3", conv3);
    register_module("bn3", bn3);
    if (in != 4 * width || stride != 1)
      downsample = register_module(
          "downsample", nn::Sequential(convWithoutBias(in, 4 * width, 1, stride), nn::BatchNorm2d(4 * width)));
  }
  Tensor operator()(const Tensor &x) {
    Tensor y = relu(bn1(conv1(x)));
    y = relu(bn2(conv2(y)));
    y = bn3(conv3(y));
    return relu(y + (downsample ? (*downsample)(x) : x));
  }
};

struct ResNet50 : nn::Module {
  nn::Conv2d conv1 = register_module("conv1", convWithoutBias(3, 64, 7, 2));
  nn::BatchNorm2d bn1 = register_module("bn1", nn::BatchNorm2d(64));
  nn::MaxPool2d maxpool = nn::MaxPool2d(3, {.stride = 2, .padding = 1});
  std::vector<nn::Sequential> layers;
  nn::AdaptiveAvgPool2d avgpool = nn::AdaptiveAvgPool2d(1);
  nn::Linear fc = nn::Linear(2048, 1000);

  ResNet50() {
    int64_t in = 64;
    const int64_t depths[] = {3, 4, 6, 3};
    for (int64_t stage = 0; stage < 4; ++stage) {
      int64_t width = 64 << stage;
      nn::Sequential layer;
      for (int64_t i = 0; i < depths[stage]; ++i) {
        layer.push_back(Bottleneck(in, width, stage && i == 0 ? 2 : 1));
        in = 4 * width;
      }
      layers.push_back(register_module("layer" + std::to_string(stage + 1), layer));
    }
    register_module("fc", fc);
  }
  Tensor operator()(const Tensor &image) {
    Tensor x = maxpool(relu(bn1(conv1(image))));
    for (nn::Sequential &layer : layers)
      x = layer(x);
    return fc(avgpool(x).flatten(1));
  }
};

} // namespace

Model resnet18(int64_t batch) {
  ResNet18 net;
  seedWeights(net);
  return traced(net, {{"image", randn({batch, 1, 28, 28})}}, {"logits"});
}

Model resnet50(int64_t batch, DType dtype) {
  ResNet50 net;
  seedWeights(net);
  return traced(net, {{"image", randn({batch, 3, 224, 224})}}, {"logits"}, dtype);
}

std::function<Tensor(const Tensor &, const Tensor &)> resnet50Step() {
  ResNet50 net;
  optim::AdamW optimizer(net.parameters(), {.lr = 1e-3});
  return jit(trainingStep(net, optimizer));
}

} // namespace burin::bench
