// Functions that set parameters, traced and saved: their states live in the artifact.
#include "test/frontend/Check.h"
#include <burin/nn/losses.h>
#include <burin/training/optim.h>
#include <cstdlib>

namespace {

struct Counter : nn::Module {
  Parameter count = register_buffer("count", zeros({}, i64));
  Tensor operator()(const Tensor &x) {
    count.set(count + 1);
    return x * count.value().to(f32);
  }
};

std::string temporary(const char *name) {
  const char *folder = std::getenv("TMPDIR");
  return std::string(folder ? folder : "/tmp") + "/" + name;
}

const Tensor x = tensor({1.0f, 2.0f});

} // namespace

TEST_CASE("a traced function that sets a buffer has a state of its own") {
  Counter counter;
  Graph graph = trace(counter, {{f32, {2}}});
  CHECK(graph.inputs().size() == 1);
  CHECK(graph.outputs().size() == 1);
  CHECK(graph.str().find("burin.state @count") != std::string::npos);
  for (int i = 1; i <= 3; ++i)
    CHECK(graph.run({x})[0].to_vector<float>() == std::vector<float>{float(i), float(2 * i)});
  CHECK(counter.count->item<int64_t>() == 0); // tracing leaves the module unchanged
}

TEST_CASE("artifacts start with the values that the trace saw, and each load has its own") {
  Counter counter;
  counter(x);
  std::string path = temporary("burin-counter.plate"), graphPath = temporary("burin-counter.burin");
  trace(counter, {{f32, {2}}}).save(graphPath);
  compile(Graph::load(graphPath)).save(path);
  Artifact first = load(path), second = load(path);
  CHECK(first(x).to_vector<float>() == std::vector<float>{2, 4});
  CHECK(first(x).to_vector<float>() == std::vector<float>{3, 6});
  CHECK(second(x).to_vector<float>() == std::vector<float>{2, 4});
}

TEST_CASE("a training step as an artifact learns as the eager one does") {
  auto make = [] {
    manual_seed(11);
    return nn::Sequential(nn::Linear(6, 16), nn::Tanh(), nn::Linear(16, 3));
  };
  auto eagerNet = make(), tracedNet = make();
  optim::Adam eager(eagerNet.parameters(), {.lr = 1e-2}), traced(tracedNet.parameters(), {.lr = 1e-2});
  auto stepOf = [](auto &net, auto &optimizer) {
    return [&](const Tensor &in, const Tensor &label) {
      optimizer.zero_grad();
      Tensor loss = cross_entropy(net(in), label);
      loss.backward();
      optimizer.step();
      return loss.detach();
    };
  };
  Artifact artifact = compile(trace(stepOf(tracedNet, traced), {{f32, {8, 6}}, {i64, {8}}}));
  auto eagerStep = stepOf(eagerNet, eager);
  for (int i = 0; i < 10; ++i) {
    Tensor in = randn({8, 6}), label = randint(0, 3, {8});
    CHECK(artifact(in, label).item() == Approx(eagerStep(in, label).item()).epsilon(1e-4));
  }
}
