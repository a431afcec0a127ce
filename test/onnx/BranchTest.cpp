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

TEST_CASE("If the branches of an If over data differ in rank, each continues with what is computed from it") {
  // The continuation multiplies by a weight, and uses a value that a later node computes; the graph also gives the
  // latter.
  const Bytes sum = branch({{"ReduceSum", {"x", "axis"}, {"a"}, {attribute("keepdims", int64_t(0))}}}),
              same = branch({{"Identity", {"x"}, {"e"}}});
  ModelText model = ifOf(byData, sum, same);
  model.nodes.back() = {"Mul", {"z", "v"}, {"p"}};
  model.nodes.push_back({"Exp", {"x"}, {"w"}});
  model.nodes.push_back({"ReduceSum", {"p"}, {"q"}, {attribute("keepdims", int64_t(0))}});
  model.nodes.push_back({"ReduceMax", {"w"}, {"m"}, {attribute("keepdims", int64_t(0))}});
  model.nodes.push_back({"Add", {"q", "m"}, {"y"}});
  model.initializers.push_back(floatTensor("v", {1}, {3}));
  model.outputs.push_back(valueInfo("w", kFloat, {"b", "n"}));
  Graph graph = loadModel(model).graph;
  INFO(graph.str());
  CHECK(contains(graph.str(), "burin.if"));
  for (float sign : {1.f, -1.f}) {
    Tensor x = (rand({2, 3}) + 0.1) * sign, w = x.exp();
    std::vector<Tensor> results = graph.run({x});
    CHECK(largestDifference(results[0], x.sum() * 3 + w.amax()) < 1e-4);
    CHECK(largestDifference(results[1], w) < 1e-5);
  }
}

TEST_CASE("Continuations of Ifs over data are nested, and may be in functions and loops") {
  const Bytes sum = branch({{"ReduceSum", {"x", "axis"}, {"a"}, {attribute("keepdims", int64_t(0))}}}),
              same = branch({{"Identity", {"x"}, {"e"}}}), first = branch({{"Neg", {"z"}, {"f"}}}),
              second = branch({{"ReduceSum", {"z"}, {"g"}, {attribute("keepdims", int64_t(0))}}});
  ModelText model = ifOf(byData, sum, same);
  model.nodes.back() = {"ReduceMax", {"x"}, {"t"}, {attribute("keepdims", int64_t(0))}};
  model.nodes.push_back({"Less", {"t", "two"}, {"d"}});
  model.nodes.push_back(
      {"If", {"d"}, {"u"}, {graphAttribute("then_branch", first), graphAttribute("else_branch", second)}, "inner"});
  model.nodes.push_back({"ReduceSum", {"u"}, {"y"}, {attribute("keepdims", int64_t(0))}});
  model.initializers.push_back(floatTensor("two", {}, {2}));
  auto check = [](const Graph &graph) {
    for (float sign : {1.f, -1.f})
      for (float scale : {1.f, 9.f}) {
        Tensor x = (rand({2, 3}) * .5 + .4) * sign * scale, y = x.sum();
        CHECK(largestDifference(graph.run({x})[0], x.amax().item<float>() < 2 ? -y : y) < 1e-4);
      }
  };
  check(loadModel(model).graph);
  Message function; // x, axis, zero, two -> y
  function.add(1, Bytes("f")).add(10, Bytes("local"));
  for (const char *input : {"x", "axis", "zero", "two"})
    function.add(4, Bytes(input));
  function.add(5, Bytes("y"));
  for (const NodeText &node : model.nodes)
    function.add(7, node);
  function.add(9, Message().add(1, Bytes()).add(2, int64_t(21)));
  ModelText call = model;
  call.nodes = {{"f", {"x", "axis", "zero", "two"}, {"y"}, {}, "call", "local"}};
  call.functions = {function};
  check(loadModel(call).graph);
  ModelText loop = model; // three times the same
  const Bytes body = ModelText{.nodes = model.nodes,
                               .inputs = {valueInfo("i", kInt64, {}), valueInfo("go", kBool, {})},
                               .outputs = {valueInfo("go", kBool, {}), floatInput("y", {})}}
                         .graph();
  loop.nodes = {{"Loop", {"three", ""}, {"all"}, {graphAttribute("body", body)}, "loop"},
                {"ReduceMean", {"all"}, {"y"}, {attribute("keepdims", int64_t(0))}}};
  loop.initializers.push_back(scalar("three", 3));
  check(loadModel(loop).graph);
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
