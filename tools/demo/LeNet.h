// The network of the demo, which is also a burin-bench workload.
#pragma once
#include <burin/burin.h>

namespace burin {

struct LeNet : nn::Module {
  nn::Conv2d conv1 = register_module("conv1", nn::Conv2d(1, 20, 3));
  nn::Conv2d conv2 = register_module("conv2", nn::Conv2d(20, 50, 5));
  nn::AvgPool2d pool = nn::AvgPool2d(2);
  nn::Linear fc1 = register_module("fc1", nn::Linear(800, 128));
  nn::Linear fc2 = register_module("fc2", nn::Linear(128, 10));

  Tensor operator()(const Tensor &image) const {
    Tensor x = pool(relu(conv1(image)));
    x = pool(relu(conv2(x)));
    return fc2(relu(fc1(x.flatten(1))));
  }
};

} // namespace burin
