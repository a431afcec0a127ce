// Tensors and modules on a GPU.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

int main() {
  manual_seed(4);
  nn::Linear layer(3, 2);
  layer.to(cuda(0));
  Tensor x = tensor({{1.0, 2.0, 3.0}}).to(cuda(0));
  Tensor y = relu(layer(x)) * 2; // runs on the GPU
  std::cout << y.device() << " " << y.shape() << "\n";

  auto step = jit([&](const Tensor &x) { return layer(x).sum(); }); // runs where its inputs are
  std::cout << step(x).device() << "\n";

  Tensor mask = zeros({1, 3});               // goes where it is used
  Tensor there = ones({1, 3}, f32, cuda(0)); // stays where it is
  std::cout << (x + mask + there).device() << "\n";
  try {
    x + tensor({{1.0, 1.0, 1.0}});
  } catch (const Error &error) {
    std::cout << error.what() << "\n";
  }

  Graph graph = trace(layer, {TensorSpec{f32, {Dim("n"), 3}}}, {"x"}, {"y"});
  compile(graph, {.targets = {"native", "cuda-sm_80+ptx"}}).save("layer.plate");
  Artifact onGpu = load("layer.plate").to(cuda(0));
  std::cout << onGpu(x).device() << "\n";
}
