// Data-dependent branches and loops: eager, traced, and in gradients.
#include "frontend/trace/Trace.h"
#include "ir/reference/Reference.h"
#include "test/frontend/Check.h"
#include <set>

namespace {

/// Evaluates a graph with the reference interpreter.
std::vector<Tensor> interpret(const Graph &graph, const std::vector<Tensor> &inputs) {
  std::vector<ir::RefTensor> given;
  for (const Tensor &x : inputs) {
    std::vector<int64_t> shape;
    for (const Dim &size : x.spec().shape)
      shape.push_back(size.value());
    auto bytes = x.bytes();
    given.push_back(
        ir::RefTensor::fromBytes(x.dtype(), shape, {reinterpret_cast<const char *>(bytes.data()), bytes.size()}));
  }
  auto results = ir::interpret(*graph.shared()->module, given, {}, {.roundF32 = true});
  REQUIRE(mlir::succeeded(results));
  std::vector<Tensor> list;
  for (const ir::RefTensor &result : *results) {
    std::vector<char> bytes = result.toBytes();
    list.push_back(from_bytes(bytes.data(), {result.dtype, Shape(result.shape.begin(), result.shape.end())}));
  }
  return list;
}

/// Traces a function and evaluates it with the reference interpreter.
template <class F> std::vector<Tensor> interpreted(F &&function, const std::vector<Tensor> &inputs) {
  std::vector<TensorSpec> specs;
  for (const Tensor &x : inputs)
    specs.push_back(x.spec());
  return interpret(trace(function, specs), inputs);
}

/// A function with state, traced once and interpreted. Each call starts from the states that the previous one left.
class Stateful {
public:
  Stateful(std::function<Tensor(const Tensor &)> function, const TensorSpec &input) {
    Trace::Input given{input};
    Trace trace(std::span(&given, 1), {}, {}, {});
    Trace::Recording recording(trace);
    Tensor result = function(trace.inputs()[0]);
    graph.emplace(trace.finish({&result, 1}, {}, {}));
    states = trace.states;
    for (const StateUse &state : states)
      now.push_back(state.cell->value());
  }
  Tensor operator()(const Tensor &x) {
    std::vector<Tensor> inputs{x};
    inputs.insert(inputs.end(), now.begin(), now.end());
    std::vector<Tensor> results = interpret(*graph, inputs);
    for (size_t i = 0; i < states.size(); ++i)
      if (states[i].output)
        now[i] = results[*states[i].output];
    return results[0];
  }

private:
  std::optional<Graph> graph;
  std::vector<StateUse> states;
  std::vector<Tensor> now;
};

/// Checks that the function gives the same results eagerly and in a trace.
template <class F> void checkSame(F &&function, const std::vector<Tensor> &inputs, double tolerance = 0) {
  std::vector<Tensor> leaves;
  for (const Tensor &x : inputs)
    leaves.push_back(isFloat(x.dtype()) ? (x + 0).detach().requires_grad_() : x);
  std::vector<Tensor> eager = detail::erase(function)(leaves, Location::current());
  std::vector<Tensor> traced = interpreted(function, inputs);
  REQUIRE(eager.size() == traced.size());
  for (size_t i = 0; i < eager.size(); ++i) {
    CHECK(eager[i].spec() == traced[i].spec());
    CHECK(largestDifference(eager[i].to(f64), traced[i].to(f64)) <= tolerance);
  }
}

} // namespace

TEST_CASE("cond runs one of two functions") {
  Tensor c = tensor({1.0, 2.0});
  auto f = [&](const Tensor &x) { return cond(x.sum() > 0, [&] { return x * c; }, [&] { return c - x; }); };
  for (const Tensor &x : {tensor({1.0, 5.0}), tensor({-1.0, -5.0}), tensor({NAN, 1.0f})}) {
    INFO(floats(x)[0]);
    CHECK(values<float>(f(x)).size() == 2);
    if (floats(x)[0] == floats(x)[0])
      checkSame(f, {x});
  }
  CHECK(floats(f(tensor({1.0, 5.0}))) == std::vector<float>{1, 10});
  CHECK(floats(f(tensor({-1.0, -5.0}))) == std::vector<float>{2, 7});
  auto [a, b] = cond(
      tensor(true), [] { return std::pair(tensor(1), tensor(2.0)); }, [] { return std::pair(tensor(3), tensor(4.0)); });
  CHECK(a.item() == 1);
  CHECK(b.item() == 2);
}

TEST_CASE("branches nest, and give numbers") {
  auto f = [](const Tensor &x) {
    return cond(
        x > 0, [&] { return cond(x > 10, [&] { return sqrt(x); }, [&] { return x * 2; }); }, [] { return -1.5; });
  };
  for (double x : {-3.0, 4.0, 100.0})
    checkSame(f, {tensor(x)});
  CHECK(f(tensor(4.0)).item() == 8);
  CHECK(f(tensor(-4.0)).item() == -1.5);
}

TEST_CASE("switch_case chooses by number, limited to the branches") {
  auto f = [](const Tensor &i, const Tensor &x) {
    return switch_case(i, [&] { return x + 1; }, [&] { return x * 10; }, [&] { return -x; });
  };
  for (auto [index, expected] : {std::pair(-5, 4.0), {0, 4.0}, {1, 30.0}, {2, -3.0}, {9, -3.0}}) {
    checkSame(f, {tensor(index), tensor(3.0)});
    CHECK(f(tensor(index), tensor(3.0)).item() == expected);
  }
  auto one = [] { return tensor(1); };
  CHECK_ERROR(switch_case(tensor(1.0), one, one), "must be one integer");
  CHECK_ERROR(switch_case(tensor({1, 2}), one), "must be one integer");
}

TEST_CASE("while_loop turns as long as its condition says so") {
  auto collatz = [](const Tensor &n) {
    auto [last, steps] = while_loop([](const Tensor &n, const Tensor &) { return n > 1; },
                                    [](const Tensor &n, const Tensor &steps) {
                                      return std::pair(where(n % 2 == 0, n / 2, 3 * n + 1).to(i64), steps + 1);
                                    },
                                    std::pair(n, tensor(0)));
    return steps;
  };
  for (int n : {1, 6, 27})
    checkSame(collatz, {tensor(n)});
  CHECK(collatz(tensor(27)).item<int64_t>() == 111);
  CHECK(collatz(tensor(1)).item<int64_t>() == 0);

  Tensor target = tensor({2.0, 3.0, 5.0}, f64);
  auto roots = [&](const Tensor &start) { // Newton's method, captured target
    return while_loop([&](const Tensor &x) { return (x * x - target).abs().max() > 1e-9; },
                      [&](const Tensor &x) { return (x + target / x) / 2; }, start);
  };
  checkSame(roots, {ones({3}, f64)}, 1e-12);
  CHECK(largestDifference(roots(ones({3}, f64)), sqrt(target)) < 1e-8);
  auto list = while_loop([](const std::vector<Tensor> &v) { return v[0] < 5; },
                         [](const std::vector<Tensor> &v) { return std::vector{v[0] + 1, v[1] * 2}; },
                         std::vector{tensor(0), tensor(1)});
  CHECK(list[1].item() == 32);
}

TEST_CASE("loops nest in loops and branches") {
  // The sum of i * j over j <= i < n, negated for odd i.
  auto f = [](const Tensor &n) {
    return fori_loop(
        tensor(0), n,
        [](const Tensor &i, const Tensor &sum) {
          Tensor part = while_loop([&](const Tensor &j, const Tensor &) { return j <= i; },
                                   [&](const Tensor &j, const Tensor &s) { return std::pair(j + 1, s + i * j); },
                                   std::pair(tensor(0), tensor(0)))
                            .second;
          return sum + cond(i % 2 == 0, [&] { return part; }, [&] { return -part; });
        },
        tensor(0));
  };
  for (int n : {0, 1, 5, 9}) {
    checkSame(f, {tensor(n)});
    int64_t expected = 0;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j <= i; ++j)
        expected += (i % 2 ? -1 : 1) * i * j;
    CHECK(f(tensor(n)).item<int64_t>() == expected);
  }
}

TEST_CASE("a fori_loop between tensors has a gradient if it has a limit") {
  auto power = [](const Tensor &x, const Tensor &n) {
    return fori_loop(tensor(1), n, [&](const Tensor &i, const Tensor &y) { return y * x + i.to(f32); }, x, 8);
  };
  auto gradient = [&](const Tensor &x, const Tensor &n) { return grad(power(x, n).sum(), {x})[0]; };
  auto compiled = jit(gradient);
  const Tensor x = tensor({0.5f, -1.25f, 2.0f});
  for (int n : {-3, 1, 2, 5, 9}) {
    Tensor leaf = x.detach().requires_grad_();
    Tensor expected = ones({3}), value = x; // the derivative of y * x + i is y + x * y'
    for (int i = 1; i < n; ++i) {
      expected = value + x * expected;
      value = value * x + float(i);
    }
    CHECK(largestDifference(grad(power(leaf, tensor(n)).sum(), {leaf})[0], expected) < 1e-4);
    CHECK(largestDifference(compiled(x, tensor(n)), expected) < 1e-4);
  }
  CHECK(contains(messageOf([&] { power(x, tensor(10)); }), "more iterations than its limit of 8"));
  CHECK_ERROR(compiled(x, tensor(10)).wait(), "more iterations than its limit of 8");
  CHECK(contains(messageOf([] { synchronize(); }), "more iterations")); // which also reports it
  auto unlimited = jit([](const Tensor &x, const Tensor &n) {
    return grad(fori_loop(tensor(0), n, [&](const Tensor &, const Tensor &y) { return y * x; }, x).sum(), {x})[0];
  });
  CHECK(contains(messageOf([&] { unlimited(x, tensor(2)); }), "give it a limit"));
}

TEST_CASE("fori_loop counts") {
  auto f = [](const Tensor &x) {
    return fori_loop(2, 6, [](const Tensor &i, const Tensor &x) { return x * 0.5 + i.to(f32); }, x);
  };
  checkSame(f, {tensor({1.0, -2.0})}, 1e-6);
  CHECK(f(tensor({1.0})).item() == Approx(((((1 * 0.5 + 2) * 0.5 + 3) * 0.5 + 4) * 0.5) + 5));
  auto compiled = jit(f);
  CHECK(largestDifference(compiled(ones({7})), f(ones({7}))) == 0);
  CHECK(fori_loop(3, 3, [](const Tensor &, const Tensor &x) { return x + 1; }, tensor(5)).item() == 5);
  auto bySize = jit(
      [](const Tensor &x) {
        return fori_loop(0, x.size(0), [](const Tensor &i, const Tensor &s) { return s + i; }, tensor(0));
      },
      {.dynamic = {{0, 0}}});
  for (int n : {2, 5, 9})
    CHECK(bySize(ones({n})).item<int64_t>() == n * (n - 1) / 2);
  CHECK(bySize.traces() == 1);
  auto slope = jit([&](const Tensor &x) { return grad(f(x).sum(), {x})[0]; });
  CHECK(largestDifference(slope(ones({3})), full({3}, 0.0625f)) == 0);
}

TEST_CASE("a limited while_loop stops there") {
  auto f = [](const Tensor &x) {
    return while_loop([](const Tensor &x) { return x < 100; }, [](const Tensor &x) { return x * 2; }, x, 4);
  };
  for (double x : {1.0, 30.0, 200.0}) {
    checkSame(f, {tensor(x)});
    checkSame([&](const Tensor &x) { return grad(f(x), {x})[0]; }, {tensor(x)});
  }
  CHECK(f(tensor(1.0)).item() == 16);
  CHECK(f(tensor(30.0)).item() == 120);
  auto slope = [&](const Tensor &x) { return grad(f(x), {x})[0]; };
  CHECK(interpreted(slope, {tensor(30.0)})[0].item() == 4);
  CHECK(interpreted(slope, {tensor(200.0)})[0].item() == 1);
}

TEST_CASE("the gradient of a branch is that of what has run") {
  Tensor w = tensor({3.0, 4.0});
  auto f = [&](const Tensor &x, const Tensor &w) {
    auto y = cond(x.sum() > 0, [&] { return exp(x) * w; }, [&] { return x * x; });
    std::vector<Tensor> g = grad((y * y).sum(), {x, w});
    return std::vector{y, g[0], g[1]};
  };
  for (const Tensor &x : {tensor({0.5, 0.25}), tensor({-0.5, -2.0})})
    checkSame(f, {x, w}, 1e-4);
  // The branch that does not run must not divide by 0.
  auto safe = [](const Tensor &x) {
    return grad(cond(x != 0, [&] { return sin(x) / x; }, [&] { return ones_like(x); }), {x})[0];
  };
  CHECK(interpreted(safe, {tensor(0.0)})[0].item() == 0);
}

TEST_CASE("parameters set in branches and loops are state") {
  struct Net {
    Parameter hits = Parameter::state(tensor(0)), last = Parameter::state(tensor(0.0)),
              scale = Parameter::state(tensor(2.0));
    Tensor operator()(const Tensor &x) const {
      Parameter hits = this->hits, last = this->last;
      Tensor early = hits.value();
      Tensor y = cond(
          x > 0,
          [&] {
            hits.set(hits.value() + 1);
            return while_loop([&](const Tensor &y) { return y < last.value() + 10; },
                              [&](const Tensor &y) {
                                last.set(last.value() + 1);
                                hits.set(hits.value() + 100);
                                return y * scale.value() + 1;
                              },
                              x);
          },
          [&] { return x * scale.value(); });
      last.set(last.value() + y);
      return y + early.to(f32) + hits.value().to(f32) * 1000;
    }
  };
  Net eager, traced;
  Stateful run([&](const Tensor &x) { return traced(x); }, {f32, {}});
  for (double x : {3.0, -1.0, 0.5, 40.0, -2.0}) {
    INFO(x);
    CHECK(run(tensor(x)).item() == eager(tensor(x)).item());
  }
  CHECK(eager.hits->item<int64_t>() > 200);
}

TEST_CASE("random numbers in branches and loops are drawn anew") {
  Generator eager(5), traced(5);
  auto sum = [](const Generator &g, const Tensor &x) {
    auto draw = [&] { return g.rand({3}).sum(); };
    Tensor y = while_loop([](const Tensor &s) { return s < 4; }, [&](const Tensor &s) { return s + draw(); }, x);
    return cond(y > 5, [&] { return y + draw(); }, [&] { return y; });
  };
  Stateful run([&](const Tensor &x) { return sum(traced, x); }, {f32, {}});
  std::set<double> seen;
  for (int call = 0; call < 5; ++call) {
    double y = run(tensor(0.0)).item();
    CHECK(y == Approx(sum(eager, tensor(0.0)).item()).epsilon(1e-6));
    seen.insert(y);
  }
  CHECK(seen.size() == 5);
}

TEST_CASE("a branch that throws leaves the trace as it was") {
  Parameter state = Parameter::state(tensor(1.0));
  Stateful run(
      [&](const Tensor &x) {
        (void)messageOf([&] {
          cond(
              x > 0,
              [&] {
                state.set(state.value() * 100);
                return x.reshape({7});
              },
              [&] { return x; });
        });
        state.set(state.value() + 1);
        return state.value() + x;
      },
      {f32, {}});
  CHECK(run(tensor(0.0)).item() == 2);
  CHECK(run(tensor(0.0)).item() == 3);
}

TEST_CASE("what branches and loops refuse") {
  Tensor x = tensor({1.0, 2.0});
  auto traced = [](auto f) { return trace(f, {{f32, {2}}}); };
  auto same = [](const Tensor &x) { return [x] { return x; }; };
  CHECK_ERROR(cond(x, same(x), same(x)), "must be one bool", "any() or all()");
  CHECK_ERROR(cond(x > 0, same(x), same(x)), "must be one bool");
  CHECK_ERROR(traced([&](const Tensor &x) { return cond(x.sum() > 0, same(x), same(x.sum())); }), "result 0",
              "f32[2] of one branch and f32[] of the other");
  CHECK_ERROR(traced([&](const Tensor &x) { return cond(x.sum() > 0, same(x), same(x.to(i32))); }), "i32[2]");
  auto grow = [](const Tensor &x) { return concat({x, x}, 0); };
  auto isSmall = [](const Tensor &x) { return x.sum() < 10; };
  CHECK_ERROR(traced([&](const Tensor &x) { return while_loop(isSmall, grow, x); }), "f32[2] before the body",
              "f32[4] after it");
  CHECK_ERROR(while_loop(isSmall, grow, x), "f32[2] before the body");
  CHECK_ERROR(traced([&](const Tensor &x) {
                return while_loop([](const Tensor &x) { return x < 10; }, [](const Tensor &x) { return x * 2; }, x);
              }),
              "must be one bool");
  CHECK_ERROR(traced([&](const Tensor &x) {
                Tensor y = while_loop(isSmall, [](const Tensor &x) { return x * 2; }, x);
                return grad(y.sum(), {x})[0];
              }),
              "give it a limit");
  Tensor kept;
  CHECK_ERROR(traced([&](const Tensor &x) {
                cond(x.sum() > 0, [&] { return kept = x * 2; }, [&] { return x; });
                return kept + 1;
              }),
              "belongs to a branch");
  CHECK_ERROR(while_loop(isSmall, [](const Tensor &x) { return x * 2; }, x, -1), "is negative");
  CHECK_ERROR(jit([&](const Tensor &x) {
                return while_loop([](const Tensor &x) { return (x + randn({2})).sum() < 3; },
                                  [](const Tensor &x) { return x; }, x);
              })(x),
              "do that in the body");
}
