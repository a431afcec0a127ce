// Functions of one example, applied to many at once.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

Tensor loss(const Tensor &w, const Tensor &x, const Tensor &y) { return pow((w * x).sum() - y, 2); }

int main() {
  Tensor w = tensor({1.0f, 2.0f}), xs = tensor({{1.0f, 0.0f}, {0.0f, 1.0f}, {1.0f, 1.0f}}),
         ys = tensor({1.0f, 1.0f, 1.0f});
  std::cout << vmap(loss, {None, 0, 0})(w, xs, ys) << "\n";
  std::cout << vmap(grad(loss), {None, 0, 0})(w, xs, ys) << "\n";

  nn::Linear layer(2, 3);
  auto clipped = [&](const Tensor &x) {
    Tensor g = grad(layer(x).pow(2).sum(), {layer.weight})[0];
    return g / maximum(norm(g), 1.0); // of each example
  };
  auto step = jit([&](const Tensor &xs) { return vmap(clipped)(xs).sum(0); });
  std::cout << str(step(xs).shape()) << "\n";

  auto cubes = [](const Tensor &x) { return pow(x, 3).sum(); };
  std::cout << hessian(cubes)(w) << "\n";

  auto noise = vmap([](const Tensor &x) { return x + randn({2}); }, 0, 0, Randomness::Different);
  std::cout << str(noise(xs).shape()) << "\n";
  try {
    vmap([](const Tensor &x) { return x.item() > 0 ? x : -x; })(ys);
  } catch (const Error &error) {
    std::cout << error.what() << "\n";
  }
}
