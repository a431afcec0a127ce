// Cube roots by Newton's method: a loop within a branch within a branch.
#include "three_ways.h"

/// The root of a positive number, and the number of iterations.
std::pair<Tensor, Tensor> positiveRoot(const Tensor &a) {
  return while_loop(
      [&](const Tensor &y, const Tensor &n) { return (abs(y * y * y - a) > a * 1e-6) & (n < 100); },
      [&](const Tensor &y, const Tensor &n) { return std::make_pair(y - (y * y * y - a) / (3 * y * y), n + 1); },
      std::make_pair(maximum(a, 1.0), zeros({}, i64)));
}

std::pair<Tensor, Tensor> cubeRoot(const Tensor &x) {
  return cond(
      abs(x) < 1e-12, [&] { return std::make_pair(x * 0, zeros({}, i64)); },
      [&] {
        return cond(
            x < 0,
            [&] {
              auto [y, n] = positiveRoot(-x);
              return std::make_pair(-y, n);
            },
            [&] { return positiveRoot(x); });
      });
}

int main() {
  auto root = [](const Tensors &in) {
    auto [y, n] = cubeRoot(in[0]);
    return Tensors{y, n};
  };
  ThreeWays run(root, {{f32, {}}}, "newton");
  for (float x : {27.0f, -8.0f, 0.0f, 1e-3f, 12345.678f, -0.5f}) {
    Tensors found = run({tensor(x)});
    std::cout << x << " " << found[0].item() << " " << found[1].item<int64_t>() << "\n";
  }
}
