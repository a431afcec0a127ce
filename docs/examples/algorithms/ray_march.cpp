// A ray-marched picture: each ray goes on by the distance to the nearest surface, until all have hit one or are far
// away.
#include "three_ways.h"

constexpr int64_t size = 128; // a power of 2, so that coordinates are exact, whether they are folded or not

/// From a point to a sphere of radius 1 at the origin and a floor at y = -1.
Tensor distance(const Tensor &x, const Tensor &y, const Tensor &z) {
  return minimum(sqrt(x * x + y * y + z * z) - 1, y + 1);
}

/// The brightness [size, size] of what a camera at z = -3 with this focal length sees in the light from a direction
/// [3].
Tensor picture(const Tensor &light, const Tensor &focal) {
  Tensor u = unsqueeze(arange(size).to(f32) * (2.0 / size) - 1, {0}) + zeros({size, 1});
  Tensor v = 1 - unsqueeze(arange(size).to(f32) * (2.0 / size), {1}) + zeros({1, size});
  Tensor norm = rsqrt(u * u + v * v + focal * focal), dx = u * norm, dy = v * norm, dz = focal * norm;
  auto goesOn = [](const Tensor &t, const Tensor &step, const Tensor &n) {
    return any((step > 1e-3) & (t < 20.0)) & (n < 200);
  };
  auto march = [&](const Tensor &t, const Tensor &, const Tensor &n) {
    Tensor step = distance(dx * t, dy * t, dz * t - 3);
    return std::make_tuple(where(t < 20.0, t + step, t), step, n + 1);
  };
  auto [t, step, n] =
      while_loop(goesOn, march, std::make_tuple(zeros({size, size}), ones({size, size}), zeros({}, i64)));
  Tensor x = dx * t, y = dy * t, z = dz * t - 3;
  const double h = 1e-3;
  auto slope = [&](const Tensor &ahead, const Tensor &behind) { return (ahead - behind) / (2 * h); };
  Tensor nx = slope(distance(x + h, y, z), distance(x - h, y, z)),
         ny = slope(distance(x, y + h, z), distance(x, y - h, z)),
         nz = slope(distance(x, y, z + h), distance(x, y, z - h));
  Tensor lit = maximum(nx * light(0) + ny * light(1) + nz * light(2), 0.0);
  return where(t < 20.0, minimum(lit, 1.0), 0.0);
}

int main() {
  ThreeWays run([](const Tensors &in) { return Tensors{picture(in[0], in[1])}; }, {{f32, {3}}, {f32, {}}}, "ray_march");
  Tensor brightness = run({tensor({0.0f, 0.6f, -0.8f}), tensor(1.5f)})[0];
  save_pgm("ray_march.pgm", (brightness * 255).round(), 255);
  std::cout << "mean brightness " << brightness.mean().item() << "\n";
}
