// The README's example: eager, jitted, traced, and as a file of native code.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

int main() {
  manual_seed(1);
  auto net = nn::Sequential(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2));
  net.eval(); // for inference: compiled code takes its weights as constants
  Tensor x = tensor({{1, 2, 3, 4}, {5, 6, 7, 8}}).to(f32);

  Tensor eager = net(x); // runs now, line by line
  auto fast = jit(net);  // the same call, traced and compiled on first use
  std::cout << "jit = eager: " << all(fast(x) == eager).item<bool>() << "\n";

  Graph graph = trace(net, {TensorSpec{f32, {Dim("batch"), 4}}}, {"x"}, {"y"});
  compile(graph).save("net.plate");    // native code, weights and plan in one file
  Artifact loaded = load("net.plate"); // any batch size; burin-run needs no LLVM for it
  std::cout << str(loaded.inputs()[0]) << " -> " << str(loaded.outputs()[0]) << "\n";
  std::cout << "artifact = eager: " << all(loaded(x) == eager).item<bool>() << "\n";

  try {
    matmul(x, x);
  } catch (const Error &error) {
    std::cout << error.what() << "\n";
  }
}
