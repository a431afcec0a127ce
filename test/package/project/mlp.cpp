// The first program of burin's README: an MLP, traced for every batch size and saved. Writes mlp.burin into the current
// folder, and for each batch size n given, inputs x<n>.npy and the eager results y<n>.npy.
#include <burin/burin.h>
#include <cstdio>
using namespace burin;

int main(int argc, char **argv) {
  manual_seed(1);
  auto net = nn::Sequential(nn::Linear(512, 256), nn::ReLU(), nn::Linear(256, 128), nn::ReLU(), nn::Linear(128, 2));
  Graph g = trace(net, {TensorSpec{f32, {Dim("batch"), 512}}});
  g.save("mlp.burin");
  for (int i = 1; i < argc; ++i) {
    std::string n = argv[i];
    Tensor x = randn({std::stoi(n), 512}), y = net(x);
    save_npy("x" + n + ".npy", x);
    save_npy("y" + n + ".npy", y);
    std::printf("batch %s: largest output %g\n", n.c_str(), y.abs().max().item());
  }
  return argc > 1 ? 0 : 2;
}
