// Training: the gradient is part of the traced function.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

Tensor loss(const Tensor &x, const Tensor &w, const Tensor &v) {
  return pow(matmul(tanh(matmul(x, w)), v) - sin(x), 2).mean();
}

int main() {
  Tensor a = tensor({1.0f, 2.0f, 3.0f}).requires_grad_();
  (a * a).sum().backward();
  std::cout << a.grad() << "\n";

  manual_seed(1);
  auto step = jit([](const Tensor &x, const Tensor &w, const Tensor &v) {
    std::vector<Tensor> g = grad(loss(x, w, v), {w, v});
    return std::make_pair(w - 0.1 * g[0], v - 0.1 * g[1]);
  });
  Tensor x = uniform({256, 1}, -3, 3), w = randn({1, 16}), v = randn({16, 1});
  for (int i = 0; i < 2000; ++i)
    std::tie(w, v) = step(x, w, v);
  std::cout << "loss " << loss(x, w, v).item() << "\n";

  Graph graph = trace([](const Tensor &x) { return grad(gelu(x).sum(), {x}); }, {TensorSpec{f32, {Dim("n")}}});
  std::cout << str(graph.outputs()[0]) << "\n";
}
