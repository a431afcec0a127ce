// The benchmark models, written with the public API as a user would. Parameters have the names of the PyTorch,
// torchvision and transformers models, so that burin and its peers read the same weight files.
#pragma once
#include <burin/burin.h>
#include <functional>

namespace burin::bench {

/// A traced model, its weights, and inputs to run it with.
struct Model {
  Graph graph;
  StateDict weights, inputs;
};

/// The multilayer perceptron 512-256-128-2.
Model mlp(int64_t batch);
/// The LeNet of the demo, on 28×28 images.
Model lenet(int64_t batch);
/// The AlexNet of "Dive into Deep Learning", on 1×224×224 images.
Model alexnet(int64_t batch);
/// The ResNet-18 of "Dive into Deep Learning", on 1×28×28 images.
Model resnet18(int64_t batch);
/// torchvision's resnet50 and mobilenet_v2.
Model resnet50(int64_t batch, DType dtype = f32);
/// A training step of resnet50 with AdamW, of images [batch, 3, 224, 224] and class numbers [batch]; returns the loss.
std::function<Tensor(const Tensor &, const Tensor &)> resnet50Step();
Model mobilenetV2(int64_t batch);

/// Encoders as in transformers' BertModel, without the pooler.
struct BertSizes {
  int64_t layers, width, heads = 12, vocabulary = 30522, positions = 512;
};
Model bert(const BertSizes &sizes, int64_t batch, int64_t length, DType dtype = f32);

/// GPT-2 small: one token, with the keys and values of `past` tokens.
Model gpt2Decode(int64_t past, DType dtype = f32);

/// Gives every parameter and buffer a random value, the same on every machine. Scales keep activations near 1 through
/// deep networks, and norms, biases and statistics differ from their neutral values, so that an error in any of them
/// changes the result.
void seedWeights(nn::Module &net);

/// Floats, weights and inputs, are converted to `dtype`.
template <class Net> Model traced(Net net, StateDict inputs, std::vector<std::string> outputs, DType dtype = f32) {
  if (dtype != f32)
    net.to(dtype);
  for (auto &[name, value] : inputs)
    if (value.dtype() == f32)
      value = value.to(dtype);
  std::vector<TensorSpec> specs;
  std::vector<std::string> names;
  for (const auto &[name, value] : inputs) {
    names.push_back(name);
    specs.push_back(value.spec());
  }
  return {trace(net, specs, names, std::move(outputs)), net.state_dict(), std::move(inputs)};
}

} // namespace burin::bench
