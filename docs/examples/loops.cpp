// A recurrent layer: a loop of the graph, for sequences of any length.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

struct Recurrent : nn::Layer<Recurrent> {
  nn::Linear in = register_module("in", nn::Linear(3, 8)), again = register_module("again", nn::Linear(8, 8));

  /// x [length, batch, 3]: all hidden states [length, batch, 8], and the last one.
  std::vector<Tensor> forward(const Tensor &x) const {
    auto step = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
      Tensor hidden = tanh(elements[0] + again(states[0]));
      return ScanResult{.states = {hidden}, .outputs = {hidden}};
    };
    ScanResult all = scan(step, {zeros({x.size(1), 8})}, {in(x)});
    return {all.outputs[0], all.states[0]};
  }
};

int main() {
  Recurrent net;
  Graph graph = trace(net, {TensorSpec{f32, {Dim("length"), 2, 3}}});
  std::cout << str(graph.outputs()[0]) << ", " << str(graph.outputs()[1]) << "\n";
  Graph perSample = trace(
      [](const Tensor &w, const Tensor &xs) {
        return map([&](const Tensor &x) { return grad(tanh((w * x).sum()), {w})[0]; }, xs);
      },
      {TensorSpec{f32, {3}}, TensorSpec{f32, {Dim("samples"), 3}}});
  std::cout << str(perSample.outputs()[0]) << "\n";
  for (int length : {0, 1, 50}) {
    Tensor x = randn({length, 2, 3});
    Tensor difference = (graph.run({x})[1] - net(x)[1]).abs().max();
    std::cout << length << (difference.item() < 1e-4 ? ": the same\n" : ": different\n");
  }
}
