// What an eager call infers: counted, not timed.
#include "ir/infer/Infer.h"
#include "test/frontend/Check.h"

/// Inferences of one call on this thread.
template <class F> static uint64_t inferencesOf(F &&call) {
  const uint64_t before = ir::inferenceCount();
  call().wait();
  return ir::inferenceCount() - before;
}
static uint64_t kernels() {
  auto statistics = kernel_statistics();
  return statistics.compiled + statistics.fromDisk;
}

TEST_CASE("An eager call is inferred once for its types, and once for its kernel") {
  Tensor x = rand({3, 5}).wait(), y = rand({7, 9}).wait(), z = rand({7, 9}, f64).wait();
  auto call = [](const Tensor &x) { return [x] { return leaky_relu(x, 0.0625); }; };
  // Its types, the symbolic form, the op in the graph; the passes infer nothing.
  CHECK(inferencesOf(call(x)) <= 3);
  CHECK(inferencesOf(call(x)) == 0);
  const uint64_t before = kernels();
  CHECK(inferencesOf(call(y)) == 1); // the kernel is known
  CHECK(kernels() == before);
  CHECK(inferencesOf(call(y)) == 0);
  CHECK(inferencesOf(call(z)) > 1);
  CHECK(kernels() == before + 1);
}

TEST_CASE("Calls that only move elements are inferred once, and have no kernel") {
  auto call = [](int64_t n) {
    Tensor x = ones({n, 4}).wait(), y = ones({2, 4}).wait();
    return [x, y] { return concat({x, y}, 0); };
  };
  const uint64_t before = kernels();
  CHECK(inferencesOf(call(5)) == 1);
  CHECK(inferencesOf(call(5)) == 0);
  CHECK(kernels() == before);
}

TEST_CASE("Indices and sizes that change need no new kernels") {
  const Tensor x = arange(6 * 4 * 5).reshape({6, 4, 5}).to(f32).wait();
  const Tensor more = ones({6, 4, 1}).wait();
  Tensor all = zeros({6, 4, 0}).wait();
  const uint64_t before = kernels();
  for (int64_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(x(i, 3 - i, 2).item() == double(i * 20 + (3 - i) * 5 + 2));
    CHECK(x(Slice(i, i + 2), Ellipsis, Slice(0, 5, i + 1)).shape() == Shape{2, 4, 4 / (i + 1) + 1});
    CHECK(x(Slice(), i).to_vector<float>()[5] == float(20 + i * 5));
    all = concat({all, more}, -1);
    CHECK(all.to_vector<float>() == std::vector<float>(size_t(24 * (i + 1)), 1));
    CHECK(pad(x(0), {i, 0, 0, i}, "constant", 7.).to_vector<float>().back() == (i ? 7 : 19));
    CHECK(x(i).repeat({2, i + 1}).to_vector<float>()[size_t(5 * (i + 1))] == float(i * 20 + 5));
    CHECK(roll(x, i, 0)(i, 0, 0).item() == 0);
    CHECK(split(x, i + 1)[1](0, 0, 0).item() == double((i + 1) * 20));
    CHECK(stack(std::vector<Tensor>(size_t(i + 1), x)).size(0) == i + 1);
    CHECK(flip(x(Slice(0, i + 1)), 0)(0, 0, 0).item() == double(i * 20));
    CHECK(x(i, 2).expand({i + 1, 5}).to_vector<float>().back() == float(i * 20 + 14));
  }
  CHECK(kernels() == before);
}

TEST_CASE("Random integers of other bounds and sizes need no new kernels") {
  randint(0, 5, {3}).wait();
  const uint64_t before = kernels();
  for (int64_t i = 1; i < 5; ++i)
    for (int64_t x : randint(-i, i * i, {7, i}).to_vector<int64_t>())
      CHECK((x >= -i && x < i * i));
  CHECK(kernels() == before);
}

TEST_CASE("Elements are moved for all element types, and empty tensors") {
  for (DType type : {f32, f64, f16, bf16, i8, u8, i32, i64, boolean, f8e4m3fn}) {
    CAPTURE(name(type));
    Tensor x = arange(12).to(f32).reshape({3, 4}).to(type), all = x.to(f32);
    auto same = [&](const Tensor &moved, const Tensor &wanted) {
      CHECK(moved.dtype() == type);
      CHECK(moved.to(f32).to_vector<float>() == wanted.to_vector<float>());
    };
    same(x(Slice(1), Slice(0, 4, 3)), all(Slice(1), Slice(0, 4, 3)));
    same(concat({x, x(Slice(0, 0))}, 0), all);
    same(x(Slice(2, 2)), all(Slice(2, 2)));
    same(x(1).expand({2, 4}), all(1).expand({2, 4}));
  }
  CHECK(concat({ones({2}, i32), ones({1}, f64)}, 0).dtype() == f64); // converts: a kernel
  CHECK(broadcast_to(Tensor(2.5), {3}).to_vector<float>() == std::vector<float>(3, 2.5f));
}

TEST_CASE("Large elements that are moved again and again get a kernel") {
  const Tensor x = rand({300, 200}).wait();
  const uint64_t before = kernels();
  std::vector<float> first = x(Slice(3, 280, 2)).to_vector<float>();
  for (int i = 1; i < 31; ++i)
    x(Slice(3, 280, 2)).wait();
  CHECK(kernels() == before);
  x(Slice(3, 280, 2)).wait();
  CHECK(kernels() == before + 1);
  CHECK(x(Slice(3, 280, 2)).to_vector<float>() == first);
}

TEST_CASE("Windows and convolutions of any image size share a kernel, until one repeats") {
  const Tensor weight = rand({4, 3, 3, 3}).wait();
  auto network = [&](const Tensor &x) {
    return nn::functional::max_pool2d(nn::functional::conv2d(x, weight, {}, 2, 1), 3, 2, 1);
  };
  auto kernelsOf = [&](const Tensor &x) {
    const uint64_t before = kernels();
    network(x).wait();
    return kernels() - before;
  };
  kernelsOf(rand({2, 3, 21, 34}).wait());
  for (int64_t size : {9, 14, 23, 40}) {
    const Tensor x = rand({2, 3, size, size + 3}).wait();
    CHECK(kernelsOf(x) == 0);
    CHECK(allclose(network(x), jit(network)(x), 1e-5, 1e-6)); // compiled for these sizes
  }
  const Tensor x = rand({2, 3, 17, 20}).wait(), first = network(x).wait();
  for (int i = 1; i < 31; ++i) {
    CAPTURE(i);
    CHECK(kernelsOf(x) == 0);
  }
  CHECK(kernelsOf(x) == 2);
  CHECK(allclose(network(x), first, 1e-5, 1e-6));
}

TEST_CASE("A moved operand that could not be computed is told where the result is read") {
  Tensor bad = take(ones({4, 3}), tensor(std::vector<int64_t>{7}), 0);
  Tensor moved = concat({bad(0, Slice(1)), ones({2})}, 0);
  CHECK(contains(messageOf([&] { moved.wait(); }), "an index of take is out of range along axis 0 (element 0)"));
}

/// The gradient of a small network, of sizes and an index that depend on n.
static Tensor gradientOf(const Tensor &x, const Tensor &w, int64_t n) {
  Tensor y = nn::functional::layer_norm(matmul(x, w), {8});
  Tensor loss = nn::functional::cross_entropy(y, arange(n) % 8) + x(n % 5).sum() + softmax(x(Slice(2, n - 1)), 0)(0, 1);
  Tensor all = concat({x, y(Slice(0, 2), Slice(0, 6))}, 0).reshape({1, 1, n + 2, 6});
  loss = loss + nn::functional::max_pool2d(pad(all, {1, n % 3}), 2).mean();
  return grad(loss, {x})[0];
}

TEST_CASE("Gradients of calls whose sizes and indices change need no new kernels") {
  const Tensor w = rand({6, 8}).wait();
  for (bool isWarm : {false, true}) {
    const uint64_t before = kernels();
    for (int64_t n : isWarm ? std::vector<int64_t>{31, 47, 70} : std::vector<int64_t>{20, 24, 25}) {
      CAPTURE(n);
      Tensor x = rand({n, 6}).requires_grad_();
      Tensor gradient = gradientOf(x, w, n).wait();
      if (isWarm)
        CHECK(kernels() == before);
      else
        CHECK(allclose(gradient, jit([&](const Tensor &x) { return gradientOf(x, w, n); })(x.detach()), 1e-4, 1e-6));
    }
  }
}

TEST_CASE("A gradient that repeats is compiled for its own sizes, and has the same bits") {
  const Tensor w = rand({6, 8}).wait(), x = rand({33, 6}).requires_grad_().wait();
  std::vector<float> first = gradientOf(x, w, 33).to_vector<float>();
  uint64_t before = kernels();
  for (int i = 1; i < 15; ++i)
    CHECK(gradientOf(x, w, 33).to_vector<float>() == first);
  CHECK(kernels() == before);
  for (int i = 15; i < 40; ++i)
    CHECK(gradientOf(x, w, 33).to_vector<float>() == first);
  CHECK(kernels() > before);
}

TEST_CASE("Gradients of operands that were converted, and are not saved, are those of the conversion") {
  Tensor x = rand({1 << 20}).requires_grad_(), y = rand({3}, f64).requires_grad_();
  std::vector<Tensor> found = grad((concat({x, y}, 0) * 3).sum(), {x, y});
  CHECK((found[0].dtype() == f32 && found[1].dtype() == f64));
  CHECK((found[0] == 3).all().item<bool>());
  CHECK((found[1] == 3).all().item<bool>());
}

TEST_CASE("Numbers and tensors of one type share the kernel") {
  Tensor x = rand({4, 6}).wait(), k = full({}, 0.375).wait();
  Tensor sum = (x - k).wait();
  const uint64_t before = kernels();
  CHECK(inferencesOf([&] { return x - 0.375; }) == 1);
  CHECK(kernels() == before);
  CHECK(allclose(x - 0.375, sum, 0, 0));
}

TEST_CASE("Recorded gradients infer the call no more") {
  Tensor x = rand({4, 6}), w = rand({6});
  x.requires_grad_();
  w.requires_grad_();
  auto second = [&] {
    Tensor g = grad(matmul(tanh(x), w).sum(), {x}, {}, {.create_graph = true})[0];
    return grad((g * g).sum(), {w})[0];
  };
  Tensor first = second().wait();
  CHECK(inferencesOf(second) <= 6); // zeros and ones that the tape creates
  CHECK(allclose(second(), first, 0, 0));
}

TEST_CASE("Recorded gradients of a selection fit each of its sizes") {
  Tensor x = arange(6).to(f32).wait();
  x.requires_grad_();
  for (double least : {3.5, 1.5, 4.5}) {
    Tensor chosen = masked_select(x, x.detach() > least);
    Tensor g = grad((chosen * chosen * chosen).sum(), {x}, {}, {.create_graph = true})[0];
    Tensor twice = grad(g.sum(), {x})[0];
    for (int i = 0; i < 6; ++i) {
      CHECK(g[i].item() == (i > least ? 3 * i * i : 0));
      CHECK(twice[i].item() == (i > least ? 6 * i : 0));
    }
  }
}

TEST_CASE("A repeated product gets a kernel for its own sizes, with the same bits") {
  Tensor x = randn({1, 13, 17, 19}).wait(), filters = randn({21, 13, 1, 1}).wait(), bias = randn({21}).wait();
  auto call = [&] { return conv(x, filters, bias); };
  Tensor first = call().wait();
  const uint64_t before = kernels();
  for (int i = 0; i < 60; ++i)
    CHECK(std::ranges::equal(call().bytes(), first.bytes()));
  CHECK(kernels() == before + 1);
  auto sum = [&] { return x + bias.reshape({21, 1, 1}).sum(); };
  sum().wait();
  const uint64_t withSum = kernels();
  for (int i = 0; i < 60; ++i)
    sum().wait();
  CHECK(kernels() == withSum); // not a product
}
