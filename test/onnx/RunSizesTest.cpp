// Sizes that are known only when a model runs: those that depend on data, and those that may be 1 and broadcast.
#include "burin/tensor/math/fft.h"
#include "test/onnx/Load.h"

using namespace burin::test;

namespace {

Tensor list(const std::vector<int64_t> &values) { return from_vector(values); }
Tensor rows(int64_t n, int64_t m) { return reshape(arange(n * m), {n, m}).to(f32); }

/// A model of one node whose operands behind the first are integers that callers give.
Graph nodeOf(const Bytes &op, const std::vector<Bytes> &sizes, const std::vector<Bytes> &counts,
             std::vector<Bytes> attributes = {}) {
  std::vector<Bytes> inputs, names;
  if (!sizes.empty()) {
    inputs.push_back(floatInput("x", sizes));
    names.push_back("x");
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    names.push_back("t" + std::to_string(i));
    inputs.push_back(
        valueInfo(names.back(), kInt64, counts[i].empty() ? std::vector<Bytes>() : std::vector{counts[i]}));
  }
  return loadModel(graphOf({{op, names, {"y"}, std::move(attributes), "node"}}, inputs)).graph;
}

} // namespace

// ---- sizes that are 1 in a run

TEST_CASE("Sizes of different names broadcast where one is 1 in a run") {
  Graph sum = loadModel(graphOf({{"Add", {"a", "b"}, {"s"}}, {"Mul", {"s", "a"}, {"p"}}, {"Sub", {"p", "b"}, {"y"}}},
                                {floatInput("a", {"n", "2", "m"}), floatInput("b", {"k", "1", "l"})}))
                  .graph;
  for (auto [n, m, k, l] :
       {std::array{3, 4, 3, 4}, {3, 4, 1, 4}, {1, 4, 3, 1}, {1, 1, 1, 1}, {2, 1, 2, 5}, {1, 3, 0, 3}}) {
    Tensor a = randn({n, 2, m}), b = randn({k, 1, l}), want = (a + b) * a - b, got = sum.run({a, b})[0];
    CAPTURE(n, m, k, l);
    REQUIRE(got.shape() == want.shape());
    CHECK(floats(got) == floats(want));
  }
  std::string problem = problemOf(sum, {ones({3, 2, 4}), ones({2, 1, 4})});
  INFO(problem);
  CHECK(contains(problem, "model.onnx:Add->s: the sizes n and k must be equal, or one of them must be 1"));
  CHECK(contains(problem, "n = 3, m = 4, k = 2"));
}

TEST_CASE("Batches of a product, operands of Where, and the shape of Expand broadcast by sizes of a run") {
  Graph product = loadModel(graphOf({{"MatMul", {"a", "b"}, {"y"}}},
                                    {floatInput("a", {"n", "q", "3"}), floatInput("b", {"k", "3", "r"})}))
                      .graph;
  for (auto [n, k] : {std::pair(2, 2), {1, 3}, {3, 1}}) {
    Tensor a = randn({n, 2, 3}), b = randn({k, 3, 4});
    CHECK(largestDifference(product.run({a, b})[0], matmul(a, b)) < 1e-5);
  }
  Graph chosen = loadModel(graphOf({{"Where", {"c", "a", "b"}, {"y"}}},
                                   {valueInfo("c", kBool, {"n"}), floatInput("a", {"m"}), floatInput("b", {"k"})}))
                     .graph;
  for (auto [n, m, k] : {std::array{4, 4, 1}, {1, 4, 4}, {4, 1, 1}, {4, 4, 4}}) {
    Tensor c = randn({n}) > 0, a = randn({m}), b = randn({k});
    CHECK(floats(chosen.run({c, a, b})[0]) == floats(where(c, a, b)));
  }
  Graph like = loadModel(graphOf({{"Shape", {"b"}, {"s"}}, {"Expand", {"a", "s"}, {"y"}}},
                                 {floatInput("a", {"n", "1"}), floatInput("b", {"k", "m"})}))
                   .graph;
  for (auto [n, k] : {std::pair(3, 3), {1, 3}, {3, 1}}) {
    Tensor a = randn({n, 1}), b = zeros({k, 4});
    CHECK(floats(like.run({a, b})[0]) == floats(a + b));
  }
}

TEST_CASE("sizes without names are meant to be equal, and a size that is 1 is fixed") {
  ModelText model = graphOf({{"Add", {"a", "b"}, {"y"}}}, {floatInput("a", {"?", "3"}), floatInput("b", {"?", "3"})});
  Graph same = loadModel(model).graph;
  CHECK(str(same.inputs()[1]) == "b: f32[a_0, 3]");
  CHECK(contains(problemOf(same, {ones({2, 3}), ones({1, 3})}), "expected a_0 = 2, got 1"));
  Graph one = loadModel(model, {{"b_0", 1, 1}}).graph;
  CHECK(floats(one.run({ones({2, 3}), ones({1, 3})})[0]) == std::vector<float>(6, 2));
}

// ---- sizes that depend on data

TEST_CASE("Reshape, Expand, Tile, Pad and Split take shapes that are inputs") {
  Graph reshaped = nodeOf("Reshape", {"n", "m"}, {"3"});
  for (const auto &[shape, want] :
       {std::pair(list({3, 2, 2}), Shape{3, 2, 2}), {list({3, -1, 2}), {3, 2, 2}}, {list({0, -1, 1}), {2, 6, 1}}})
    CHECK(reshaped.run({rows(2, 6), shape})[0].shape() == want);
  std::string problem = problemOf(reshaped, {rows(2, 6), list({5, 2, 2})});
  INFO(problem);
  CHECK(contains(problem, "model.onnx:node: size_0*size_1*size_2 must be equal to m*n, but they are 20 and 12"));
  CHECK(contains(problemOf(reshaped, {rows(2, 6), list({-3, 2, 2})}), "size_0 is computed as -3"));

  Graph expanded = nodeOf("Expand", {"n", "1"}, {"2"});
  CHECK(floats(expanded.run({rows(1, 1) + 7, list({2, 2})})[0]) == std::vector<float>{7, 7, 7, 7});
  CHECK(floats(expanded.run({rows(2, 1), list({1, 2})})[0]) == std::vector<float>{0, 0, 1, 1});
  CHECK(floats(expanded.run({rows(2, 1), list({2, 3})})[0]) == std::vector<float>{0, 0, 0, 1, 1, 1});
  Graph three = nodeOf("Expand", {"3", "1"}, {"2"});
  for (int64_t rows : {1, 3})
    CHECK(three.run({zeros({3, 1}), list({rows, 2})})[0].shape() == Shape{3, 2});
  CHECK(!problemOf(three, {zeros({3, 1}), list({2, 2})}).empty());
  Graph tiled = nodeOf("Tile", {"n", "2"}, {"2"});
  CHECK(floats(tiled.run({rows(1, 2), list({2, 2})})[0]) == std::vector<float>{0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(tiled.run({rows(1, 2), list({0, 1})})[0].shape() == Shape{0, 2});
  Graph padded = nodeOf("Pad", {"n", "2"}, {"4"});
  CHECK(floats(padded.run({rows(1, 2) + 1, list({0, 1, 1, 0})})[0]) == std::vector<float>{0, 1, 2, 0, 0, 0});
  Graph parts =
      loadModel(graphOf({{"Split", {"x", "t"}, {"z", "y"}}}, {floatInput("x", {"n"}), valueInfo("t", kInt64, {"2"})}))
          .graph;
  CHECK(floats(parts.run({arange(5).to(f32), list({2, 3})})[0]) == std::vector<float>{2, 3, 4});
  CHECK(!problemOf(parts, {arange(5).to(f32), list({2, 4})}).empty());
}

TEST_CASE("Slice, Range, ConstantOfShape, TopK and Resize take numbers that are inputs") {
  Graph sliced = nodeOf("Slice", {"n"}, {"1", "1"});
  Tensor x = arange(6).to(f32);
  for (const auto &[from, to, want] : {std::tuple(0, 3, std::vector<float>{0, 1, 2}),
                                       {-2, 100, {4, 5}},
                                       {2, -1, {2, 3, 4}},
                                       {-9, -4, {0, 1}},
                                       {4, 2, {}}})
    CHECK(floats(sliced.run({x, list({from}), list({to})})[0]) == want);
  Graph range =
      loadModel({.nodes = {{"Range", {"a", "b", "c"}, {"y"}}},
                 .inputs = {valueInfo("a", kInt64, {}), valueInfo("b", kInt64, {}), valueInfo("c", kInt64, {})},
                 .outputs = {valueInfo("y", kInt64, {"?"})}})
          .graph;
  for (const auto &[from, to, step, want] : {std::tuple(0, 3, 1, std::vector<float>{0, 1, 2}),
                                             {3, 20, 5, {3, 8, 13, 18}},
                                             {9, 0, -4, {9, 5, 1}},
                                             {3, 3, 1, {}},
                                             {5, 1, 1, {}}})
    CHECK(range.run({tensor(from), tensor(to), tensor(step)})[0].to_vector<float>() == want);
  Graph filled = nodeOf("ConstantOfShape", {}, {"2"});
  CHECK(filled.run({list({2, 3})})[0].shape() == Shape{2, 3});
  Graph top = nodeOf("TopK", {"n", "4"}, {"1"});
  CHECK(floats(top.run({rows(2, 4), list({2})})[0]) == std::vector<float>{3, 2, 7, 6});
  CHECK(!problemOf(top, {rows(2, 4), list({5})}).empty());
  Graph resized = loadModel(graphOf({{"Resize", {"x", "", "", "t"}, {"y"}, {attribute("mode", "nearest")}}},
                                    {floatInput("x", {"1", "1", "n", "2"}), valueInfo("t", kInt64, {"4"})}))
                      .graph;
  CHECK(floats(resized.run({reshape(rows(1, 2), {1, 1, 1, 2}), list({1, 1, 2, 4})})[0]) ==
        std::vector<float>{0, 0, 1, 1, 0, 0, 1, 1});
}

TEST_CASE("A length regulator repeats rows as often as data says, and the lengths of sequences make their mask") {
  // Row t of x, d[t] times: the sum of d determines the length; sizes of y are used again.
  Graph repeated = loadModel(graphOf({{"CumSum", {"d", "zero"}, {"ends"}},
                                      {"ReduceSum", {"d"}, {"total"}, {attribute("keepdims", int64_t(0))}},
                                      {"Range", {"zero", "total", "one"}, {"r"}},
                                      {"Unsqueeze", {"r", "axis"}, {"column"}},
                                      {"GreaterOrEqual", {"column", "ends"}, {"behind"}},
                                      {"Cast", {"behind"}, {"flags"}, {attribute("to", int64_t(kInt64))}},
                                      {"ReduceSum", {"flags", "axis"}, {"row"}, {attribute("keepdims", int64_t(0))}},
                                      {"Gather", {"x", "row"}, {"g"}},
                                      {"Shape", {"g"}, {"s"}},
                                      {"ConstantOfShape", {"s"}, {"w"}},
                                      {"Sub", {"g", "w"}, {"y"}}},
                                     {valueInfo("d", kInt64, {"t"}), floatInput("x", {"t", "2"})},
                                     {scalar("zero", 0), scalar("one", 1), ints("axis", {1})}))
                       .graph;
  CHECK(floats(repeated.run({list({2, 0, 1}), rows(3, 2)})[0]) == std::vector<float>{0, 1, 0, 1, 4, 5});
  CHECK(floats(repeated.run({list({1}), rows(1, 2)})[0]) == std::vector<float>{0, 1});
}

TEST_CASE("Arithmetic of sizes that is not symbolic is computed by the run") {
  auto shapeBy = [](std::vector<NodeText> nodes, std::vector<Bytes> initializers = {}) {
    nodes.insert(nodes.begin(), {"Shape", {"x"}, {"s"}});
    nodes.push_back({"ConstantOfShape", {"t"}, {"y"}});
    return loadModel(graphOf(std::move(nodes), {floatInput("x", {"h", "w"})}, std::move(initializers))).graph;
  };
  auto to = [](const Bytes &from, const Bytes &name, OnnxType type) {
    return NodeText{"Cast", {from}, {name}, {attribute("to", int64_t(type))}};
  };
  constexpr OnnxType kHalf = OnnxType(10);
  struct Case {
    const char *name;
    Graph graph;
    Shape of16x5, of9x4; // the shapes for x [16, 5] and [9, 4]
  };
  std::vector<Case> cases;
  auto floatOp = [&](const char *op) {
    return shapeBy({to("s", "f", kFloat), {op, {"f"}, {"g"}}, to("g", "t", kInt64)});
  };
  cases.push_back({"Sqrt", floatOp("Sqrt"), {4, 2}, {3, 2}});
  cases.push_back({"Log", floatOp("Log"), {2, 1}, {2, 1}});
  cases.push_back({"Pow",
                   shapeBy({to("s", "f", kFloat), {"Pow", {"f", "half"}, {"g"}}, to("g", "t", kInt64)},
                           {floatTensor("half", {}, {0.5})}),
                   {4, 2},
                   {3, 2}});
  cases.push_back(
      {"f16", shapeBy({to("s", "f", kHalf), {"Mul", {"f", "f"}, {"g"}}, to("g", "t", kInt64)}), {256, 25}, {81, 16}});
  cases.push_back({"ReduceMean", shapeBy({{"ReduceMean", {"s"}, {"t"}}}), {10}, {6}});
  cases.push_back({"ReduceProd", shapeBy({{"ReduceProd", {"s"}, {"t"}}}), {80}, {36}});
  cases.push_back({"CumSum", shapeBy({{"CumSum", {"s", "zero"}, {"t"}}}, {scalar("zero", 0)}), {16, 21}, {9, 13}});
  cases.push_back(
      {"Split",
       shapeBy({{"Split", {"s"}, {"a", "b"}, {attribute("num_outputs", int64_t(2))}}, {"Mul", {"a", "b"}, {"t"}}}),
       {80},
       {36}});
  cases.push_back({"GatherElements",
                   shapeBy({{"GatherElements", {"s", "i"}, {"t"}}}, {ints("i", {1, 0, -1})}),
                   {5, 16, 5},
                   {4, 9, 4}});
  cases.push_back(
      {"GatherND", shapeBy({{"GatherND", {"s", "i"}, {"t"}}}, {intTensor("i", {2, 1}, {1, 1})}), {5, 5}, {4, 4}});
  cases.push_back({"ScatterElements",
                   shapeBy({{"ScatterElements", {"s", "i", "u"}, {"t"}}}, {ints("i", {-1}), ints("u", {3})}),
                   {16, 3},
                   {9, 3}});
  cases.push_back({"ScatterND",
                   shapeBy({{"ScatterND", {"s", "i", "u"}, {"t"}}}, {intTensor("i", {1, 1}, {0}), ints("u", {3})}),
                   {3, 5},
                   {3, 4}});
  cases.push_back({"Sign",
                   shapeBy({{"Sub", {"s", "eight"}, {"d"}}, {"Sign", {"d"}, {"e"}}, {"Abs", {"e"}, {"t"}}},
                           {ints("eight", {8, 4})}),
                   {1, 1},
                   {1, 0}});
  cases.push_back({"ArgMax", shapeBy({{"ArgMax", {"s"}, {"a"}}, {"Add", {"a", "s"}, {"t"}}}), {16, 5}, {9, 4}});
  cases.push_back(
      {"TopK",
       shapeBy({{"TopK", {"s", "two"}, {"t", "i"}, {attribute("largest", int64_t(0))}}}, {ints("two", {2})}),
       {5, 16},
       {4, 9}});
  for (const Case &c : cases) {
    INFO(c.name);
    CHECK(c.graph.run({zeros({16, 5})})[0].shape() == c.of16x5);
    CHECK(c.graph.run({zeros({9, 4})})[0].shape() == c.of9x4);
  }
  // A grid of patches: the square root of a size, which the reshape checks.
  Graph grid = loadModel(graphOf({{"Shape", {"x"}, {"s"}, {attribute("end", int64_t(1))}},
                                  to("s", "f", kFloat),
                                  {"Sqrt", {"f"}, {"g"}},
                                  to("g", "side", kInt64),
                                  {"Concat", {"side", "side", "rest"}, {"t"}, {attribute("axis", int64_t(0))}},
                                  {"Reshape", {"x", "t"}, {"y"}}},
                                 {floatInput("x", {"n", "2"})}, {ints("rest", {2})}))
                   .graph;
  CHECK(grid.run({rows(9, 2)})[0].shape() == Shape{3, 3, 2});
  CHECK(!problemOf(grid, {rows(8, 2)}).empty());
}

// ---- slices

TEST_CASE("A slice is right for every size, also where bounds exceed it or become negative") {
  for (auto [from, to, step] : {std::array<int64_t, 3>{-5, INT64_MAX, 1},
                                {-5, -1, 1},
                                {1, -3, 1},
                                {0, -4, 2},
                                {-1, -5, -1},
                                {-3, INT64_MIN, -2},
                                {4, -2, -1},
                                {2, 7, 3}}) {
    Graph graph = loadModel(graphOf({{"Slice", {"x", "from", "to", "axis", "step"}, {"y"}}}, {floatInput("x", {"n"})},
                                    {ints("from", {from}), ints("to", {to}), ints("axis", {0}), ints("step", {step})}))
                      .graph;
    for (int64_t n = 0; n < 9; ++n) {
      // As Python's slice.indices, but that the start of a backward slice is at least 0.
      auto bound = [n = n, step = step](int64_t at, int64_t least) {
        at = at < 0 ? std::max<int64_t>(at, -1000) + n : at;
        return step > 0 ? std::clamp<int64_t>(at, 0, n) : std::min(std::max(at, least), n - 1);
      };
      std::vector<float> want;
      const int64_t end = bound(to, -1);
      for (int64_t i = bound(from, 0); step > 0 ? i < end : i > end; i += step)
        want.push_back(float(i));
      CAPTURE(from, to, step, n);
      CHECK(floats(graph.run({arange(n).to(f32)})[0]) == want);
    }
  }
  // x[n / 2 - 3 :], where the bound counts from the end for n < 6.
  Graph half =
      loadModel(graphOf({{"Shape", {"x"}, {"n"}},
                         {"Div", {"n", "two"}, {"h"}},
                         {"Sub", {"h", "three"}, {"from"}},
                         {"Slice", {"x", "from", "far"}, {"y"}}},
                        {floatInput("x", {"n"})}, {ints("two", {2}), ints("three", {3}), ints("far", {INT64_MAX})}))
          .graph;
  for (const auto &[n, want] :
       {std::pair(1, std::vector<float>{0}), {4, {3}}, {5, {4}}, {6, {0, 1, 2, 3, 4, 5}}, {8, {1, 2, 3, 4, 5, 6, 7}}})
    CHECK(floats(half.run({arange(n).to(f32)})[0]) == want);
}

// ---- signals

TEST_CASE("Fourier transforms of signals whose length is known when the model runs") {
  auto transformOf = [](std::vector<Bytes> attributes, const Bytes &components = "1") {
    ModelText model =
        graphOf({{"DFT", {"x"}, {"y"}, std::move(attributes)}}, {floatInput("x", {"b", "n", components})});
    model.opset = 17;
    return loadModel(model).graph;
  };
  Graph full = transformOf({}), half = transformOf({attribute("onesided", int64_t(1))}),
        back = transformOf({attribute("inverse", int64_t(1))}, "2");
  for (int64_t n : {1, 2, 5, 16}) {
    Tensor x = randn({2, n, 1}), complex = concat({x, zeros({2, n, 1})}, 2);
    Tensor want = fft::fft(complex, std::nullopt, 1), got = full.run({x})[0];
    REQUIRE(got.shape() == want.shape());
    CHECK(largestDifference(got, want) < 1e-5);
    CHECK(largestDifference(half.run({x})[0], want.slice(1, 0, n / 2 + 1)) < 1e-5);
    CHECK(largestDifference(back.run({want})[0], complex) < 1e-5);
  }
  // Zeros are added up to the length, and what is beyond it is cut off.
  ModelText fitted =
      graphOf({{"DFT", {"x", "length"}, {"y"}}}, {floatInput("x", {"b", "n", "1"})}, {scalar("length", 4)});
  fitted.opset = 17;
  Graph four = loadModel(fitted).graph;
  for (int64_t n : {2, 4, 6}) {
    Tensor x = randn({1, n, 1}), row = concat({x, zeros({1, 4, 1})}, 1).slice(1, 0, 4);
    CHECK(largestDifference(four.run({x})[0], full.run({row})[0]) < 1e-5);
  }
}

TEST_CASE("Windows of a signal whose length is known when the model runs") {
  ModelText model = graphOf({{"STFT", {"x", "step", "window"}, {"y"}}}, {floatInput("x", {"b", "n", "1"})},
                            {scalar("step", 3), floatTensor("window", {4}, {0.5, 1, 1, 0.5})});
  model.opset = 17;
  Graph graph = loadModel(model).graph;
  for (int64_t n : {4, 9, 10}) {
    Tensor x = randn({2, n, 1}), got = graph.run({x})[0], window = reshape(tensor({0.5, 1.0, 1.0, 0.5}), {1, 4, 1});
    REQUIRE(got.shape() == Shape{2, (n - 4) / 3 + 1, 3, 2});
    for (int64_t frame = 0; frame <= (n - 4) / 3; ++frame) {
      Tensor part = x.slice(1, frame * 3, frame * 3 + 4) * window.to(f32);
      Tensor want = fft::fft(concat({part, zeros({2, 4, 1})}, 2), std::nullopt, 1).slice(1, 0, 3);
      CHECK(largestDifference(got.slice(1, frame, frame + 1).squeeze({1}), want) < 1e-5);
    }
  }
}
