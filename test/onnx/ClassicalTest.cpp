// Ops of the domain ai.onnx.ml: labels that are strings, maps, and attributes that do not fit. Results are tested
// against ONNX Runtime by ContribTest.
#include "test/onnx/Load.h"
#include <map>

using namespace burin::test;

namespace {

using Attributes = std::map<std::string, Bytes>;

Bytes floats(const Bytes &name, std::initializer_list<float> values) {
  Message message;
  message.add(1, name).add(20, int64_t(6));
  for (float value : values)
    message.addFloat(7, value);
  return message;
}

/// A tree that tests x[0] <= 0.5: two classes, or one number.
Attributes tree(const Bytes &votes) {
  return {{"nodes_treeids", attribute("nodes_treeids", {0, 0, 0})},
          {"nodes_nodeids", attribute("nodes_nodeids", {0, 1, 2})},
          {"nodes_featureids", attribute("nodes_featureids", {0, 0, 0})},
          {"nodes_modes", stringsAttribute("nodes_modes", {"BRANCH_LEQ", "LEAF", "LEAF"})},
          {"nodes_values", floats("nodes_values", {0.5f, 0, 0})},
          {"nodes_truenodeids", attribute("nodes_truenodeids", {1, 0, 0})},
          {"nodes_falsenodeids", attribute("nodes_falsenodeids", {2, 0, 0})},
          {votes + "_treeids", attribute(votes + "_treeids", {0, 0})},
          {votes + "_nodeids", attribute(votes + "_nodeids", {1, 2})},
          {votes + "_ids", attribute(votes + "_ids", {0, 0})},
          {votes + "_weights", floats(votes + "_weights", {0.25f, 0.75f})}};
}

NodeText node(const Bytes &op, const Attributes &attributes, std::vector<Bytes> outputs = {"y"}) {
  NodeText text{op, {"x"}, std::move(outputs), {}, "n", "ai.onnx.ml"};
  for (const auto &[name, bytes] : attributes)
    text.attributes.push_back(bytes);
  return text;
}

/// The error of loading a model of one node with the features x [n, 3].
std::string problemOf(const Bytes &op, const Attributes &attributes) {
  return messageOf([&] { loadModel(graphOf({node(op, attributes)}, {floatInput("x", {"n", "3"})})); });
}

/// A classifier with labels that are strings.
Attributes colors() {
  Attributes attributes = tree("class");
  attributes["labels"] = stringsAttribute("classlabels_strings", {"red", "blue"});
  return attributes;
}

} // namespace

TEST_CASE("labels that are strings become their numbers and maps become matrices") {
  ModelText model{.nodes = {node("TreeEnsembleClassifier", colors(), {"label", "scores"}),
                            {"ZipMap",
                             {"scores"},
                             {"maps"},
                             {stringsAttribute("classlabels_strings", {"red", "blue"})},
                             "zip",
                             "ai.onnx.ml"}},
                  .inputs = {floatInput("x", {"n", "3"})},
                  .outputs = {valueInfo("label", kString, {"n"}), valueInfo("maps", kFloat, {})}};
  auto [graph, warnings] = loadModel(model);
  std::vector<Tensor> results = graph.run({from_vector(std::vector<float>{0, 9, 9, 1, 9, 9}, Shape{2, 3})});
  CHECK(results[0].to_vector<int64_t>() == std::vector<int64_t>{0, 1});
  CHECK(results[1].to_vector<float>() == std::vector<float>{0.75f, 0.25f, 0.25f, 0.75f});
  REQUIRE(warnings.size() == 2);
  CHECK(contains(warnings[0], "model.onnx:n: its labels are strings; burin gives their numbers instead, from 0: "
                              "\"red\", \"blue\""));
  CHECK(contains(warnings[1], "model.onnx:zip: its result is a sequence of maps"));
}

TEST_CASE("ops do not read the numbers of labels that are strings") {
  ModelText model = graphOf({node("TreeEnsembleClassifier", colors(), {"label", "scores"}),
                             {"Cast", {"label"}, {"y"}, {attribute("to", int64_t(1))}, "cast"}},
                            {floatInput("x", {"n", "3"})});
  CHECK(contains(messageOf([&] { loadModel(model); }), "strings"));
}

TEST_CASE("trees that are not well formed are errors") {
  auto problem = [](const std::string &name, const Bytes &value) {
    Attributes attributes = tree("target");
    attributes[name] = value;
    return problemOf("TreeEnsembleRegressor", attributes);
  };
  CHECK(problemOf("TreeEnsembleRegressor", tree("target")).empty());
  CHECK(contains(problem("nodes_truenodeids", attribute("nodes_truenodeids", {0, 0, 0})), "its nodes form a cycle"));
  CHECK(contains(problem("nodes_truenodeids", attribute("nodes_truenodeids", {7, 0, 0})), "tree 0 has no node 7"));
  CHECK(contains(problem("nodes_nodeids", attribute("nodes_nodeids", {0, 1, 1})), "node 1 of tree 0 is there twice"));
  CHECK(contains(problem("nodes_nodeids", attribute("nodes_nodeids", {0, 1})), "has 2 elements instead of 3"));
  CHECK(contains(problem("nodes_featureids", attribute("nodes_featureids", {3, 0, 0})), "a node tests feature 3 of 3"));
  CHECK(contains(problem("nodes_modes", stringsAttribute("nodes_modes", {"BRANCH", "LEAF", "LEAF"})),
                 "unknown node mode \"BRANCH\""));
  CHECK(contains(problem("target_ids", attribute("target_ids", {0, 1})), "a leaf votes for 1 of 1 targets"));
  CHECK(contains(problem("n_targets", attribute("n_targets", int64_t(1) << 40)), "1099511627776 targets for 2 votes"));
  CHECK(contains(problem("base_values", floats("base_values", {1, 2})), "2 base_values for 1 scores"));
  CHECK(contains(problem("aggregate_function", attribute("aggregate_function", "MEDIAN")), "\"MEDIAN\""));
  CHECK(contains(problemOf("TreeEnsembleClassifier", tree("class")), "needs one of the attributes"));
  const Bytes none = floatTensor("", {0}, {});
  CHECK(contains(problemOf("TreeEnsemble", {{"roots", attribute("tree_roots", {0})},
                                            {"modes", tensorAttribute("nodes_modes", none)},
                                            {"splits", tensorAttribute("nodes_splits", none)},
                                            {"weights", tensorAttribute("leaf_weights", none)}}),
                 "it has no trees"));
}

TEST_CASE("attributes of other classical models must fit, too") {
  const Bytes labels = attribute("classlabels_ints", {4, 2});
  CHECK(contains(
      problemOf("LinearRegressor", {{"c", floats("coefficients", {1, 2, 3})}, {"n", attribute("targets", int64_t(2))}}),
      "3 elements for 2 rows"));
  CHECK(contains(
      problemOf("LinearClassifier",
                {{"c", floats("coefficients", {1, 2, 3})}, {"i", floats("intercepts", {1, 2, 3})}, {"l", labels}}),
      "3 intercepts for 2 classes"));
  CHECK(contains(problemOf("Scaler", {{"o", floats("offset", {1, 2})}}), "2 elements for 3 columns"));
  CHECK(contains(problemOf("Normalizer", {{"n", attribute("norm", "L3")}}), "unknown norm \"L3\""));
  CHECK(contains(problemOf("SVMRegressor", {{"s", floats("support_vectors", {1, 2, 3})},
                                            {"c", floats("coefficients", {1})},
                                            {"n", attribute("n_supports", int64_t(2))}}),
                 "1 coefficients for 2 support vectors"));
  CHECK(contains(problemOf("SVMClassifier", {{"l", labels}, {"v", attribute("vectors_per_class", {1, 1})}}),
                 "one number per pair"));
  CHECK(contains(problemOf("LabelEncoder", {{"k", stringsAttribute("keys_strings", {"a"})}}), "strings"));
}
