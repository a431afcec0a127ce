// Tensors on a GPU: eager calls, gradients, jitted functions, optimisers, random numbers give what they give on the
// processor. The GPU is the CUDA driver for tests, which interprets the PTX of the kernels.
#include "test/gpu/tensors/GpuTensors.h"
#include <burin/graph/program.h>
#include <filesystem>

using namespace burin::test;

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

TEST_CASE("gpu tensor: ops run where their operands are", "[gpu]") {
  Tensor x = tensor({{1, -2, 3}, {-4, 5, -6}}).to(f32), w = tensor({{1, 2}, {3, 4}, {5, 6}}).to(f32);
  Tensor gx = x.to(cuda(0)), gw = w.to(cuda(0));
  Tensor product = matmul(gx, gw);
  CHECK(product.device() == cuda(0));
  checkClose(product, matmul(x, w));
  checkClose(softmax(gx * 2 + 1, 1), softmax(x * 2 + 1, 1));
  checkClose(gx.sum({1}), x.sum({1}));
  checkClose(concat({gx, gx}, 0), concat({x, x}, 0));
  // Numbers, tensors of rank 0, and what is created without a device go where the others are.
  CHECK((gx + tensor({2.0}).sum()).device() == cuda(0));
  CHECK(burin::where(gx > 0, gx, zeros({2, 3})).device() == cuda(0));
  CHECK((arange(3).to(f32) + gx).device() == cuda(0));
  checkClose(arange(3).to(f32) + gx, arange(3).to(f32) + x);
  CHECK((zeros_like(gx).device() == cuda(0) && rand({2}).device() == cpu));
  {
    DeviceScope scope(cuda(0));
    CHECK((from_vector<float>({1, 2}).device() == cuda(0) && arange(4).device() == cuda(0)));
  }
  synchronize(cuda(0)); // what has been enqueued is copied late
  const int64_t before = hostCopies();
  Tensor chain = relu(gx) * 3 - gx;
  chain = chain * 3; // the number is there by now
  chain.wait();
  CHECK(hostCopies() - before <= 4);
  checkClose(chain, (relu(x) * 3 - x) * 3);
}

TEST_CASE("gpu tensor: operands on different devices are refused", "[gpu]") {
  Tensor x = tensor({1.0, 2.0}), there = x.to(cuda(0));
  CHECK_ERROR(x + there, "add", "f32[2] on cpu", "f32[2] on cuda:0", "x.to(");
  nn::Linear layer(2, 3);
  CHECK_ERROR(layer(there.reshape({1, 2})), "on cuda:0", "on cpu");
  layer.to(cuda(0));
  CHECK(layer(there.reshape({1, 2})).device() == cuda(0));
  auto both = jit([](const Tensor &a, const Tensor &b) { return a + b; });
  CHECK_ERROR(both(x, there), "argument 0 is on cpu", "argument 1 on cuda:0", "to()");
}

TEST_CASE("gpu tensor: a traced function has one device", "[gpu]") {
  Tensor x = tensor({{1.0, 2.0}}), there = x.to(cuda(0));
  nn::Linear layer(2, 3), far(3, 2);
  far.to(cuda(0));
  CHECK_ERROR(jit([&](const Tensor &t) { return layer(t); })(there), "f32[3, 2] is on cpu", "traced runs on cuda:0",
              "x.to(cuda(0))");
  CHECK_ERROR(jit([&](const Tensor &t) { return far(layer(t)); })(x), "is on cuda:0", "traced runs on cpu",
              "x.to(cpu)");
  CHECK_ERROR(trace([&](const Tensor &t) { return far(layer(t)); }, {TensorSpec{f32, {1, 2}}}), "is on cuda:0",
              "traced runs on cpu");
  const int line = __LINE__ + 1;
  auto plus = jit([&](const Tensor &t) { return t + x; });
  std::string what = messageOf([&] { plus(there); });
  INFO(what);
  CHECK(contains(what, atLine(__FILE__, line)));
  CHECK(contains(what, "add: f32[1, 2] is on cpu"));
  CHECK_ERROR(jit([&](const Tensor &t) { return (t + 1).to(cuda(0)); })(x), "to:", "cuda:0 is another one");
  // What is made while a function is traced goes where it runs.
  auto made =
      jit([](const Tensor &t) { return t * from_vector<float>({2, 3}) + tensor({{1.0, 0.0}}) + arange(2).to(f32); });
  CHECK(floats(made(there)) == std::vector<float>{3, 7});
  layer.to(cuda(0));
  CHECK(jit([&](const Tensor &t) { return far(layer(t)); })(there).device() == cuda(0));
}

TEST_CASE("gpu tensor: graphs run where their parameters are, or as they are told", "[gpu]") {
  nn::Linear layer(2, 3);
  const std::vector<TensorSpec> inputs{TensorSpec{f32, {Dim("n"), 2}}};
  Tensor x = tensor({{1.0, 2.0}});
  Graph graph = trace(layer, inputs);
  CHECK((graph.device() == cpu && graph.to(cuda(0)).device() == cuda(0) && graph.device() == cpu));
  Tensor want = graph.run({x})[0], there = graph.to(cuda(0)).run({x})[0];
  CHECK((want.device() == cpu && there.device() == cuda(0)));
  checkClose(there, want);
  CHECK(compile(graph.to(cuda(0))).device() == cuda(0));
  CHECK(compile(graph.to(cuda(0)), {.device = cpu}).device() == cpu);
  layer.to(cuda(0));
  Graph far = trace(layer, inputs);
  CHECK((far.device() == cuda(0) && far.function("main").device() == cuda(0)));
  Artifact artifact = compile(far);
  CHECK(artifact.device() == cuda(0));
  checkClose(artifact(x), want);
  auto twice = [](const Tensor &t) { return t * 2; };
  CHECK(trace(twice, inputs).device() == cpu);
  DeviceScope scope(cuda(0));
  CHECK(trace(twice, inputs).device() == cuda(0));
  Program program;
  program.add("twice", twice, inputs);
  CHECK(program.graph().device() == cuda(0));
}

TEST_CASE("gpu tensor: artifacts are loaded for a device", "[gpu]") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("burin-gpu-" + std::to_string(getpid()))).string();
  Graph graph = trace([](const Tensor &t) { return t * 2; }, {TensorSpec{f32, {2}}});
  Tensor x = tensor({1.0, 2.0});
  compile(graph.to(cuda(0)), {.targets = {"native", "cuda-sm_80+ptx"}}).save(path);
  CHECK(load(path).device() == cpu);
  CHECK(load(path, {.device = cpu}).device() == cpu);
  CHECK(floats(load(path, {.device = cuda(0)})(x)) == std::vector<float>{2, 4});
  CHECK(load(path, {.device = cuda(0)}).device() == cuda(0));
  CHECK_ERROR(load(path, {.device = cuda(7)}), "there is no GPU cuda:7");
  compile(graph, {.targets = {"cuda-sm_80+ptx"}, .device = cuda(0)}).save(path); // for GPUs alone
  CHECK((load(path).device() == cuda(0) && floats(load(path)(x)) == std::vector<float>{2, 4}));
  CHECK_ERROR(load(path, {.device = cpu}), "code for GPUs only", "cuda:0");
  compile(graph).save(path);
  CHECK_ERROR(load(path, {.device = cuda(0)}), "no code for cuda:0");
  std::filesystem::remove(path);
}

TEST_CASE("gpu tensor: artifacts may ask for products by a library", "[gpu]") {
  Tensor w = ones({4, 8}), x = ones({2, 4});
  Graph graph = trace([&](const Tensor &t) { return matmul(t, w); }, {TensorSpec{f32, {2, 4}}});
  CompileOptions options{.provider = "cublaslt", .device = cuda(0)};
  CHECK(floats(compile(graph, options)(x)) == std::vector<float>(16, 4)); // where it is not there, too
  CHECK_ERROR(compile(graph, {.provider = "cublaslt"}), "on GPUs only");
  CHECK_ERROR(compile(graph, {.provider = "mkl"}), "there is no provider \"mkl\"");
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
  messageOf([] { synchronize(); }); // tells of it again
  CHECK(floats(take(table, tensor({1, 3}).to(cuda(0)), 0)) == std::vector<float>{3, 4, 5, 9, 10, 11});
  CHECK(floats(table.sum({0})) == std::vector<float>{18, 22, 26});
}

TEST_CASE("gpu tensor: a late error names the module of the call", "[gpu]") {
  struct Words : nn::Module {
    nn::Embedding table = register_module("table", nn::Embedding(4, 3));
    Tensor operator()(const Tensor &at) const { return table(at) * 2; }
  };
  struct Model : nn::Module {
    Words words = register_module("words", Words());
    Tensor operator()(const Tensor &at) const { return words(at); }
  } model;
  model.to(cuda(0));
  Tensor at = tensor({1, 9}).to(cuda(0)), rows = model(at);
  nn::Linear other(2, 2); // where the error is read does not matter
  nn::ModuleScope elsewhere(other);
  for (const Tensor &x : {rows, rows + 1}) {
    std::string what = messageOf([&] { x.to_vector<float>(); });
    INFO(what);
    CHECK(contains(what, "range"));
    CHECK(contains(what, "in the module words.table, Embedding"));
  }
  messageOf([] { synchronize(); }); // tells of it again
  // Outside of modules there is none to name.
  std::string what = messageOf([&] { take(arange(4).to(cuda(0)), at, 0).to_vector<int64_t>(); });
  INFO(what);
  CHECK((contains(what, "range") && !contains(what, "in the module")));
  messageOf([] { synchronize(); });
}

TEST_CASE("gpu tensor: what is made like a tensor is where that is", "[gpu]") {
  Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}}), there = x.to(cuda(0));
  for (Device device : {cpu, cuda(0)}) {
    const Tensor &like = device.is_cuda() ? there : x;
    for (const Tensor &made : {zeros_like(like), ones_like(like), full_like(like, 3), rand_like(like), randn_like(like),
                               dropout(like, 0.5), default_generator().bernoulli(like / 5)})
      CHECK(made.device() == device);
    CHECK(default_generator().categorical(like).device() == device);
  }
  const int64_t before = hostCopies();
  CHECK(floats(there + full({2, 2}, 2.5)) == std::vector<float>{3.5, 4.5, 5.5, 6.5}); // made there, not copied
  CHECK(ints(full({3}, 7, i64) + zeros({3}, i64, cuda(0))) == std::vector<int64_t>{7, 7, 7});
  CHECK(hostCopies() - before == 16 + 24 + 8); // the results; the first i64
}

TEST_CASE("gpu tensor: sizes that depend on data", "[gpu]") {
  Tensor x = tensor({3.0, -1.0, 2.0, -5.0, 4.0}), there = x.to(cuda(0));
  Tensor positive = masked_select(there, there > 0);
  CHECK((positive.device() == cuda(0) && floats(positive) == std::vector<float>{3, 2, 4}));
  CHECK(ints(nonzero(there < 0)) == ints(nonzero(x < 0)));
  auto kept = jit([](const Tensor &t) { return masked_select(t, t > 0) * 2; });
  CHECK(floats(kept(there)) == std::vector<float>{6, 4, 8});
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

TEST_CASE("gpu tensor: memory is given back, and has a limit", "[gpu]") {
  Tensor x = rand({1000}).to(cuda(0));
  auto step = [&] { return (x * 2 + 1).sum().item(); };
  struct Use {
    size_t allocations, inUse;
    bool operator==(const Use &) const = default;
  };
  auto useAfterSteps = [&] {
    for (int i = 0; i < 20; ++i)
      step();
    synchronize(cuda(0)); // memory is given back in the order of the work
    return Use{fake::allocations(), memory_use(cuda(0)).in_use};
  };
  // How many steps it takes until each plan has its memory depends on how they overlap; memory that is lost in a step
  // never stops growing.
  Use before = useAfterSteps(), after = useAfterSteps();
  for (int round = 0; round < 10 && before != after; ++round)
    before = std::exchange(after, useAfterSteps());
  CHECK(before == after);
  const size_t inUse = after.inUse;
  set_memory_limit(cuda(0), inUse + 1000);
  const int line = __LINE__ + 1;
  Tensor large = x * 3;
  std::string what = messageOf([&] { large.wait(); });
  INFO(what);
  CHECK(contains(what, atLine(__FILE__, line)));
  CHECK(contains(what, "the limit is"));
  CHECK(contains(what, "tensors"));
  set_memory_limit(cuda(0), 0);
  CHECK((x * 3).sum().item() > 0);
}

TEST_CASE("gpu tensor: an error of the driver shows at the call or its result, and the next call works", "[gpu]") {
  Tensor x = tensor({1.0, 2.0}).to(cuda(0));
  (x * 2).wait();
  int failures = 0;
  for (int64_t n = 1; n <= 16; ++n) {
    fake::failCall(n);
    std::vector<float> got;
    std::string what = messageOf([&] { got = floats(x * 2); });
    fake::failCall(0);
    INFO(what);
    failures += !what.empty();
    CHECK((what.empty() ? got == std::vector<float>{2, 4} : contains(what, "CUDA_ERROR_UNKNOWN (999)")));
    CHECK(floats(x * 2) == std::vector<float>{2, 4});
  }
  CHECK(failures >= 6);             // what fails when a context is left is of no consequence
  messageOf([] { synchronize(); }); // tells of the first one again
}

TEST_CASE("gpu tensor: two GPUs", "[gpu]") {
  fake::setDevices(2);
  Tensor x = arange(1000).to(f32), first = x.to(cuda(0)), second = x.to(cuda(1));
  CHECK(cuda_device_count() == 2);
  CHECK_ERROR(first + second, "on cuda:0", "on cuda:1");
  for (const Tensor &there : {first, second}) // whose code is loaded then
    ((there * 2 + 1) - 1).wait();
  Tensor a = first * 2 + 1, b = second * 2 - 1;
  CHECK((fake::pendingWork(0) > 0 && fake::pendingWork(1) > 0)); // neither waits for the other
  const int64_t before = hostCopies(), between = fake::copies().between;
  Tensor sum = a + b.to(cuda(0));
  sum.wait();
  CHECK(hostCopies() == before);
  CHECK(fake::copies().between - between == 4000);
  checkClose(sum, x * 4);
  auto f = jit([](const Tensor &t) { return t * 2; });
  CHECK((f(first).device() == cuda(0) && f(second).device() == cuda(1) && f(x).device() == cpu));
  checkClose(f(second), x * 2);
}
