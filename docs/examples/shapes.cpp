// Shapes with symbols: one graph for every size.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

Tensor standardize(const Tensor &x) {
  Tensor mean = x.mean(0, true), deviation = sqrt(x.var(0, true));
  return ((x - mean) / deviation).reshape({x.size(0) * x.size(1)});
}

int main() {
  Dim rows("rows");
  Graph g = trace(standardize, {TensorSpec{f32, {rows, 3}}});
  std::cout << str(g.inputs()[0]) << " -> " << str(g.outputs()[0]) << "\n";
  for (int n : {2, 100})
    std::cout << str(g.run({rand({n, 3})}).front().spec()) << "\n";

  try {
    trace([](const Tensor &x) { return x.size(0) > 10 ? x * 2 : x; }, {TensorSpec{f32, {rows, 3}}});
  } catch (const Error &error) {
    std::cout << error.what() << "\n";
  }
}
