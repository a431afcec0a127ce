// The documented behaviour of vmap, eager and jitted.
#include "test/frontend/Check.h"
#include <burin/burin.h>
#include <catch2/catch.hpp>

using namespace burin;

namespace {

using Tensors = std::vector<Tensor>;

/// Applies f to each example in a loop.
template <class F> Tensor looped(F f, const Tensors &xs) {
  Tensors results;
  for (int64_t i = 0; i < xs[0].size(0).value(); ++i) {
    Tensors one;
    for (const Tensor &x : xs)
      one.push_back(select(x, 0, i));
    results.push_back(f(one));
  }
  return stack(results);
}

void checkSame(const Tensor &got, const Tensor &wanted, double rtol = 0) {
  INFO(str(got.spec()) << " for " << str(wanted.spec()));
  REQUIRE(got.shape() == wanted.shape());
  REQUIRE(got.dtype() == wanted.dtype());
  std::vector<double> a = got.to_vector<double>(), b = wanted.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK((a[i] == b[i] || a[i] == Approx(b[i]).epsilon(rtol).margin(rtol)));
  }
}

Tensor some(const Shape &shape, int64_t seed) { return random_normal(shape, seed, f32); }

} // namespace

TEST_CASE("vmap calls a function of one example for all of them") {
  Tensor w = some({4, 2}, 1), x = some({3, 4}, 2);
  auto f = [&](const Tensor &x) { return tanh(matmul(x, w) * 2.0 + 1.0); };
  Tensor wanted = looped([&](const Tensors &one) { return f(one[0]); }, {x});
  checkSame(vmap(f)(x), wanted);
  checkSame(jit(vmap(f))(x), wanted, 1e-6);
  checkSame(vmap(jit(f))(x), wanted, 1e-6);
  checkSame(vmap(f, 1)(x.t()), wanted);
  checkSame(vmap(f, -1, 1)(x.t()), wanted.t());
  checkSame(vmap([&](const Tensors &list) { return Tensors{f(list[0])}; })(Tensors{x})[0], wanted);
}

TEST_CASE("vmap takes tensors that all examples share, and repeats results that do") {
  Tensor x = some({3, 4}, 1), y = some({4}, 2);
  auto [sum, same, number] =
      vmap([](const Tensor &x, const Tensor &y, const Tensor &z) { return std::tuple{x + y * z, y + 1.0, x.sum()}; },
           {0, None, None}, {1, 0, -1})(x, y, 2.0);
  checkSame(sum, (x + y * 2).t());
  checkSame(same, broadcast_to(y + 1, {3, 4}));
  checkSame(number, x.sum(1));
  auto [a, b] = vmap([&](const Tensor &x) { return std::pair{x * 2, y * 2}; }, 0, {0, None})(x);
  checkSame(a, x * 2);
  checkSame(b, y * 2);
}

TEST_CASE("vmap nests") {
  Tensor x = some({3, 4}, 1), y = some({5, 4}, 2);
  auto dot = [](const Tensor &x, const Tensor &y) { return (x * y).sum(); };
  auto table = [&](const Tensor &x, const Tensor &y) {
    return vmap([&](const Tensor &row) { return vmap(dot, {None, 0})(row, y); })(x);
  };
  checkSame(table(x, y), matmul(x, y.t()), 1e-6);
  checkSame(jit(table)(x, y), matmul(x, y.t()), 1e-6);
  checkSame(vmap(vmap(dot, {None, 0}), {0, None})(x, y), matmul(x, y.t()), 1e-6);
}

TEST_CASE("vmap of no example and of one") {
  Tensor w = some({4, 2}, 1);
  auto f = [&](const Tensor &x) { return softmax(matmul(x, w)).sum(-1); };
  CHECK(vmap(f)(zeros({0, 3, 4})).shape() == Shape{0, 3});
  Tensor x = some({1, 3, 4}, 2);
  checkSame(vmap(f)(x), unsqueeze(f(squeeze(x, {0})), {0}));
}

TEST_CASE("vmap over a symbolic number of examples") {
  Tensor w = some({4, 4}, 1);
  auto f = [&](const Tensor &x, const Tensor &m) { return matmul(matmul(x, w), m) + x.sum(); };
  Graph graph = trace(vmap(f), {TensorSpec{f32, {Dim("n"), 2, 4}}, TensorSpec{f32, {Dim("n"), 4, 3}}});
  for (int64_t n : {0, 1, 3}) {
    Tensor x = some({n, 2, 4}, 2), m = some({n, 4, 3}, 3);
    checkSame(graph.run({x, m})[0], matmul(matmul(x, w), m) + x.sum({1, 2}, true), 1e-5);
  }
}

TEST_CASE("gradients of each sample") {
  Tensor w = some({4}, 1), xs = some({3, 4}, 2), ys = some({3}, 3);
  auto loss = [](const Tensor &w, const Tensor &x, const Tensor &y) { return pow(tanh((w * x).sum()) - y, 2); };
  Tensor t = tanh(matmul(xs, w)), wanted = unsqueeze(2 * (t - ys) * (1 - t * t), {1}) * xs;
  checkSame(vmap(grad(loss), {None, 0, 0})(w, xs, ys), wanted, 1e-5);
  checkSame(jit(vmap(grad(loss), {None, 0, 0}))(w, xs, ys), wanted, 1e-5);
  auto captured = [&](const Tensor &x, const Tensor &y) { return burin::grad(loss(w, x, y), {w})[0]; };
  checkSame(vmap(captured)(xs, ys), wanted, 1e-5);
  auto [values, gradients] = vmap(value_and_grad(loss), {None, 0, 0})(w, xs, ys);
  checkSame(values, pow(t - ys, 2), 1e-5);
  checkSame(gradients[0], wanted, 1e-5);
  CHECK(gradients.size() == 3);
}

TEST_CASE("gradients flow back through vmap") {
  Tensor w = some({4, 2}, 1).requires_grad_(), x = some({3, 4}, 2).requires_grad_();
  auto f = [&](const Tensor &x) { return tanh(matmul(x, w)).sum(); };
  Tensor wanted = tanh(matmul(x, w)).sum();
  Tensors one = burin::grad(wanted, {w, x}), two = burin::grad(vmap(f)(x).sum(), {w, x});
  checkSame(two[0], one[0], 1e-6);
  checkSame(two[1], one[1], 1e-6);
  auto step = [&](const Tensor &w, const Tensor &x) {
    return burin::grad(vmap([&](const Tensor &x) { return tanh(matmul(x, w)).sum(); })(x).sum(), {w, x});
  };
  Tensors three = jit(step)(w, x);
  checkSame(three[0], one[0], 1e-6);
  checkSame(three[1], one[1], 1e-6);
}

TEST_CASE("a module in vmap: parameters are shared") {
  manual_seed(3);
  auto net = nn::Sequential(nn::Linear(4, 8), nn::ReLU(), nn::LayerNorm(8), nn::Linear(8, 2));
  Tensor x = some({5, 4}, 1);
  checkSame(vmap(net)(x), net(x), 1e-6);
  std::vector<Parameter> parameters = net.parameters();
  auto gradients = [&](const Tensor &x) {
    Tensors values(parameters.begin(), parameters.end());
    return burin::grad(net(x).sum(), values);
  };
  Tensors all = vmap(gradients)(x), jitted = jit(vmap(gradients))(x);
  for (int64_t i = 0; i < 5; ++i) {
    Tensors values(parameters.begin(), parameters.end()), one = burin::grad(net(select(x, 0, i)).sum(), values);
    for (size_t p = 0; p < one.size(); ++p) {
      checkSame(select(all[p], 0, i), one[p], 1e-5);
      checkSame(select(jitted[p], 0, i), one[p], 1e-5);
    }
  }
}

TEST_CASE("Jacobians and Hessians") {
  Tensor a = some({3, 4}, 1), x = some({4}, 2);
  auto f = [&](const Tensor &x) { return tanh(matmul(a, x)); };
  Tensor t = f(x), wanted = unsqueeze(1 - t * t, {1}) * a;
  checkSame(jacrev(f)(x), wanted, 1e-5);
  checkSame(jacfwd(f)(x), wanted, 1e-5);
  checkSame(jit(jacrev(f))(x), wanted, 1e-5);
  checkSame(jit(jacfwd(f))(x), wanted, 1e-5);
  auto g = [&](const Tensor &x) { return tanh(matmul(a, x)).sum(); };
  Tensor second = matmul(a.t(), unsqueeze(-2 * t * (1 - t * t), {1}) * a);
  checkSame(hessian(g)(x), second, 1e-4);
  checkSame(jit(hessian(g))(x), second, 1e-4);
  // Per-example results.
  Tensor xs = some({2, 4}, 3);
  Tensor each = vmap(hessian(g))(xs);
  checkSame(select(each, 0, 1), hessian(g)(select(xs, 0, 1)), 1e-4);
  // Different ranks, and a second argument.
  auto h = [](const Tensor &s, const Tensor &m) { return matmul(m, m) * s; };
  Tensor m = some({2, 2}, 4);
  CHECK(jacrev(h, 1)(2.0f, m).shape() == Shape{2, 2, 2, 2});
  checkSame(jacfwd(h, 1)(2.0f, m), jacrev(h, 1)(2.0f, m), 1e-5);
}

TEST_CASE("directions in vmap") {
  Tensor a = some({3, 4}, 1), xs = some({5, 4}, 2), vs = some({5, 4}, 3);
  auto f = [&](const Tensors &x) { return Tensors{tanh(matmul(a, x[0]))}; };
  auto g = [&](const Tensors &x) { return Tensors{tanh(matmul(a, x[0])).sum()}; };
  auto directional = [&](const Tensor &x, const Tensor &v) { return jvp(f, {x}, {v}).second[0]; };
  auto curved = [&](const Tensor &x, const Tensor &v) { return hvp(g, {x}, {v})[0]; };
  checkSame(vmap(directional)(xs, vs), looped([&](const Tensors &l) { return directional(l[0], l[1]); }, {xs, vs}),
            1e-5);
  checkSame(vmap(curved)(xs, vs), looped([&](const Tensors &l) { return curved(l[0], l[1]); }, {xs, vs}), 1e-4);
  checkSame(jit(vmap(curved))(xs, vs), vmap(curved)(xs, vs), 1e-4);
}

TEST_CASE("functions with gradients of their own keep them in vmap") {
  auto twice = custom_vjp([](const Tensors &x) { return Tensors{x[0] * x[1]}; },
                          [](const Tensors &x, const Tensors &, const Tensors &g) {
                            // Scales the gradient by 10, so that a missing custom rule shows.
                            return Tensors{g[0] * x[1] * 10, (g[0] * x[0]).sum()};
                          });
  Tensor x = some({3, 4}, 1).requires_grad_(), s = Tensor(2.0f).to(f32).requires_grad_();
  auto f = [&](const Tensor &x) { return twice({x, s})[0]; };
  Tensors got = burin::grad(vmap(f)(x).sum(), {x, s});
  checkSame(got[0], full({3, 4}, 20.0));
  checkSame(got[1], x.sum(), 1e-5);
  Tensors jitted = jit([&](const Tensor &x, const Tensor &s) {
    return burin::grad(vmap([&](const Tensor &x) { return twice({x, s})[0]; })(x).sum(), {x, s});
  })(x, s);
  checkSame(jitted[0], full({3, 4}, 20.0));
  checkSame(jitted[1], x.sum(), 1e-5);
  checkSame(vmap(grad([&](const Tensor &x) { return twice({x, s})[0].sum(); }))(x), full({3, 4}, 20.0));
}

TEST_CASE("random numbers in vmap") {
  Tensor x = some({3, 4}, 1);
  auto noisy = [](const Tensor &x) { return x + rand({4}); };
  CHECK_THROWS_WITH(vmap(noisy)(x), Catch::Contains("VmapTest.cpp") &&
                                        Catch::Contains("vmap: a random number is drawn in a function of one example"));
  manual_seed(7);
  Tensor drawn = rand({4});
  Tensor after = rand({1});
  manual_seed(7);
  checkSame(vmap(noisy, 0, 0, Randomness::Same)(x), x + drawn);
  checkSame(rand({1}), after); // the whole batch took one draw from the generator
  manual_seed(7);
  Tensor own = rand({3, 4});
  manual_seed(7);
  checkSame(vmap(noisy, 0, 0, Randomness::Different)(x), x + own);
  manual_seed(7);
  checkSame(jit(vmap(noisy, 0, 0, Randomness::Different))(x), x + own);
  // Per-example keys are ordinary values.
  Tensor keys = tensor({3, 1, 4});
  auto ofKey = [](const Tensor &key) { return random_normal({5}, 0, f32, key); };
  checkSame(vmap(ofKey)(keys), looped([&](const Tensors &l) { return ofKey(l[0]); }, {keys}));
  checkSame(jit(vmap(ofKey))(keys), vmap(ofKey)(keys), 1e-6);
}

TEST_CASE("what vmap refuses") {
  Tensor x = some({3, 4}, 1);
  auto same = [](const Tensor &x) { return x; };
  auto sum = [](const Tensor &x, const Tensor &y) { return x + y; };
  CHECK_ERROR(vmap(same, 2)(x), "vmap: in_axes: there is no dimension 2 in input 0, f32[3, 4]");
  CHECK_ERROR(vmap(same, None)(x), "vmap: no input has a dimension of examples");
  CHECK_ERROR(vmap(sum)(x, some({2, 4}, 1)), "vmap: the inputs have different numbers of examples: 3 in input 0");
  CHECK_ERROR(vmap(sum, {0})(x, x), "vmap: in_axes has 1 entries, but the function has 2 arguments");
  CHECK_ERROR(vmap(same, 0, {0, 0})(x), "vmap: out_axes has 2 entries, but the function has 1 results");
  CHECK_ERROR(vmap(same, 0, 2)(x), "vmap: out_axes: there is no dimension 2 in result 0");
  CHECK_ERROR(vmap(same, 0, None)(x), "vmap: result 0, f32[3, 4], differs between examples");
  CHECK_ERROR(vmap([](const Tensor &x) { return nonzero(x > 0); })(x),
              "nonzero: the size of its result depends on the data");
  CHECK_ERROR(vmap([](const Tensor &x) { return Tensor(x.item<float>()); })(some({3}, 1)), "item");
  nn::BatchNorm2d norm(2);
  CHECK_ERROR(vmap(norm)(some({3, 1, 2, 4, 4}, 1)), "vmap: the function sets a parameter or buffer");
  norm.eval();
  CHECK_NOTHROW(vmap(norm)(some({3, 1, 2, 4, 4}, 1)));
  Tensor leaked;
  vmap([&](const Tensor &x) { return leaked = x * 2; })(x);
  CHECK_ERROR(leaked + 1, "trace");
}
