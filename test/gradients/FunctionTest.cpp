// The documented behaviour of grad() and detach().
#include "test/frontend/Check.h"

namespace {

const TensorSpec rows{f32, {Dim("n"), 3}};

/// Returns the gradient of function(x) with respect to x.
template <class F> Tensor gradientAt(F &&function, const Tensor &x) {
  Graph g = trace([&](const Tensor &input) { return grad(function(input), {input}); }, {x.spec()});
  return g.run({x})[0];
}

} // namespace

TEST_CASE("an MLP with cross-entropy has the gradients that one writes by hand") {
  manual_seed(3);
  const Dim batch("batch");
  std::vector<TensorSpec> specs{{f32, {batch, 5}}, {i64, {batch}}, {f32, {5, 7}}, {f32, {7}}, {f32, {7, 3}}};
  auto hidden = [](const std::vector<Tensor> &in) { return matmul(in[0], in[2]) + in[3]; };
  Graph automatic = trace(
      [&](const std::vector<Tensor> &in) {
        Tensor logits = matmul(relu(hidden(in)), in[4]);
        Tensor loss = -gather(log_softmax(logits), unsqueeze(in[1], {1}), 1).mean();
        std::vector<Tensor> results = grad(loss, {in[2], in[3], in[4]});
        results.insert(results.begin(), loss);
        return results;
      },
      specs);
  Graph byHand = trace(
      [&](const std::vector<Tensor> &in) {
        Tensor h = hidden(in), logits = matmul(relu(h), in[4]);
        Tensor isTarget = (unsqueeze(in[1], {1}) == iota({3}, i64)).to(f32);
        Tensor loss = -(log_softmax(logits) * isTarget).sum(1).mean();
        Tensor g = (softmax(logits) - isTarget) * ones_like(isTarget).mean(0) / ones_like(isTarget).sum(0);
        Tensor back = where(h > 0, matmul(g, in[4].t()), 0.0);
        return std::vector<Tensor>{loss, matmul(in[0].t(), back), back.sum(0), matmul(relu(h).t(), g)};
      },
      specs);
  CHECK(str(automatic.outputs()[1].spec) == "f32[5, 7]");
  for (int size : {1, 4, 33}) {
    std::vector<Tensor> in{randn({size, 5}), randint(0, 3, {size}), randn({5, 7}), randn({7}), randn({7, 3})};
    std::vector<Tensor> got = automatic.run(in), want = byHand.run(in);
    for (size_t i = 0; i < want.size(); ++i) {
      CHECK(want[i].abs().max().item() > 1e-3);
      CHECK(largestDifference(got[i], want[i]) < 1e-5);
    }
  }
}

TEST_CASE("gradients of a module's parameters, which a trace captures") {
  manual_seed(4);
  auto layer = nn::Linear(3, 2);
  Graph g =
      trace([&](const Tensor &x) { return grad((layer(x) * layer(x)).sum(), {layer.weight, layer.bias, x}); }, {rows});
  Tensor x = randn({4, 3});
  std::vector<Tensor> gradients = g.run({x});
  Tensor y = layer(x) * 2;
  CHECK(largestDifference(gradients[0], matmul(y.t(), x)) < 1e-5);
  CHECK(largestDifference(gradients[1], y.sum(0)) < 1e-5);
  CHECK(largestDifference(gradients[2], matmul(y, layer.weight)) < 1e-5);
}

TEST_CASE("a jitted training step") {
  auto step = jit([](const Tensor &w, const Tensor &x, const Tensor &rate) {
    Tensor loss = pow(matmul(x, w) - 1, 2).mean();
    return std::make_pair(w - rate * grad(loss, {w})[0], loss);
  });
  manual_seed(5);
  Tensor w = randn({3}), x = randn({8, 3});
  double first = 0, last = 0;
  for (int i = 0; i < 50; ++i) {
    auto [next, loss] = step(w, x, 0.1);
    first = i == 0 ? loss.item() : first;
    last = loss.item();
    w = next;
  }
  CHECK(last < first / 2);
  CHECK(step.traces() == 1);
}

TEST_CASE("gradients of gradients") {
  auto cubed = [](const Tensor &x) { return grad((x * x * x).sum(), {x})[0].sum(); };
  CHECK(floats(gradientAt(cubed, tensor({1.0, -2.0}))) == std::vector<float>{6, -12});
}

TEST_CASE("values on the way, sums over several ways, and what y does not depend on") {
  Graph g = trace(
      [](const Tensor &x, const Tensor &unused) {
        Tensor h = x * 2.0, y = (h * h + x).sum();
        return grad(y, {x, h, unused, y});
      },
      {rows, {f32, {Dim("k")}}});
  std::vector<Tensor> y = g.run({tensor({{1.0, 2.0, 3.0}}), tensor({5.0, 5.0})});
  CHECK(floats(y[0]) == std::vector<float>{9, 17, 25});
  CHECK(floats(y[1]) == std::vector<float>{4, 8, 12});
  CHECK(floats(y[2]) == std::vector<float>{0, 0});
  CHECK(y[3].item() == 1);
}

TEST_CASE("detach stops gradients, integers and comparisons do not carry any") {
  Tensor x = tensor({1.0, -3.0});
  CHECK(floats(gradientAt([](const Tensor &x) { return (detach(x) * x).sum(); }, x)) == floats(x));
  CHECK(floats(gradientAt([](const Tensor &x) { return (x.to(i32).to(f32) + floor(x)).sum(); }, x)) ==
        std::vector<float>{0, 0});
  auto looped = [](const Tensor &x) {
    auto step = [](const std::vector<Tensor> &s, const std::vector<Tensor> &e) {
      return ScanResult{{s[0] + e[0] * detach(e[0])}, {}};
    };
    return scan(step, {Tensor(0.0f)}, {x}).states[0];
  };
  CHECK(floats(gradientAt(looped, x)) == floats(x));
  CHECK(floats(detach(x)) == floats(x)); // outside of a trace
}

TEST_CASE("where there is no derivative, the result is PyTorch's") {
  Tensor zero = tensor({0.0});
  auto at0 = [&](auto function) { return gradientAt([&](const Tensor &x) { return function(x).sum(); }, zero).item(); };
  CHECK(at0([](const Tensor &x) { return relu(x); }) == 0);
  CHECK(at0([](const Tensor &x) { return abs(x); }) == 0);
  CHECK(at0([](const Tensor &x) { return maximum(x, 0.0); }) == 0.5);
  CHECK(at0([](const Tensor &x) { return clamp(x, 0.0, 1.0); }) == 1);
  CHECK(at0([](const Tensor &x) { return pow(x, 2); }) == 0);
  Tensor ties = gradientAt([](const Tensor &x) { return x.max(); }, tensor({1.0, 2.0, 2.0, 0.0}));
  CHECK(floats(ties) == std::vector<float>{0, 0.5, 0.5, 0});
  Tensor first = gradientAt([](const Tensor &x) { return max_pool(x, {3}).sum(); }, ones({1, 1, 3}));
  CHECK(floats(first) == std::vector<float>{1, 0, 0});
}

TEST_CASE("gradients of 16-bit floats and of mixed types") {
  Graph g =
      trace([](const Tensor &a, const Tensor &b) { return grad((a * b).sum(), {a, b}); }, {{f16, {2}}, {f32, {2}}});
  CHECK(str(g.outputs()[0].spec) == "f16[2]");
  std::vector<Tensor> y = g.run({tensor({1.0, 2.0}, f16), tensor({3.0, 4.0})});
  CHECK(floats(y[0]) == std::vector<float>{3, 4});
  CHECK(floats(y[1]) == std::vector<float>{1, 2});
}

TEST_CASE("what cannot be differentiated is one clear error") {
  auto traced = [](auto body) { trace([&](const Tensor &x) { return body(x), x; }, {rows}); };
  CHECK_ERROR(grad(tensor(1.0), {tensor(1.0)}), "requires_grad_");
  CHECK_ERROR(traced([](const Tensor &x) { grad(x * 2.0, {x}); }), "f32[n, 3]", "sum it first");
  CHECK_ERROR(traced([](const Tensor &x) { grad(x * 2.0, {x}, ones({3})); }), "f32[3]", "one shape");
  CHECK_ERROR(traced([](const Tensor &x) { grad(x.sum(), {x.to(i32)}); }), "i32[n, 3]", "floats");
  CHECK_ERROR(traced([](const Tensor &x) { grad(x.to(i32).sum(), {x}); }), "i64[]", "floats");
}

TEST_CASE("gradients within a step of a loop") {
  Graph g = trace(
      [](const Tensor &xs) {
        auto step = [](const std::vector<Tensor> &s, const std::vector<Tensor> &e) {
          return ScanResult{{s[0] - 0.1 * grad(pow(s[0] - e[0], 2).sum(), {s[0]})[0]}, {}};
        };
        return scan(step, {zeros({3})}, {xs}).states[0];
      },
      {rows});
  CHECK(largestDifference(g.run({ones({2, 3})})[0], full({3}, 0.36)) < 1e-6);
}

TEST_CASE("the gradient of a matrix that a batch of products shares is one product") {
  Dim batch("batch");
  auto gradients = [](const Tensor &x, const Tensor &w) { return grad((matmul(x, w) * 0.5).sum(), {x, w}); };
  Graph g = trace(gradients, {{f32, {batch, 5, 4}}, {f32, {4, 3}}});
  CHECK(contains(g.str(), "(tensor<4x?xf32, [\"batch*5\"]>, tensor<?x3xf32, [\"batch*5\"]>) -> tensor<4x3xf32>"));
  Tensor x = randn({6, 5, 4}), w = randn({4, 3}), ones = full({30, 3}, 0.5);
  std::vector<Tensor> got = g.run({x, w});
  CHECK(largestDifference(got[1], matmul(x.reshape({30, 4}).t(), ones)) < 1e-5);
  CHECK(largestDifference(got[0].reshape({30, 4}), matmul(ones, w.t())) < 1e-5);
  Tensor leaf = w.detach();
  leaf.requires_grad_();
  (matmul(x, leaf) * 0.5).sum().backward(); // eager calls follow the same rule
  CHECK(largestDifference(leaf.grad(), got[1]) == 0);
}

TEST_CASE("NoGrad in a function means the same when it is traced") {
  auto partly = [](const Tensor &x) {
    Tensor factor;
    {
      NoGrad off;
      factor = x * x;
    }
    return (x * factor).sum();
  };
  auto slope = [&](const Tensor &x) { return value_and_grad(partly)(x).second[0]; };
  const Tensor x = tensor({1.0f, -2.0f, 3.0f}), expected = tensor({1.0f, 4.0f, 9.0f}); // x * x, not 3 * x * x
  CHECK(largestDifference(slope(x), expected) == 0);
  CHECK(largestDifference(jit(slope)(x), expected) == 0);
  CHECK(largestDifference(trace(slope, {{f32, {Dim("n")}}}).run({x})[0], expected) == 0);
  CHECK(largestDifference(vmap(grad(partly))(x.reshape({3, 1})), expected.reshape({3, 1})) == 0);
  {
    NoGrad off; // of the caller
    CHECK(largestDifference(trace(slope, {{f32, {3}}}).run({x})[0], expected) == 0);
    CHECK(largestDifference(jit(slope)(x), expected) == 0);
  }

  auto inLoop = [](const Tensor &x) {
    auto turn = [](const std::vector<Tensor> &states, const std::vector<Tensor> &) {
      Tensor factor;
      {
        NoGrad off;
        factor = states[0] + 1.0;
      }
      return ScanResult{{states[0] * factor}, {}};
    };
    return scan(turn, {x}, {zeros({2})}).states[0].sum();
  };
  auto slopeOfLoop = [&](const Tensor &x) { return value_and_grad(inLoop)(x).second[0]; };
  const Tensor slopes = (x + 1) * (x * (x + 1) + 1); // both factors are constants
  CHECK(largestDifference(slopeOfLoop(x), slopes) < 1e-5);
  CHECK(largestDifference(jit(slopeOfLoop)(x), slopes) < 1e-5);
  CHECK(largestDifference(trace(slopeOfLoop, {{f32, {3}}}).run({x})[0], slopes) < 1e-5);
}
