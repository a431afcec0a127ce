// Tensors, training and artifacts on a GPU.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

int main() {
  manual_seed(4);
  nn::Linear layer(3, 2);
  layer.to(cuda(0));
  Tensor x = tensor({{1.0, 2.0, 3.0}}).to(cuda(0));
  Tensor y = relu(layer(x)) * 2; // runs on the GPU
  std::cout << y.device() << " " << y.shape() << "\n";

  optim::Adam adam(layer.parameters(), {.lr = 0.1});
  auto step = jit([&](const Tensor &x, const Tensor &label) {
    adam.zero_grad();
    Tensor loss = cross_entropy(layer(x), label);
    loss.backward();
    adam.step();
    return loss;
  });
  Tensor label = tensor({1}).to(cuda(0)), first = step(x, label), second = step(x, label);
  std::cout << second.device() << " " << (second.item() < first.item()) << "\n"; // item() waits, and copies

  Tensor mask = zeros({1, 3});               // goes where it is used
  Tensor there = ones({1, 3}, f32, cuda(0)); // stays where it is
  std::cout << (x + mask + there).device() << "\n";
  try {
    x + tensor({{1.0, 1.0, 1.0}});
  } catch (const Error &error) {
    std::cout << error.what() << "\n";
  }

  Graph graph = trace(layer, {TensorSpec{f32, {Dim("n"), 3}}}, {"x"}, {"y"});
  std::cout << graph.device() << " " << graph.to(cpu).run({tensor({{1.0, 2.0, 3.0}})})[0].device() << "\n";
  compile(graph, {.targets = {"native", "cuda-sm_80+ptx"}}).save("layer.plate");
  Artifact onGpu = load("layer.plate", {.device = cuda(0)});
  std::cout << onGpu(x).device() << " " << load("layer.plate").device() << "\n";

  void *stream = reinterpret_cast<void *>(1);     // CUDA's default stream, or one of yours
  DLManagedTensor *shared = to_dlpack(y, stream); // complete for what comes on the stream from here on
  Tensor back = from_dlpack(shared, stream);      // and the other way round
  std::cout << back.device() << " " << (back.to_vector<float>() == y.to_vector<float>()) << "\n";
}
