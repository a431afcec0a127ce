// Sorting, and results whose size depends on the data: eager, traced, compiled, jitted.
#include "test/frontend/Check.h"
#include <cmath>

namespace {

Tensor halves(const Tensor &x) { return masked_select(x, x > 0) * 0.5; }

} // namespace

TEST_CASE("eager results have the shape that turned out") {
  Tensor x = tensor({{0, 3, 0}, {5, 0, -1}});
  Tensor places = nonzero(x);
  CHECK(str(places.spec()) == "i64[3, 2]");
  CHECK(ints(places) == std::vector<int64_t>{0, 1, 1, 0, 1, 2});
  CHECK(ints(x.nonzero()) == ints(places));
  CHECK(str(nonzero(zeros({4})).spec()) == "i64[0, 1]");
  CHECK(ints(masked_select(x, x > 0)) == std::vector<int64_t>{3, 5});
  CHECK(ints(masked_select(x, tensor({true, false, true}))) == std::vector<int64_t>{0, 0, 5, -1});
  CHECK(ints(prefix(arange(10), (arange(10) < 4).sum())) == std::vector<int64_t>{0, 1, 2, 3});
  for (int64_t n : {0, 1, 7, 100, 3}) { // all sizes share the kernel of the first call
    Tensor y = nonzero(arange(n) % 3);
    CHECK(y.shape()[0] == Dim(n - (n + 2) / 3));
  }
  CHECK_ERROR(prefix(arange(3), tensor(4)), "prefix_0", "4", "[0, 3]");
  CHECK_ERROR(prefix(arange(3), tensor(-1)), "-1");
  CHECK_ERROR(prefix(arange(3), tensor({1, 2})), "single integer");
  CHECK_ERROR(masked_select(x, x), "must be bool");
}

TEST_CASE("a traced size of its own is a symbol, and later ops compute with it") {
  Dim n("n");
  Graph graph = trace(
      [](const Tensor &x) {
        Tensor kept = masked_select(x, x > 0);
        return std::vector<Tensor>{kept * 2, kept.sum(), zeros({kept.size(0), 2}) + 1, concat({kept, x}),
                                   masked_select(kept, kept > 1)};
      },
      {TensorSpec{f32, {n}}});
  CHECK(str(graph.outputs()[0].spec) == "f32[nonzero_0]");
  CHECK(str(graph.outputs()[4].spec) == "f32[nonzero_1]");
  Artifact artifact = compile(graph);
  CHECK(str(artifact.outputs()[3].spec) == "f32[n + nonzero_0]");
  for (int64_t size : {0, 1, 8, 100, 8}) {
    Tensor x = randn({size});
    std::vector<float> kept, large;
    float sum = 0;
    for (float v : floats(x))
      if (v > 0) {
        kept.push_back(2 * v);
        sum += v;
        if (v > 1)
          large.push_back(v);
      }
    std::vector<Tensor> y = artifact.run(std::vector<Tensor>{x});
    CHECK(floats(y[0]) == kept);
    CHECK(std::fabs(y[1].item() - sum) < 1e-4);
    CHECK(floats(y[2]) == std::vector<float>(2 * kept.size(), 1));
    CHECK(y[3].shape()[0] == Dim(int64_t(kept.size()) + size));
    CHECK(floats(y[4]) == large);
  }
}

TEST_CASE("a size whose result nobody uses is computed for those that need it") {
  Graph graph =
      trace([](const Tensor &x) { return full({nonzero(x).size(0)}, 3, f32); }, {TensorSpec{f32, {Dim("n")}}});
  CHECK(floats(graph.run({tensor({1, 0, 2}, f32)})[0]) == std::vector<float>{3, 3});
  CHECK(floats(graph.run({zeros({5})})[0]).empty());
}

TEST_CASE("what one mask chooses is equally long") {
  Graph graph =
      trace([](const Tensor &x, const Tensor &y) { return masked_select(x, x > 0) + masked_select(y, x > 0); },
            {TensorSpec{f32, {Dim("n")}}, TensorSpec{f32, {Dim("n")}}});
  CHECK(str(graph.outputs()[0].spec) == "f32[nonzero_0]");
  CHECK(floats(graph.run({tensor({1, -1, 2}, f32), tensor({5, 6, 7}, f32)})[0]) == std::vector<float>{6, 9});
  CHECK_ERROR(trace([](const Tensor &x) { return masked_select(x, x > 0) + masked_select(x, x > 1); },
                    {TensorSpec{f32, {Dim("n")}}}),
              "nonzero_0", "nonzero_1");
}

TEST_CASE("symbols of inputs keep their names") {
  Graph graph = trace([](const Tensor &x) { return nonzero(x); }, {TensorSpec{f32, {Dim("nonzero_0")}}});
  CHECK(str(graph.outputs()[0].spec) == "i64[nonzero_1, 1]");
  CHECK(ints(graph.run({tensor({0, 1, 1}, f32)})[0]) == std::vector<int64_t>{1, 2});
}

TEST_CASE("a count may come from outside, and is checked") {
  Graph graph = trace([](const Tensor &x, const Tensor &count) { return prefix(x, count) + 1; },
                      {TensorSpec{f32, {Dim("n"), 2}}, TensorSpec{i64, {}}});
  Tensor x = zeros({3, 2});
  for (int64_t count : {0, 2, 3})
    CHECK(str(graph.run({x, tensor(count)})[0].spec()) == "f32[" + std::to_string(count) + ", 2]");
  std::string message = messageOf([&] { graph.run({x, tensor(4)}); });
  INFO(message);
  CHECK(contains(message, "the size prefix_0 is computed as 4, but must be in [0, 3]"));
  CHECK(contains(message, "SelectionTest.cpp:"));
}

TEST_CASE("jitted functions may return them") {
  auto fast = jit(halves);
  for (int64_t n : {6, 60, 6}) {
    Tensor x = randn({n});
    CHECK(floats(fast(x)) == floats(halves(x)));
  }
}

TEST_CASE("sort and topk") {
  Tensor x = tensor({{3.0, 1.0, 2.0, 1.0}, {0.0, -1.0, -0.0, 5.0}});
  SortResult up = sort(x), down = sort(x, 1, true), columns = sort(x, 0);
  CHECK(floats(up.values) == std::vector<float>{1, 1, 2, 3, -1, 0, 0, 5});
  CHECK(ints(up.indices) == std::vector<int64_t>{1, 3, 2, 0, 1, 0, 2, 3});
  CHECK(ints(down.indices) == std::vector<int64_t>{0, 2, 1, 3, 3, 0, 2, 1});
  CHECK(ints(columns.indices) == std::vector<int64_t>{1, 1, 1, 0, 0, 0, 0, 1});
  Tensor odd = tensor({1.0, NAN, -INFINITY, NAN, INFINITY});
  CHECK(ints(sort(odd).indices) == std::vector<int64_t>{2, 0, 4, 1, 3});
  CHECK(ints(sort(odd, 0, true).indices) == std::vector<int64_t>{1, 3, 4, 0, 2});
  SortResult top = topk(x, 2), least = topk(x, 1, 0, false);
  CHECK(floats(top.values) == std::vector<float>{3, 2, 5, 0});
  CHECK(ints(top.indices) == std::vector<int64_t>{0, 2, 3, 0});
  CHECK(str(least.values.spec()) == "f32[1, 4]");
  CHECK_ERROR(topk(x, 5), "k = 5 is out of range for f32[2, 4]");
  CHECK_ERROR(sort(x, 2), "axis 2 is out of range");

  Tensor many = randn({100000});
  std::vector<float> expected = floats(many);
  std::stable_sort(expected.begin(), expected.end());
  CHECK(floats(sort(many).values) == expected);
}

TEST_CASE("topk of long rows selects what a sort puts first") {
  manual_seed(4);
  auto check = [](const Tensor &x, int64_t k, int64_t axis, bool largest) {
    SortResult top = topk(x, k, axis, largest), all = sort(x, axis, largest);
    auto first = [&](const Tensor &sorted) { return sorted.slice(axis, 0, k); };
    CHECK(std::ranges::equal(top.values.bytes(), first(all.values).bytes()));
    CHECK(ints(top.indices) == ints(first(all.indices)));
  };
  Tensor rows = randn({3, 4099}), columns = randn({2500, 3}), ties = randint(0, 5, {9000});
  for (bool largest : {true, false}) {
    check(rows, 100, 1, largest);
    check(rows, 1, -1, largest);
    check(columns, 7, 0, largest);
    check(ties, 700, 0, largest);
    check(where(randn({5000}) > 0, tensor(NAN), randn({5000})), 30, 0, largest);
    check(randn({2, 2048}).to(f64), 256, 1, largest);
  }
  Tensor x = randn({5000}).requires_grad_();
  topk(x, 3).values.sum().backward();
  CHECK(x.grad().sum().item<float>() == 3);
}

TEST_CASE("running products") {
  Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 0.5, 2.0}});
  CHECK(floats(cumprod(x, 1)) == std::vector<float>{1, 2, 6, 4, 2, 4});
  CHECK(floats(cumprod(x, 0, true)) == std::vector<float>{1, 1, 1, 1, 2, 3});
  CHECK(floats(cumprod(x, 1, false, true)) == std::vector<float>{6, 6, 3, 4, 1, 2});
}

TEST_CASE("boxes that overlap a better one are dropped") {
  Tensor boxes =
      tensor({{0.0, 0.0, 10.0, 10.0}, {1.0, 1.0, 11.0, 11.0}, {20.0, 20.0, 30.0, 30.0}, {0.0, 0.0, 10.0, 9.0}});
  Tensor scores = tensor({0.5, 0.9, 0.1, 0.8});
  CHECK(ints(nms(boxes, scores, 0.5)) == std::vector<int64_t>{1, 2});
  CHECK(ints(nms(boxes, scores, 0.7)) == std::vector<int64_t>{1, 3, 2});
  CHECK(ints(nms(boxes, scores, 1)) == std::vector<int64_t>{1, 3, 0, 2});
  CHECK(ints(nms(zeros({0, 4}), zeros({0}), 0.5)).empty());
  Tensor two = stack({boxes, boxes}), perClass = tensor({{{0.5, 0.9, 0.1, 0.8}}, {{0.9, 0.1, 0.3, 0.2}}});
  CHECK(ints(non_max_suppression(two, perClass, 0.5, 0.15, 2)) == std::vector<int64_t>{1, -1, 0, 2});
  CHECK_ERROR(nms(boxes, zeros({2, 4}), 0.5), "boxes [n, 4] and scores [n]");
}
