// Metropolis sampling: walkers whose places, like the random numbers, are states that live from call to call.
#include "three_ways.h"

constexpr int64_t walkers = 64, steps = 25;

struct Chain : nn::Module {
  Parameter place = register_buffer("place", zeros({walkers})), accepted = register_buffer("accepted", zeros({}, i64));
  Generator generator{7};

  /// Moves all walkers `steps` times; their places approach a normal distribution with mean 1 and deviation 0.5.
  Tensors operator()(const Tensors &) {
    auto energy = [](const Tensor &x) { return (x - 1) * (x - 1) * 2; };
    auto move = [&](const Tensor &, const Tensor &x, const Tensor &count) {
      Tensor to = x + generator.normal({walkers}, 0, 1), dice = generator.uniform({walkers}, 0, 1);
      Tensor isTaken = dice < exp(minimum(energy(x) - energy(to), 0.0));
      return std::make_pair(where(isTaken, to, x), count + isTaken.to(i64).sum());
    };
    auto [last, count] = fori_loop(0, steps, move, std::make_pair(place.value(), accepted.value()));
    place.set(last);
    accepted.set(count);
    return {last, count};
  }
};

int main() {
  ThreeWays run([]() -> ThreeWays::Function { return Chain(); }, {}, "metropolis");
  Tensors samples;
  int64_t accepted = 0;
  for (int call = 0; call < 20; ++call) {
    Tensors found = run({});
    samples.push_back(found[0]);
    accepted = found[1].item<int64_t>();
  }
  Tensor last = stack(samples, 0)(Slice(4, None)); // the first ones depend on where the walkers began
  std::cout << "mean " << last.mean().item() << ", deviation " << last.var().sqrt().item() << ", accepted "
            << accepted * 100 / (20 * steps * walkers) << " %\n";
  save_npy("samples.npy", last);
}
