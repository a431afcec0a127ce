// From a model to files: trace, save, compile, load.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

int main() {
  manual_seed(1);
  auto net = nn::Sequential(nn::Conv2d(1, 8, 3), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                            nn::Linear(8 * 13 * 13, 10), nn::Softmax(1));

  Graph graph = trace(net, {TensorSpec{f32, {Dim("batch"), 1, 28, 28}}}, {"image"}, {"probabilities"});
  graph.save("model.burin");

  Artifact artifact = compile(graph, {.targets = {"x86-64-v3", "x86-64-v4"}});
  artifact.save("model.plate");

  Artifact loaded = load("model.plate");
  Tensor x = rand({4, 1, 28, 28});
  Tensor y = loaded(x);
  std::cout << str(loaded.inputs()[0]) << " -> " << str(loaded.outputs()[0]) << "\n";
  std::cout << "as eager, up to rounding: " << all(abs(y - net(x)) < 1e-6).item<bool>() << "\n";

  save_npy("image.npy", x);
  save_npy("probabilities.npy", y);
}
