// Rematerialization: the same gradients in less memory.
#include "burin/nn/losses.h"
#include "test/frontend/Check.h"
#include <burin/training/autocast.h>

namespace {

struct Block : nn::Module {
  nn::Linear up = register_module("up", nn::Linear(8, 32)), down = register_module("down", nn::Linear(32, 8));
  nn::BatchNorm1d norm = register_module("norm", nn::BatchNorm1d(8));
  nn::Dropout dropout = register_module("dropout", nn::Dropout(0.3));
  Tensor operator()(const Tensor &x) { return x + dropout(down(gelu(up(norm(x))))); }
};

/// Returns the losses of training steps, and the final parameters and buffers.
std::vector<Tensor> train(bool isRemat, bool isJitted) {
  manual_seed(9);
  Block first, second;
  nn::Linear head(8, 3);
  std::vector<Parameter> parameters = first.parameters();
  for (const auto &more : {second.parameters(), head.parameters()})
    parameters.insert(parameters.end(), more.begin(), more.end());
  optim::SGD optimizer(parameters, {.lr = 0.1});
  auto step = [&](const Tensor &x, const Tensor &y) {
    Tensor hidden = isRemat ? remat(second)(remat(first)(x)) : second(first(x));
    Tensor loss = cross_entropy(head(hidden), y);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return loss.detach();
  };
  auto jitted = jit(step);
  std::vector<Tensor> results;
  for (int i = 0; i < 4; ++i) {
    Tensor x = randn({6, 8}), y = arange(6) % 3;
    results.push_back(isJitted ? jitted(x, y) : step(x, y));
  }
  for (nn::Module *module : {(nn::Module *)&first, (nn::Module *)&second, (nn::Module *)&head})
    for (const auto &[name, value] : module->state_dict())
      results.push_back(value);
  return results;
}

void checkEqual(const std::vector<Tensor> &got, const std::vector<Tensor> &wanted) {
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i, str(wanted[i].spec()));
    CHECK(allclose(got[i], wanted[i], 1e-5, 1e-6));
  }
}

} // namespace

TEST_CASE("remat trains to the same weights, statistics and random numbers, eagerly") {
  checkEqual(train(true, false), train(false, false));
}
TEST_CASE("remat trains to the same weights, statistics and random numbers, jitted") {
  checkEqual(train(true, true), train(false, true));
}

TEST_CASE("remat calls the function again, once for each pass back") {
  int calls = 0;
  auto f = remat([&](const Tensor &x, const Tensor &y) {
    ++calls;
    return std::make_pair(exp(x) * y, x + y);
  });
  Tensor x = tensor({0.5, 1.0}).requires_grad_(), y = tensor({2.0, 3.0});
  auto [a, b] = f(x, y);
  CHECK(calls == 1);
  (a.sum() + (b * b).sum()).backward();
  CHECK(calls == 2);
  CHECK(largestDifference(x.grad(), (exp(x.detach()) * y + 2 * (x.detach() + y))) < 1e-5);
  CHECK_FALSE(y.requires_grad());
  f(y, y);
  CHECK(calls == 3);
  CHECK_FALSE(f(y, y).first.requires_grad());
}

TEST_CASE("gradients of gradients, hooks and captured tensors with remat") {
  Tensor w = tensor({1.0, 2.0}, f64).requires_grad_(), x = tensor({0.3, 0.7}, f64).requires_grad_();
  int hooked = 0;
  x.register_hook([&](const Tensor &g) { return ++hooked, g; });
  auto f = remat([&](const Tensor &in) { return remat([&](const Tensor &t) { return sin(t * w); })(in) * w; });
  Tensor g = grad(f(x).sum(), {x}, std::nullopt, {.create_graph = true})[0];
  CHECK(hooked == 1);
  Tensor wx = w.detach() * x.detach(), w0 = w.detach();
  CHECK(largestDifference(g.detach(), cos(wx) * w0 * w0) < 1e-12);
  CHECK(largestDifference(grad(g.sum(), {x})[0], -sin(wx) * w0 * w0 * w0) < 1e-12);
  f(x).sum().backward();
  CHECK(largestDifference(w.grad(), cos(wx) * x.detach() * w0 + sin(wx)) < 1e-12);
  CHECK_ERROR(
      [&] {
        Tensor y = f(x).sum();
        y.backward();
        y.backward();
      }(),
      "retain_graph");
}

TEST_CASE("remat in a trace: the gradient computes the values again") {
  auto layers = [](const Tensor &x, bool isRemat) {
    auto block = [](const Tensor &t) { return sigmoid(matmul(tanh(matmul(t, t.t())), t)); };
    Tensor y = x;
    for (int i = 0; i < 3; ++i)
      y = isRemat ? remat(block)(y) : block(y);
    return y;
  };
  auto gradientOf = [&](bool isRemat) {
    return trace([&](const Tensor &x) { return grad(layers(x, isRemat).sum(), {x})[0]; }, {{f64, {Dim("n"), 5}}});
  };
  Graph plain = gradientOf(false), again = gradientOf(true);
  CHECK(contains(again.str(), "burin.barrier"));
  auto count = [](const std::string &text, const std::string &part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  };
  CHECK(count(again.str(), "burin.tanh") == 2 * count(plain.str(), "burin.tanh"));
  Tensor x = randn({4, 5}, f64) * 0.3;
  CHECK(largestDifference(again.run({x})[0], plain.run({x})[0]) < 1e-12);
  Graph twice = trace([&](const Tensor &in) { return grad(grad(layers(in, true).sum(), {in})[0].sum(), {in})[0]; },
                      {{f64, {4, 5}}});
  Graph wanted = trace([&](const Tensor &in) { return grad(grad(layers(in, false).sum(), {in})[0].sum(), {in})[0]; },
                       {{f64, {4, 5}}});
  CHECK(largestDifference(twice.run({x})[0], wanted.run({x})[0]) < 1e-10);
}

TEST_CASE("remat takes the types of an autocast scope again") {
  Tensor x = randn({3, 4}).requires_grad_(), w = randn({4, 2});
  Tensor y, seen;
  {
    Autocast scope(bf16);
    y = remat([&](const Tensor &in) {
      seen = matmul(in, w);
      return seen * 2;
    })(x);
  }
  y.sum().backward();
  CHECK(seen.dtype() == bf16);
  CHECK(x.grad().dtype() == f32);
}
