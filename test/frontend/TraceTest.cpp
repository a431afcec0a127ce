#include <burin/burin.h>
#include <catch2/catch.hpp>

using namespace burin;

static double largestDifference(const Tensor &a, const Tensor &b) { return (a - b).abs().max().item(); }

TEST_CASE("the first page: an MLP runs eagerly, jitted and traced, with the same results") {
  manual_seed(1);
  auto net = nn::Sequential(nn::Linear(512, 256), nn::ReLU(), nn::Linear(256, 128), nn::ReLU(), nn::Linear(128, 2));
  Graph g = trace(net, {TensorSpec{f32, {Dim("batch"), 512}}});
  CHECK(str(g.inputs()[0]) == "x: f32[batch, 512]");
  CHECK(str(g.outputs()[0]) == "y: f32[batch, 2]");
  CHECK(g.str().find("name = \"4.bias\"") != std::string::npos);
  auto fast = jit(net);
  for (int batch : {3, 1, 7}) {
    Tensor x = randn({batch, 512}), eager = net(x);
    CHECK(eager.abs().max().item() > 0.01);
    CHECK(largestDifference(eager, fast(x)) < 1e-5);
    CHECK(largestDifference(eager, g.run({x}).front()) < 1e-5);
  }
  CHECK(fast.traces() == 3);
}
