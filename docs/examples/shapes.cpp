// Shapes with symbols: one graph for every size.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

Tensor standardize(const Tensor &x) {
  Tensor mean = x.mean(0, true), deviation = sqrt(x.var(0, true));
  return ((x - mean) / deviation).reshape({x.size(0) * x.size(1)});
}

int main() {
  const Dim rows("rows");
  Graph g = trace(standardize, {TensorSpec{f32, {rows, 3}}});
  std::cout << str(g.inputs()[0]) << " -> " << str(g.outputs()[0]) << "\n";
  for (int n : {2, 100})
    std::cout << str(g.run({rand({n, 3})}).front().spec()) << "\n";

  try {
    trace([](const Tensor &x) { return x.size(0) > 10 ? x * 2 : x; }, {TensorSpec{f32, {rows, 3}}});
  } catch (const Error &error) {
    std::cout << error.what() << "\n";
  }

  const Dim length("length", 1, 512), pairs("pairs");
  Graph ranged = trace([](const Tensor &x, const Tensor &y) { return x[Slice(-1)] + y.reshape({-1, 2}).sum(0); },
                       {TensorSpec{f32, {length, 2}}, TensorSpec{f32, {2 * pairs}}});
  std::cout << str(ranged.inputs()[0]) << ", " << str(ranged.inputs()[1]) << " -> " << str(ranged.outputs()[0]) << "\n";
  for (auto [rows, numbers] : {std::pair(600, 2), std::pair(5, 3)})
    try {
      ranged.run({ones({rows, 2}), ones({numbers})});
    } catch (const Error &error) {
      std::cout << error.what() << "\n";
    }
}
