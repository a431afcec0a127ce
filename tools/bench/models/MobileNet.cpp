// torchvision's mobilenet_v2.
#include "tools/bench/models/Models.h"

namespace burin::bench {
namespace {

Tensor relu6(const Tensor &x) { return clamp(x, 0.0, 6.0); }

nn::Sequential convNormRelu6(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1, int64_t groups = 1) {
  nn::ConvOptions options{.stride = stride, .padding = kernel / 2, .groups = groups, .bias = false};
  return nn::Sequential(nn::Conv2d(in, out, kernel, options), nn::BatchNorm2d(out), relu6);
}

struct InvertedResidual : nn::Module {
  nn::Sequential conv;
  bool isResidual;

  InvertedResidual(int64_t in, int64_t out, int64_t stride, int64_t expand) : isResidual(stride == 1 && in == out) {
    int64_t hidden = in * expand;
    if (expand != 1)
      conv.push_back(convNormRelu6(in, hidden, 1));
    conv.push_back(convNormRelu6(hidden, hidden, 3, stride, hidden));
    conv.push_back(nn::Conv2d(hidden, out, 1, {.bias = false}));
    conv.push_back(nn::BatchNorm2d(out));
    register_module("conv", conv);
  }
  Tensor operator()(const Tensor &x) const {
    Tensor y = conv(x);
    return isResidual ? x + y : y;
  }
};

struct MobileNetV2 : nn::Module {
  nn::Sequential features, classifier;

  MobileNetV2() {
    features.push_back(convNormRelu6(3, 32, 3, 2));
    struct Stage {
      int64_t expand, out, blocks, stride;
    };
    const Stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                            {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    int64_t in = 32;
    for (const Stage &stage : stages)
      for (int64_t i = 0; i < stage.blocks; ++i) {
        features.push_back(InvertedResidual(in, stage.out, i ? 1 : stage.stride, stage.expand));
        in = stage.out;
      }
    features.push_back(convNormRelu6(in, 1280, 1));
    classifier.push_back(nn::Dropout(0.2));
    classifier.push_back(nn::Linear(1280, 1000));
    register_module("features", features);
    register_module("classifier", classifier);
  }
  Tensor operator()(const Tensor &image) const {
    return classifier(adaptive_avg_pool(features(image), {1, 1}).flatten(1));
  }
};

} // namespace

Model mobilenetV2(int64_t batch) {
  MobileNetV2 net;
  seedWeights(net);
  return traced(net, {{"image", randn({batch, 3, 224, 224})}}, {"logits"});
}

} // namespace burin::bench
