// ONNX's Gradient op: locating the values that it names, and recomputing with the given values.
#include "test/frontend/Check.h"
#include "test/onnx/Folder.h"
#include "test/onnx/ModelWriter.h"

using namespace burin::test;

namespace {

NodeText gradientNode(std::initializer_list<Bytes> xs, std::initializer_list<Bytes> zs, const Bytes &y,
                      std::vector<Bytes> inputs, std::vector<Bytes> outputs) {
  return {"Gradient",
          std::move(inputs),
          std::move(outputs),
          {stringsAttribute("xs", xs), stringsAttribute("zs", zs), attribute("y", y.c_str())},
          "grad",
          "ai.onnx.preview.training"};
}

Bytes vectorOf(const Bytes &name) { return valueInfo(name, kFloat, {"n"}); }

Graph loadModel(const ModelText &model) {
  Folder folder;
  return load_onnx(model.write(folder / "model.onnx"));
}

const std::vector<NodeText> kChain{{"Mul", {"w", "x"}, {"h"}}, {"Mul", {"h", "h"}, {"y"}}}; // y = (w x)^2
ModelText chainWith(std::vector<NodeText> more, std::vector<Bytes> outputs) {
  ModelText model{.nodes = kChain, .inputs = {vectorOf("w"), vectorOf("x")}, .outputs = {}};
  model.nodes.insert(model.nodes.end(), more.begin(), more.end());
  for (const Bytes &output : outputs)
    model.outputs.push_back(vectorOf(output));
  return model;
}
const std::vector<Tensor> kInputs{tensor({2.0, 3.0}), tensor({5.0, 1.0})};

std::vector<float> runChain(NodeText node, const Bytes &output = "g") {
  return floats(loadModel(chainWith({std::move(node)}, {output})).run(kInputs)[0]);
}

} // namespace

TEST_CASE("Gradient of the values that it names") {
  CHECK(runChain(gradientNode({"w"}, {"x"}, "y", {"w", "x"}, {"g"})) == std::vector<float>{100, 6});
  CHECK(runChain(gradientNode({"w"}, {}, "y", {"w"}, {"g"})) == std::vector<float>{100, 6}); // x unchanged
  CHECK(runChain(gradientNode({"w", "x"}, {}, "y", {"w", "x"}, {"", "g"})) == std::vector<float>{40, 18});
}

TEST_CASE("Gradient at other values than those of the names") {
  CHECK(runChain(gradientNode({"w"}, {"x"}, "y", {"x", "w"}, {"g"})) == std::vector<float>{40, 18});
  CHECK(runChain(gradientNode({"w"}, {"x"}, "y", {"x", "x"}, {"g"})) == std::vector<float>{250, 2});
  CHECK(runChain(gradientNode({"w"}, {"x"}, "y", {"y", "x"}, {"g"})) == std::vector<float>{5000, 18});
}

TEST_CASE("Gradient with respect to and of values inside of the graph") {
  CHECK(runChain(gradientNode({"h"}, {}, "y", {"h"}, {"g"})) == std::vector<float>{20, 6});
  CHECK(runChain(gradientNode({"h"}, {}, "y", {"w"}, {"g"})) == std::vector<float>{4, 6});
  CHECK(runChain(gradientNode({"w"}, {}, "h", {"w"}, {"g"})) == std::vector<float>{5, 1});
  CHECK(runChain(gradientNode({"x"}, {}, "w", {"x"}, {"g"})) == std::vector<float>{0, 0});
}

TEST_CASE("two Gradient nodes, one of them of the other's result") {
  Graph graph = loadModel(chainWith({gradientNode({"w"}, {"x"}, "y", {"w", "x"}, {"g"}),
                                     gradientNode({"w"}, {"x"}, "g", {"w", "x"}, {"gg"}),
                                     gradientNode({"x"}, {"w"}, "g", {"x", "w"}, {"gx"})},
                                    {"g", "gg", "gx"}));
  std::vector<Tensor> y = graph.run(kInputs);
  CHECK(floats(y[0]) == std::vector<float>{100, 6});
  CHECK(floats(y[1]) == std::vector<float>{50, 2});  // 2 x^2
  CHECK(floats(y[2]) == std::vector<float>{40, 12}); // 4 w x
}

TEST_CASE("Gradient before the node that gives y, through a branch and with an integer among zs") {
  ModelText model{.nodes = {gradientNode({"w"}, {"index"}, "y", {"w", "index"}, {"g"}),
                            {"Gather", {"w", "index"}, {"picked"}},
                            {"Mul", {"picked", "picked"}, {"y"}}},
                  .inputs = {vectorOf("w"), valueInfo("index", kInt64, {"k"})},
                  .outputs = {vectorOf("g"), valueInfo("y", kFloat, {"k"})}};
  std::vector<Tensor> y = loadModel(model).run({tensor({2.0, 3.0, 4.0}), tensor({1, 1, 0})});
  CHECK(floats(y[0]) == std::vector<float>{4, 12, 0});
}

TEST_CASE("what is wrong with a Gradient node is one clear error") {
  auto errorOf = [](NodeText node) { return messageOf([&] { runChain(std::move(node)); }); };
  auto missing = gradientNode({"w"}, {}, "y", {"w"}, {"g"});
  missing.attributes.pop_back();
  CHECK(contains(errorOf(missing), ":grad: Gradient: it needs the attributes \"xs\" and \"y\""));
  CHECK(contains(errorOf(gradientNode({}, {}, "y", {}, {"g"})), "it needs the attributes \"xs\" and \"y\""));
  CHECK(contains(errorOf(gradientNode({"nothing"}, {}, "y", {"w"}, {"g"})), "no value \"nothing\""));
  CHECK(contains(errorOf(gradientNode({"w"}, {}, "nothing", {"w"}, {"g"})), "no value \"nothing\""));
  CHECK(contains(errorOf(gradientNode({"w"}, {"x"}, "y", {"w"}, {"g"})), "1 inputs for the 2 names"));
  CHECK(contains(errorOf(gradientNode({"w", "w"}, {}, "y", {"w", "x"}, {"g"})), "\"w\" twice"));
  CHECK(contains(errorOf(gradientNode({"w"}, {}, "g", {"w"}, {"g"})), "\"g\", which depends on it"));
}

TEST_CASE("Gradient through what has no rule names it") {
  ModelText body{.nodes = {{"Identity", {"goes"}, {"on"}}, {"Mul", {"v", "v"}, {"next"}}},
                 .inputs = {valueInfo("i", kInt64, {}), valueInfo("goes", kBool, {}), vectorOf("v")},
                 .outputs = {valueInfo("on", kBool, {}), vectorOf("next")}};
  NodeText loop{"Loop", {"count", "", "w"}, {"z"}, {graphAttribute("body", body.graph())}};
  ModelText model = chainWith({loop, gradientNode({"w"}, {"count"}, "z", {"w", "count"}, {"g"})}, {"g"});
  model.inputs.push_back(valueInfo("count", kInt64, {}));
  std::string what = messageOf([&] { loadModel(model); });
  INFO(what);
  CHECK(contains(what, ":grad: Gradient: a while_loop has no gradient"));
}
