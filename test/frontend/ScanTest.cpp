// Loops with state: eager, traced with fixed and symbolic lengths, and saved, compared with unrolled loops.
#include "test/frontend/Check.h"
#include "test/onnx/Folder.h"

namespace {

/// A GRU-like cell with captured weights.
struct Cell {
  Tensor weight = randn({3, 4}) * 0.5, recurrent = randn({4, 4}) * 0.5, bias = randn({4});

  Tensor next(const Tensor &state, const Tensor &x) const {
    Tensor gate = sigmoid(matmul(state, recurrent) + bias);
    return gate * state + (1.0 - gate) * tanh(matmul(x, weight));
  }
  ScanStep step() const {
    return [this](const std::vector<Tensor> &states, const std::vector<Tensor> &x) {
      Tensor h = next(states[0], x[0]);
      return ScanResult{{h, states[1] + h.sum()}, {h, h.mean({0}) * 2.0}};
    };
  }
};

std::vector<Tensor> list(const ScanResult &scanned) {
  std::vector<Tensor> all = scanned.states;
  all.insert(all.end(), scanned.outputs.begin(), scanned.outputs.end());
  return all;
}

/// The expected result of scan, unrolled.
std::vector<Tensor> writtenOut(const Cell &cell, const Tensor &initial, const Tensor &x, bool reverse) {
  Tensor h = initial, sum = Tensor(0.0).to(f32);
  int64_t length = int64_t(x.size(0));
  std::vector<Tensor> states(size_t(length), h), means = states;
  for (int64_t turn = 0; turn < length; ++turn) {
    int64_t at = reverse ? length - 1 - turn : turn;
    h = cell.next(h, x[at]);
    sum = sum + h.sum();
    states[size_t(at)] = h;
    means[size_t(at)] = h.mean({0}) * 2.0;
  }
  return {h, sum, stack(states), stack(means)};
}

void checkSame(const std::vector<Tensor> &got, const std::vector<Tensor> &want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i].shape() == want[i].shape());
    CHECK(largestDifference(got[i], want[i]) < 1e-4);
  }
}

} // namespace

TEST_CASE("a scan gives what its steps written out give, in both directions and for every length") {
  manual_seed(11);
  Cell cell;
  for (bool reverse : {false, true}) {
    auto loop = [&](const Tensor &h, const Tensor &x) {
      return list(scan(cell.step(), {h, Tensor(0.0).to(f32)}, {x}, reverse));
    };
    Graph graph = trace(loop, {{f32, {Dim("batch"), 4}}, {f32, {Dim("length"), Dim("batch"), 3}}});
    CHECK(str(graph.outputs()[2].spec) == "f32[length, batch, 4]");
    for (int length : {1, 2, 7, 50}) {
      Tensor h = randn({2, 4}), x = randn({length, 2, 3});
      std::vector<Tensor> want = writtenOut(cell, h, x, reverse);
      checkSame(loop(h, x), want);
      checkSame(graph.run({h, x}), want);
    }
    Tensor h = randn({5, 4});
    for (const std::vector<Tensor> &got : {loop(h, zeros({0, 5, 3})), graph.run({h, zeros({0, 5, 3})})}) {
      CHECK(largestDifference(got[0], h) == 0); // no iteration, so the state is unchanged
      CHECK(got[1].item() == 0);
      CHECK(str(got[2].spec()) == "f32[0, 5, 4]");
      CHECK(str(got[3].spec()) == "f32[0, 4]");
    }
  }
}

TEST_CASE("a loop is one function of the graph, survives saving, and uses what surrounds it") {
  manual_seed(12);
  Tensor table = randn({6, 4}), weight = randn({300, 300});
  auto f = [&](const Tensor &x, const Tensor &scale) {
    Tensor scaled = table * scale, first = x[0];
    auto step = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &xs) {
      Tensor next = tanh(matmul(states[0], scaled) + states[0].sum() + xs[1].to(f32));
      return ScanResult{{concat({next, xs[0]})}, {matmul(tile(states[0], {50}), weight).mean(), first, xs[0] * 2.0}};
    };
    return list(scan(step, {ones({6})}, {x, iota({x.size(0)}, i64)}));
  };
  Graph graph = trace(f, {{f32, {Dim("n"), 2}}, {f32, {}}});
  CHECK(contains(graph.str(), "func.func private @loop0"));
  burin::test::Folder folder;
  std::string path = folder / "loop.burin";
  graph.save(path);
  Graph loaded = Graph::load(path);
  CHECK(loaded.outputs() == graph.outputs());
  for (int length : {1, 9}) {
    Tensor x = randn({length, 2}), scale = tensor(0.5).to(f32);
    std::vector<Tensor> want = f(x, scale);
    checkSame(graph.run({x, scale}), want);
    checkSame(loaded.run({x, scale}), want);
  }
}

TEST_CASE("states may change places, stay, or be results of other loops") {
  auto f = [](const Tensor &a, const Tensor &b, const Tensor &x) {
    auto swap = [](const std::vector<Tensor> &s, const std::vector<Tensor> &xs) {
      return ScanResult{{s[1], s[0], s[2], s[1]}, {xs[0], s[2], s[1]}};
    };
    ScanResult first = scan(swap, {a, b, a, a}, {x});
    ScanResult second = scan(swap, first.states, {x, first.outputs[2]}, true);
    std::vector<Tensor> all = list(first);
    for (const Tensor &t : list(second))
      all.push_back(t);
    return all;
  };
  Graph graph = trace(f, {{f32, {2}}, {f32, {2}}, {f32, {Dim("n"), 3}}});
  for (int length : {0, 1, 2, 3}) {
    Tensor a = randn({2}), b = randn({2}), x = randn({length, 3});
    std::vector<Tensor> got = graph.run({a, b, x}), want = f(a, b, x);
    REQUIRE(got.size() == want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].shape() == want[i].shape());
      CHECK(got[i].to_vector<float>() == want[i].to_vector<float>());
    }
  }
}

TEST_CASE("a loop may be as long as the data says") {
  auto positive = [](const Tensor &x) {
    Tensor kept = masked_select(x, x > 0.0);
    auto step = [](const std::vector<Tensor> &s, const std::vector<Tensor> &e) {
      return ScanResult{{s[0] * 0.5 + e[0], s[1] + 1}, {s[0], s[1]}};
    };
    return list(scan(step, {zeros({}), iota({1}, i64)}, {kept}));
  };
  Graph graph = trace(positive, {{f32, {Dim("n")}}});
  for (const Tensor &x : {tensor({-1, 4, -3, 2, 8}, f32), tensor({3, -1}, f32), tensor({-1, -2, -3}, f32)}) {
    std::vector<Tensor> got = graph.run({x}), want = positive(x);
    REQUIRE(got.size() == want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].shape() == want[i].shape());
      CHECK(got[i].to_vector<float>() == want[i].to_vector<float>());
    }
  }
}

TEST_CASE("a loop within a loop may be of any length, and has a gradient") {
  auto rows = [](const Tensor &x) { // a loop of cumulative sums
    auto inner = [](const std::vector<Tensor> &s, const std::vector<Tensor> &e) {
      return ScanResult{{s[0] + e[0]}, {s[0] + e[0]}};
    };
    auto outer = [&](const std::vector<Tensor> &s, const std::vector<Tensor> &e) {
      ScanResult row = scan(inner, {s[0]}, {e[0]}, true);
      return ScanResult{row.states, row.outputs};
    };
    return list(scan(outer, {Tensor(0.0).to(f32)}, {x}));
  };
  Graph graph = trace(rows, {{f32, {Dim("n"), 3}}});
  Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}, f32);
  for (const std::vector<Tensor> &got : {rows(x), graph.run({x})}) {
    CHECK(got[0].item() == 21);
    CHECK(floats(got[1]) == std::vector<float>{6, 5, 3, 21, 17, 12});
  }
  Graph open = trace(rows, {{f32, {Dim("n"), Dim("m")}}});
  CHECK(floats(open.run({x})[1]) == std::vector<float>{6, 5, 3, 21, 17, 12});
  CHECK(floats(compile(open).run({x})[1]) == std::vector<float>{6, 5, 3, 21, 17, 12});
  auto slope = [&](const Tensor &x) { return grad(rows(x * x)[1].sum(), {x})[0]; };
  Tensor want = slope(x.requires_grad_());
  CHECK(floats(jit(slope)(x)) == floats(want));
  CHECK(floats(trace(slope, {{f32, {Dim("n"), Dim("m")}}}).run({x})[0]) == floats(want));
  CHECK(floats(compile(trace(slope, {{f32, {Dim("n"), Dim("m")}}})).run({x})[0]) == floats(want));
}

TEST_CASE("the step of a scan may set parameters and draw random numbers") {
  struct Net : nn::Module {
    Parameter count = register_buffer("count", zeros({}, i64)), weight = register_parameter("weight", ones({3}));
    Generator generator{3};
    ScanResult run(const Tensor &x) {
      auto step = [&](const std::vector<Tensor> &s, const std::vector<Tensor> &e) {
        Tensor mask = (generator.uniform({3}, 0, 1) < 0.5).to(f32);
        count.set(count + 1);
        Tensor y = tanh(s[0] * mask + e[0] * weight + count.value().to(f32));
        return ScanResult{{y}, {y * mask}};
      };
      return scan(step, {zeros({3})}, {x}, true);
    }
    std::vector<Tensor> operator()(const Tensor &x) {
      ScanResult all = run(x);
      Tensor loss = all.outputs[0].sum() + all.states[0].sum();
      return {loss, grad(loss, {weight.value()})[0]};
    }
  };
  Net eager, jitted, traced;
  auto f = jit([&](const Tensor &x) { return jitted(x); });
  Artifact artifact = compile(trace([&](const Tensor &x) { return traced(x); }, {{f32, {Dim("n"), 3}}}));
  for (int length : {4, 1, 7, 4}) {
    Tensor x = randn({length, 3});
    std::vector<Tensor> want = eager(x);
    for (const std::vector<Tensor> &got : {f(x), artifact.run({x})})
      for (size_t i = 0; i < 2; ++i)
        CHECK(floats(got[i]) == floats(want[i]));
  }
  CHECK(eager.count.value().item<int64_t>() == 16);
  CHECK(jitted.count.value().item<int64_t>() == 16);
}

TEST_CASE("loops that make no sense are refused where they are written") {
  auto same = [](const std::vector<Tensor> &s, const std::vector<Tensor> &) { return ScanResult{s, {}}; };
  CHECK_ERROR(scan(same, {ones({2})}, {}), "no tensor to go through");
  CHECK_ERROR(scan(same, {ones({2})}, {Tensor(1.0).to(f32)}), "a scalar has no elements");
  CHECK_ERROR(scan(same, {ones({2})}, {ones({2}), ones({3})}), "differ in length");
  auto messageFrom = [&](auto step) {
    auto loop = [&](const Tensor &x) { return scan(step, {x}, {ones({3})}).states[0]; };
    std::string eager = messageOf([&] { loop(ones({2})); }), traced = messageOf([&] { trace(loop, {{f32, {2}}}); });
    CHECK((eager.empty() || eager == traced));
    return traced;
  };
  auto twice = [](const std::vector<Tensor> &s, const std::vector<Tensor> &) {
    return ScanResult{{concat({s[0], s[0]})}, {}};
  };
  CHECK(contains(messageFrom(twice), "state 0 is f32[2] before the step and f32[4] after it"));
  auto none = [](const std::vector<Tensor> &, const std::vector<Tensor> &) { return ScanResult{}; };
  CHECK(contains(messageFrom(none), "returns 0 states, but it is given 1"));
  const int here = __LINE__;
  auto nonzeros = [](const std::vector<Tensor> &s, const std::vector<Tensor> &) {
    return ScanResult{{s[0] + nonzero(s[0]).sum()}, {}};
  };
  CHECK(contains(messageFrom(nonzeros),
                 atLine(__FILE__, here + 2) + "nonzero: the size of its result depends on the data"));
  Tensor leaked;
  CHECK_ERROR(trace(
                  [&](const Tensor &x) {
                    scan([&](const std::vector<Tensor> &s,
                             const std::vector<Tensor> &) { return leaked = s[0] + 1.0, ScanResult{s, {}}; },
                         {x}, {ones({3})});
                    return leaked * 2.0;
                  },
                  {{f32, {2}}}),
              "to one example of vmap, or to one step of a loop, which is over");
}

TEST_CASE("map stacks what a function makes of each element") {
  Tensor x = randn({5, 3}), y = randn({5});
  auto scaled = [](const Tensor &row, const Tensor &factor) { return std::pair(row * factor, row.sum()); };
  auto all = [&](const Tensor &rows, const Tensor &factors) {
    auto [products, sums] = map(scaled, rows, factors);
    return std::vector{products, sums};
  };
  std::vector<Tensor> expected = {x * unsqueeze(y, {1}), x.sum(1)}, eager = all(x, y);
  Graph graph = trace(all, {TensorSpec{f32, {Dim("n"), 3}}, TensorSpec{f32, {Dim("n")}}});
  std::vector<Tensor> traced = graph.run({x, y});
  for (size_t i = 0; i < 2; ++i) {
    CHECK(allclose(eager[i], expected[i]));
    CHECK(allclose(traced[i], expected[i]));
  }
  CHECK(graph.run({zeros({0, 3}), zeros({0})})[1].shape() == Shape{0});
  CHECK(map([](const Tensor &row) { return row[0]; }, x).shape() == Shape{5});
  CHECK_ERROR(map(scaled, x, randn({4})), "ScanTest.cpp");
  CHECK_ERROR(map([](const Tensor &element) { return element; }, tensor(1.0)), "ScanTest.cpp");
}

TEST_CASE("map makes a gradient for each sample, and has one") {
  Tensor w = randn({3}), x = randn({6, 3}), y = randn({6});
  auto loss = [](const Tensor &w, const Tensor &x, const Tensor &y) {
    Tensor difference = (x * w).sum() - y;
    return difference * difference;
  };
  auto perSample = [&](const Tensor &w, const Tensor &xs, const Tensor &ys) {
    return map([&](const Tensor &x, const Tensor &y) { return grad(loss(w, x, y), {w})[0]; }, xs, ys);
  };
  Tensor expected = unsqueeze((x * w).sum(1) - y, {1}) * 2 * x;
  const std::vector<TensorSpec> specs = {{f32, {3}}, {f32, {Dim("n"), 3}}, {f32, {Dim("n")}}};
  CHECK(allclose(trace(perSample, specs).run({w, x, y})[0], expected, 1e-4, 1e-5));
  auto total = [&](const Tensor &w, const Tensor &xs, const Tensor &ys) {
    return grad(map([&](const Tensor &x, const Tensor &y) { return loss(w, x, y); }, xs, ys).sum(), {w})[0];
  };
  CHECK(allclose(trace(total, specs).run({w, x, y})[0], expected.sum(0), 1e-4, 1e-5));
}
