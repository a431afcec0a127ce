// Compiled code on the tape: a backward pass that reaches it throws, and nothing else notices.
#include "test/frontend/Check.h"

namespace {

Tensor leaf(Tensor x) { return x.requires_grad_(); }

Tensor twice(const Tensor &x) { return 2 * x; }

constexpr const char *kJit = "jitted functions are not differentiated from outside";
constexpr const char *kRun = "graphs and artifacts are not differentiated from outside";

struct Net : nn::Module {
  nn::Linear first = register_module("first", nn::Linear(3, 2));
  Tensor operator()(const Tensor &x) const { return tanh(first(x)); }
};

} // namespace

TEST_CASE("a backward pass that reaches a jitted function throws") {
  auto f = jit(twice);
  Tensor x = leaf(ones({3}));
  for (int call = 0; call < 2; ++call) { // compiled, and known
    Tensor y = f(x), sum = (f(x) + x).sum(), direct = f(x).sum();
    CHECK(y.requires_grad());
    CHECK_FALSE(y.is_leaf());
    CHECK(floats(y) == std::vector<float>{2, 2, 2});
    CHECK(contains(messageOf([&] { y.sum().backward(); }), kJit));
    CHECK(contains(messageOf([&] { sum.backward(); }), kJit));
    CHECK(contains(messageOf([&] { grad(direct, {x}); }), kJit));
    CHECK(contains(messageOf([&] { value_and_grad([&](const Tensor &v) { return f(v).sum(); })(x); }), kJit));
  }
  CHECK_ERROR(f(x).sum().backward(), kJit, "value_and_grad", "jit the whole loss", "NoGrad", "detach()");
  CHECK_ERROR(f(x * 3).sum().backward(), kJit); // recorded, but no leaf
}

TEST_CASE("a backward pass that does not reach a jitted function works") {
  auto f = jit(twice);
  Tensor x = leaf(ones({3})), w = leaf(ones({3}));
  Tensor y = f(x), both = (y * 5 + w).sum();
  CHECK(floats(grad(both, {w})[0]) == std::vector<float>{1, 1, 1});
  CHECK(floats(grad(y.sum(), {y})[0]) == std::vector<float>{1, 1, 1});
  (y.detach() * w).sum().backward();
  CHECK(floats(w.grad()) == std::vector<float>{2, 2, 2});
  (f(x.detach()) * x).sum().backward();
  CHECK(floats(x.grad()) == std::vector<float>{2, 2, 2});
  CHECK_FALSE(f(ones({3})).requires_grad());
  Tensor constant;
  {
    NoGrad off;
    constant = f(x);
  }
  CHECK_FALSE(constant.requires_grad());
  CHECK_FALSE(jit([](const Tensor &v) { return v > 0; })(x).requires_grad());
}

TEST_CASE("each result of a jitted function depends on what it was computed from") {
  auto f = jit([](const Tensor &a, const Tensor &b) {
    Tensor silent;
    {
      NoGrad off;
      silent = a * b;
    }
    Tensor chosen = cond(b.sum() > 0, [&] { return b * 2; }, [&] { return b; });
    return std::vector{a * 2, chosen, a.detach() + b.detach(), silent, (a * b).to(i32), grad((a * b).sum(), {a})[0]};
  });
  Tensor a = leaf(ones({2})), b = leaf(ones({2}));
  auto recorded = [&](const Tensor &u, const Tensor &v) {
    std::string flags;
    for (const Tensor &result : f(u, v))
      flags += result.requires_grad() ? '1' : '0';
    return flags;
  };
  {
    NoGrad off; // compiled here
    CHECK(recorded(a, b) == "000000");
  }
  CHECK(recorded(a, b) == "110000");
  CHECK(recorded(a, b.detach()) == "100000");
  CHECK(recorded(a.detach(), b) == "010000");
  auto curved =
      jit([](const Tensor &v) { return grad((v * v * v).sum(), {v}, std::nullopt, {.create_graph = true})[0]; });
  CHECK(contains(messageOf([&] { curved(a).sum().backward(); }), kJit));
  auto sum = jit([](const Tensor &v) {
    NoGrad off;
    return fori_loop(0, 3, [&](const Tensor &, const Tensor &s) { return s + v; }, zeros({2}));
  });
  CHECK_FALSE(sum(a).requires_grad());
}

TEST_CASE("parameters and tensors that a jitted function captures count as its arguments") {
  Net net;
  auto f = jit([&](const Tensor &x) { return net(x); });
  Tensor x = ones({1, 3});
  CHECK(contains(messageOf([&] { f(x).sum().backward(); }), kJit));
  nn::Linear head(2, 1);
  CHECK(contains(messageOf([&] { head(f(x)).sum().backward(); }), kJit));
  head(f(x).detach()).sum().backward();
  CHECK(head.weight->grad().defined());
  for (const auto &[name, parameter] : net.named_parameters())
    CHECK_FALSE(parameter->grad().defined());
  net.requires_grad_(false);
  CHECK_FALSE(f(x).requires_grad());
  net.requires_grad_(true);
  CHECK(f(x).requires_grad());

  Tensor w = leaf(ones({3}));
  auto scaled = jit([&](const Tensor &v) { return v * w; });
  CHECK(contains(messageOf([&] { scaled(x).sum().backward(); }), kJit));
  auto looped =
      jit([&](const Tensor &v) { return fori_loop(0, 2, [&](const Tensor &, const Tensor &s) { return s * w; }, v); });
  CHECK(contains(messageOf([&] { looped(ones({3})).sum().backward(); }), kJit));
}

TEST_CASE("a jitted training step differentiates inside") {
  manual_seed(1);
  Net net;
  optim::SGD optimizer(net.parameters(), {.lr = 0.01});
  auto step = jit([&](const Tensor &x) {
    optimizer.zero_grad();
    Tensor loss = net(x).pow(2).sum();
    loss.backward();
    optimizer.step();
    return loss;
  });
  auto gradients = jit([&](const Tensor &x) {
    auto [value, slopes] = value_and_grad([&](const Tensor &v) { return net(v).sum(); })(x);
    return std::make_pair(value, slopes[0]);
  });
  Tensor x = ones({4, 3});
  double before = step(x).item(), after = 0;
  for (int i = 0; i < 5; ++i)
    after = step(x).item();
  CHECK(after < before);
  CHECK(contains(messageOf([&] { step(x).backward(); }), kJit));
  Tensor v = leaf(ones({4, 3}));
  auto [value, slope] = gradients(v);
  CHECK_FALSE(value.requires_grad());
  CHECK_FALSE(slope.requires_grad());
  (slope * v).sum().backward();
  CHECK(largestDifference(v.grad(), slope) == 0);
}

TEST_CASE("a backward pass that reaches a graph or an artifact throws") {
  Graph graph = trace(twice, {TensorSpec{f32, {3}}});
  Artifact artifact = compile(graph);
  Tensor x = leaf(ones({3}));
  CHECK_ERROR((artifact(x) + x).sum().backward(), kRun, "value_and_grad", "NoGrad", "detach()");
  CHECK_ERROR(artifact.run({x})[0].sum().backward(), kRun);
  CHECK_ERROR(graph.run({x})[0].sum().backward(), kRun);
  CHECK(floats(artifact(x)) == std::vector<float>{2, 2, 2});
  CHECK_FALSE(artifact(x.detach()).requires_grad());
  (artifact(x).detach() * x).sum().backward();
  CHECK(floats(x.grad()) == std::vector<float>{2, 2, 2});
  NoGrad off;
  CHECK_FALSE(artifact(x).requires_grad());
}
