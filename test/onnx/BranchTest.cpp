// If: branches whose results differ in their sizes.
#include "test/onnx/Load.h"

using namespace burin::test;

namespace {

Bytes branch(std::vector<NodeText> nodes) {
  Bytes output = nodes.back().outputs[0];
  return ModelText{.nodes = std::move(nodes), .inputs = {}, .outputs = {valueInfo(output, kFloat, {})}}.graph();
}

/// y of an If over "c", which the first nodes compute from x [b, n].
ModelText ifOf(std::vector<NodeText> condition, const Bytes &yes, const Bytes &no) {
  condition.push_back(
      {"If", {"c"}, {"z"}, {graphAttribute("then_branch", yes), graphAttribute("else_branch", no)}, "if"});
  condition.push_back({"Neg", {"z"}, {"y"}});
  return graphOf(std::move(condition), {floatInput("x", {"b", "n"})},
                 {scalar("one", 1), scalar("four", 4), ints("from", {0}), ints("to", {4}), ints("axis", {1}),
                  floatTensor("zero", {}, {0})});
}

const std::vector<NodeText> bySize{
    {"Shape", {"x"}, {"s"}}, {"Gather", {"s", "one"}, {"n"}}, {"Greater", {"n", "four"}, {"c"}}};
const std::vector<NodeText> byData{{"ReduceSum", {"x"}, {"s"}, {attribute("keepdims", int64_t(0))}},
                                   {"Greater", {"s", "zero"}, {"c"}}};
const Bytes four = branch({{"Slice", {"x", "from", "to", "axis"}, {"a"}}});
const Bytes twice = branch({{"Concat", {"x", "x"}, {"e"}, {attribute("axis", int64_t(1))}}});

} // namespace

TEST_CASE("The branches of an If over sizes may differ in sizes: the result has those of the one that runs") {
  Graph graph = loadModel(ifOf(bySize, four, twice)).graph;
  CHECK(contains(graph.str(), "burin.if"));
  for (auto [n, want] : {std::pair(3, 6), {4, 8}, {5, 4}, {9, 4}}) {
    Tensor x = randn({2, n}), y = graph.run({x})[0];
    REQUIRE(y.shape() == Shape{2, want});
    CHECK(floats(y) == floats(n > 4 ? -x.slice(1, 0, 4) : -concat({x, x}, 1)));
  }
}

TEST_CASE("The branches of an If over data may differ in sizes") {
  Graph graph = loadModel(ifOf(byData, four, twice)).graph;
  CHECK(contains(graph.str(), "burin.if"));
  for (float sign : {1.f, -1.f})
    for (int n : {2, 4, 7}) {
      Tensor x = (rand({2, n}) + 0.1) * sign, y = graph.run({x})[0];
      Tensor want = sign > 0 ? -x.slice(1, 0, std::min(n, 4)) : -concat({x, x}, 1);
      REQUIRE(y.shape() == want.shape());
      CHECK(floats(y) == floats(want));
    }
  // A branch whose own size depends on data is computed in either case.
  Bytes places = branch({{"NonZero", {"x"}, {"p"}}, {"Cast", {"p"}, {"a"}, {attribute("to", int64_t(kFloat))}}});
  Graph found = loadModel(ifOf(byData, places, branch({{"Identity", {"x"}, {"e"}}}))).graph;
  CHECK(floats(found.run({tensor({{0, 2}, {3, 0}}, f32)})[0]) == std::vector<float>{0, -1, -1, 0});
  CHECK(floats(found.run({tensor({{0, -2}, {-3, 1}}, f32)})[0]) == std::vector<float>{0, 2, 3, -1});
  CHECK(found.run({ones({2, 3})})[0].shape() == Shape{2, 6});
}

TEST_CASE("Branches that differ in rank are named, with both shapes") {
  Bytes sum = branch({{"ReduceSum", {"x", "axis"}, {"a"}, {attribute("keepdims", int64_t(0))}}});
  std::string message = messageOf([&] { loadModel(ifOf(byData, sum, twice)); });
  INFO(message);
  CHECK(contains(message, "model.onnx:if: If: its branches give [b] and [b, n*2], of different numbers of dimensions: "
                          "the condition must be known when the model is compiled, but depends on the data of \"x\""));
  Loaded bySizes = loadModel(ifOf(bySize, sum, twice));
  REQUIRE(bySizes.warnings.size() == 1);
  CHECK(
      contains(bySizes.warnings[0], "its branches give [b] and [b, n*2]; runs for whose sizes the condition is false"));
  CHECK(floats(bySizes.graph.run({ones({2, 5})})[0]) == std::vector<float>{-5, -5});
  CHECK(!problemOf(bySizes.graph, {ones({2, 3})}).empty());
}

TEST_CASE("Of branches that differ in rank, that one is taken whose outputs have the declared ranks") {
  Bytes sum = branch({{"ReduceSum", {"x", "axis"}, {"a"}, {attribute("keepdims", int64_t(0))}}});
  for (const std::vector<Bytes> &sizes : {std::vector<Bytes>{"b"}, {"b", "m"}, {"b", "m", "k"}}) {
    ModelText model = ifOf(bySize, sum, twice);
    model.outputs = {valueInfo("y", kFloat, sizes)};
    Loaded loaded = loadModel(model);
    INFO(loaded.warnings.front());
    const bool isSum = sizes.size() != 2; // the first one if none has the declared rank
    CHECK(str(loaded.graph.outputs()[0]) == (isSum ? "y: f32[b]" : "y: f32[b, n*2]"));
    CHECK(loaded.graph.run({ones({2, isSum ? 5 : 3})})[0].shape() == (isSum ? Shape{2} : Shape{2, 6}));
    CHECK(contains(loaded.warnings.back(), isSum ? "the condition is false are refused" : "is true are refused"));
  }
}
