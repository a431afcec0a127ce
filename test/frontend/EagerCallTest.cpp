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

TEST_CASE("Calls that have no kernel for all sizes are found out once") {
  // The size of the result is a sum of sizes: each pair has its own kernel.
  auto call = [](int64_t n) {
    Tensor x = ones({n, 4}).wait(), y = ones({2, 4}).wait();
    return [x, y] { return concat({x, y}, 0); };
  };
  (void)inferencesOf(call(3));
  const uint64_t before = kernels();
  CHECK(inferencesOf(call(5)) <= 2); // its types, the op in the graph
  CHECK(kernels() == before + 1);
  CHECK(inferencesOf(call(5)) == 0);
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
