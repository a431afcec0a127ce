// jit: the same call, compiled.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

Tensor distance(const Tensor &a, const Tensor &b) { return sqrt(pow(a - b, 2).sum(-1)); }

int main() {
  auto fast = jit(distance);
  Tensor a = randn({1000, 8}), b = randn({1000, 8});
  Tensor difference = (fast(a, b) - distance(a, b)).abs().max();
  std::cout << "largest difference " << difference.item() << "\n";
  fast(a, b);         // compiled already
  fast(a[0], b[{0}]); // other shapes: traced once more
  std::cout << "traced " << fast.traces() << " times\n";

  auto net = nn::Sequential(nn::Linear(8, 8), nn::Tanh());
  auto quick = jit(net);
  net.eval();
  quick(a);
  net.load_state_dict(nn::Sequential(nn::Linear(8, 8), nn::Tanh()).state_dict());
  Tensor y = quick(a); // new weights: noticed, and traced again
  std::cout << "still the same: " << all(y == net(a)).item<bool>() << "\n";
}
