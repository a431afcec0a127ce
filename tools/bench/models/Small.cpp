// MLP, LeNet, AlexNet.
#include "tools/bench/models/Models.h"
#include "tools/demo/LeNet.h"

namespace burin::bench {

Model mlp(int64_t batch) {
  auto net = nn::Sequential(nn::Linear(512, 256), nn::ReLU(), nn::Linear(256, 128), nn::ReLU(), nn::Linear(128, 2));
  seedWeights(net);
  return traced(net, {{"x", randn({batch, 512})}}, {"y"});
}

namespace {

struct AlexNet : nn::Module {
  nn::Sequential net = register_module(
      "net",
      nn::Sequential(nn::Conv2d(1, 96, 11, {.stride = 4, .padding = 1}), nn::ReLU(), nn::MaxPool2d(3, {.stride = 2}),
                     nn::Conv2d(96, 256, 5, {.padding = 2}), nn::ReLU(), nn::MaxPool2d(3, {.stride = 2}),
                     nn::Conv2d(256, 384, 3, {.padding = 1}), nn::ReLU(), nn::Conv2d(384, 384, 3, {.padding = 1}),
                     nn::ReLU(), nn::Conv2d(384, 256, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(3, {.stride = 2}),
                     nn::Flatten(), nn::Linear(6400, 4096), nn::ReLU(), nn::Dropout(0.5), nn::Linear(4096, 4096),
                     nn::ReLU(), nn::Dropout(0.5), nn::Linear(4096, 10)));

  Tensor operator()(const Tensor &image) const { return net(image); }
};

} // namespace

Model lenet(int64_t batch) {
  LeNet net;
  seedWeights(net);
  return traced(net, {{"image", randn({batch, 1, 28, 28})}}, {"logits"});
}

Model alexnet(int64_t batch) {
  AlexNet net;
  seedWeights(net);
  return traced(net, {{"image", randn({batch, 1, 224, 224})}}, {"logits"});
}

} // namespace burin::bench
