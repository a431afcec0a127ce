// The graph that docs/architecture.md follows through the compiler.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

int main() {
  Tensor w = ones({64, 32}), b = ones({32});
  auto layer = [&](const Tensor &x) { return relu(matmul(x, w) + b); };
  Graph graph = trace(layer, {TensorSpec{f32, {Dim("n"), 64}}}, {"x"}, {"y"});
  graph.save("stages.burin");
  std::cout << graph.str() << "\n";
}
