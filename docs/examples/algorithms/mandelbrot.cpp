// A picture of the Mandelbrot set. The loop ends when all points have diverged, or after `most` iterations.
#include "three_ways.h"

constexpr int64_t width = 192, height = 128, most = 60;

/// The number of iterations until each point around `centre` [2] diverges: i64 [height, width].
Tensor picture(const Tensor &centre) {
  Tensor re = unsqueeze(arange(width).to(f32) * (3.0 / width) - 1.5 + centre(0), {0}) + zeros({height, 1});
  Tensor im = unsqueeze(arange(height).to(f32) * (2.0 / height) - 1 + centre(1), {1}) + zeros({1, width});
  auto isInside = [](const Tensor &x, const Tensor &y) { return x * x + y * y <= 4.0; };
  auto goesOn = [&](const Tensor &n, const Tensor &x, const Tensor &y, const Tensor &) {
    return (n < most) & any(isInside(x, y));
  };
  auto step = [&](const Tensor &n, const Tensor &x, const Tensor &y, const Tensor &count) {
    Tensor inside = isInside(x, y);
    return std::make_tuple(n + 1, where(inside, x * x - y * y + re, x), where(inside, 2 * x * y + im, y),
                           count + inside.to(i64));
  };
  Tensor zero = zeros({height, width});
  auto [n, x, y, count] = while_loop(goesOn, step, std::make_tuple(zeros({}, i64), zero, zero, zero.to(i64)));
  return count;
}

int main() {
  ThreeWays run([](const Tensors &in) { return Tensors{picture(in[0])}; }, {{f32, {2}}}, "mandelbrot");
  Tensor counts = run({tensor({-0.5f, 0.0f})})[0];
  save_pgm("mandelbrot.pgm", counts, most);
  std::cout << (counts == most).sum().item<int64_t>() << " points of the set\n";
}
