// Tensors on a GPU: eager calls, gradients, jitted functions, optimisers, random numbers give what they give on the
// processor. The GPU is the CUDA driver for tests, which interprets the PTX of the kernels.
#include "test/frontend/Check.h"
#include "test/gpu/FakeCuda.h"
#include <burin/losses.h>
#include <burin/optim.h>

using namespace burin::test;

namespace {

/// Bytes that have gone between the process and its devices.
int64_t hostCopies() {
  fake::CopyCounts counts = fake::copies();
  return counts.toDevice + counts.toHost;
}

void checkClose(const Tensor &got, const Tensor &want, double atol = 1e-6, double rtol = 1e-5) {
  REQUIRE(got.spec() == want.spec());
  std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) {
    INFO("element " << i);
    REQUIRE(std::abs(a[i] - b[i]) <= atol + rtol * std::abs(b[i]));
  }
}

/// LeNet's layers on small images.
struct LeNet : nn::Module {
  nn::Conv2d first = register_module("first", nn::Conv2d(1, 3, 3, {.padding = 1})),
             second = register_module("second", nn::Conv2d(3, 4, 3));
  nn::Linear third = register_module("third", nn::Linear(16, 11)), last = register_module("last", nn::Linear(11, 5));
  nn::Dropout dropout = register_module("dropout", nn::Dropout(0.25));
  Tensor operator()(const Tensor &x) const {
    Tensor y = max_pool(relu(first(x)), {2});
    y = max_pool(relu(second(y)), {2});
    return last(dropout(tanh(third(y.flatten(1)))));
  }
};

} // namespace

TEST_CASE("gpu tensor: devices have names", "[gpu]") {
  CHECK((Device("cuda") == cuda(0) && Device("cuda:1") == cuda(1) && Device("cpu") == cpu && Device() == cpu));
  CHECK((cuda(1).str() == "cuda:1" && cpu.str() == "cpu" && cuda(1).is_cuda() && cuda(1).index() == 1));
  CHECK(cuda_device_count() == 1);
  CHECK_ERROR(Device("gpu"), "there is no device \"gpu\"");
  CHECK_ERROR(Device("cuda:-1"), "there is no device");
  CHECK_ERROR(ones({2}).to(cuda(3)), "there is no GPU cuda:3: this machine has 1");
}

TEST_CASE("gpu tensor: there and back", "[gpu]") {
  std::vector<float> numbers(100'001);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = float(i) / 7;
  Tensor x = from_vector(numbers), there = x.to(cuda(0));
  CHECK((x.device() == cpu && there.device() == cuda(0)));
  CHECK(floats(there) == numbers);
  CHECK(there.to("cpu").device() == cpu);
  CHECK(floats(there.to(cpu)) == numbers);
  const int64_t before = hostCopies();
  there.to(cuda(0)).wait();
  there.reshape({1, 100'001}).wait();
  CHECK(hostCopies() == before);
  CHECK(tensor({1.5, 2}).to(cuda(0)).str() == tensor({1.5, 2}).str());
  CHECK(tensor({7}).to(cuda(0)).item<int64_t>() == 7);
  CHECK(floats(zeros({0, 3}).to(cuda(0))).empty());
  CHECK(ints(full({3}, 7, i64, cuda(0))) == std::vector<int64_t>{7, 7, 7});
  CHECK(floats(ones({5}, bf16, cuda(0)).to(f32)) == std::vector<float>(5, 1.0f));
}

TEST_CASE("gpu tensor: operands on different devices are refused", "[gpu]") {
  Tensor x = tensor({1.0, 2.0}), there = x.to(cuda(0));
  CHECK_ERROR(x + there, "add", "f32[2] on cpu", "f32[2] on cuda:0", "x.to(");
  nn::Linear layer(2, 3);
  CHECK_ERROR(layer(there.reshape({1, 2})), "on cuda:0", "on cpu");
  layer.to(cuda(0));
  CHECK(layer(there.reshape({1, 2})).device() == cuda(0));
  auto both = jit([](const Tensor &a, const Tensor &b) { return a + b; });
  CHECK_ERROR(both(x, there), "argument 0 is on cpu", "argument 1 on cuda:0");
}

TEST_CASE("gpu tensor: a wrong value shows where a result is read, and names the call", "[gpu]") {
  Tensor table = arange(12).to(f32).reshape({4, 3}).to(cuda(0)), at = tensor({1, 9}).to(cuda(0));
  const int line = __LINE__ + 1;
  Tensor rows = take(table, at, 0);
  Tensor later = rows * 2;
  for (const Tensor &x : {rows, later, later.to(cpu)}) {
    std::string what = messageOf([&] { x.to_vector<float>(); });
    INFO(what);
    CHECK(contains(what, atLine(__FILE__, line)));
    CHECK(contains(what, "range"));
  }
  CHECK(floats(take(table, tensor({1, 3}).to(cuda(0)), 0)) == std::vector<float>{3, 4, 5, 9, 10, 11});
  CHECK(floats(table.sum({0})) == std::vector<float>{18, 22, 26});
}

TEST_CASE("gpu tensor: random numbers are the processor's", "[gpu]") {
  manual_seed(7);
  Tensor onCpu = randn({100});
  manual_seed(7);
  DeviceScope scope(cuda(0));
  Tensor there = randn({100});
  CHECK(there.device() == cuda(0));
  checkClose(there, onCpu, 1e-6, 1e-6);
  manual_seed(8);
  Tensor bits = rand({33});
  manual_seed(8);
  DeviceScope back(cpu);
  CHECK(floats(bits) == floats(rand({33})));
}

TEST_CASE("gpu tensor: gradients of eager calls", "[gpu]") {
  auto loss = [](const Tensor &x, const Tensor &w) { return (tanh(matmul(x, w)) * 2).sum(); };
  Tensor x = tensor({{1, -2, 3}, {-4, 5, -6}}).to(f32) / 10, w = tensor({{1, 2}, {3, 4}, {5, 6}}).to(f32) / 10;
  Tensor cx = x, cw = w;
  cx.requires_grad_();
  cw.requires_grad_();
  loss(cx, cw).backward();
  Tensor gx = x.to(cuda(0)), gw = w; // a leaf on each device: the gradient of the second one comes back
  gx.requires_grad_();
  gw.requires_grad_();
  loss(gx, gw.to(cuda(0))).backward();
  CHECK((gx.grad().device() == cuda(0) && gw.grad().device() == cpu));
  checkClose(gx.grad(), cx.grad());
  checkClose(gw.grad(), cw.grad());
}

TEST_CASE("gpu tensor: artifacts run on a device, with their states there", "[gpu]") {
  struct Counter : nn::Module {
    Parameter sum = register_buffer("sum", zeros({3}));
    Tensor operator()(const Tensor &x) {
      sum.set(sum + x);
      return sum * 2;
    }
  } counter;
  Graph graph = trace(counter, {TensorSpec{f32, {3}}}, {"x"}, {"y"});
  Artifact artifact = compile(graph, {.device = cuda(0)}), onCpu = compile(graph);
  CHECK((artifact.device() == cuda(0) && onCpu.device() == cpu && artifact.target() == "cuda-sm_90a+ptx"));
  Tensor x = tensor({1.0, 2.0, 3.0}), there = x.to(cuda(0));
  for (int i = 0; i < 2; ++i)
    artifact(there).wait();
  const int64_t before = hostCopies();
  Tensor y = artifact(there);
  y.wait();
  CHECK(hostCopies() == before);
  CHECK(y.device() == cuda(0));
  CHECK(floats(y) == std::vector<float>{6, 12, 18});
  CHECK(floats(artifact(x)) == std::vector<float>{8, 16, 24}); // inputs go where it runs
  CHECK(floats(artifact.state("sum")) == std::vector<float>{4, 8, 12});
  artifact.set_state("sum", zeros({3}));
  CHECK(floats(artifact(there)) == std::vector<float>{2, 4, 6});
  Artifact both = compile(graph, {.targets = {"native", "cuda-sm_80+ptx"}});
  both(x).wait();
  Artifact moved = both.to(cuda(0));
  CHECK(floats(moved(x)) == std::vector<float>{4, 8, 12});
  CHECK_ERROR(onCpu.to(cuda(0)), "the artifact has no code for cuda:0");
}
