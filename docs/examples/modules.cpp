// Modules: layers with named weights, which files hold.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

struct Block : nn::Layer<Block> {
  nn::LayerNorm norm = register_module("norm", nn::LayerNorm(16));
  nn::Linear up = register_module("up", nn::Linear(16, 64));
  nn::Linear down = register_module("down", nn::Linear(64, 16));
  Tensor forward(const Tensor &x) const { return x + down(gelu(up(norm(x)))); }
};

int main() {
  manual_seed(1);
  auto net = nn::Sequential(Block(), Block(), nn::Linear(16, 2));
  std::cout << net.str() << "\n";

  save_safetensors("net.safetensors", net.state_dict());
  net.load_state_dict(load_safetensors("net.safetensors"));
  net.eval();

  StateDict weights = net.state_dict();
  std::cout << weights.size() << " tensors, " << weights[2].first << " is " << str(weights[2].second.spec()) << "\n";
  weights.erase(weights.begin());
  try {
    net.load_state_dict(weights);
  } catch (const Error &error) {
    std::cout << error.what() << "\n";
  }
}
