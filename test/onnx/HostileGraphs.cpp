#include "test/onnx/Hostile.h"

namespace burin::test {

namespace {

Bytes graphOf(std::vector<NodeText> nodes) {
  ModelText model = relu();
  model.nodes = std::move(nodes);
  return model.model();
}

Bytes function(const Bytes &name, const std::vector<NodeText> &nodes) {
  Message message;
  message.add(1, name).add(4, Bytes("a")).add(5, Bytes("b"));
  for (const NodeText &node : nodes)
    message.add(7, node);
  for (const char *domain : {"", "local"})
    message.add(9, Message().add(1, Bytes(domain)).add(2, int64_t(21)));
  return message.add(10, Bytes("local"));
}
NodeText call(const Bytes &name, const Bytes &input, const Bytes &output) {
  return {name, {input}, {output}, {}, "", "local"};
}
Bytes calling(const Bytes &name, std::vector<Bytes> functions) {
  ModelText model = relu();
  model.nodes = {call(name, "x", "y")};
  model.functions = std::move(functions);
  return model.model();
}

/// f0 calls f1 twice, f1 calls f2 twice, …
Bytes doubling(int count) {
  std::vector<Bytes> functions;
  for (int i = 0; i < count; ++i) {
    Bytes next = "f" + std::to_string(i + 1);
    functions.push_back(function("f" + std::to_string(i), {call(next, "a", "m"), call(next, "m", "b")}));
  }
  functions.push_back(function("f" + std::to_string(count), {{"Relu", {"a"}, {"b"}}}));
  return calling("f0", std::move(functions));
}
Bytes chain(int count) {
  std::vector<Bytes> functions;
  for (int i = 0; i < count; ++i)
    functions.push_back(function("f" + std::to_string(i), {call("f" + std::to_string(i + 1), "a", "b")}));
  functions.push_back(function("f" + std::to_string(count), {{"Relu", {"a"}, {"b"}}}));
  return calling("f0", std::move(functions));
}

/// A loop that computes "y" from "x".
NodeText loop(const Bytes &count, const Bytes &condition) {
  ModelText body{.nodes = {{"Relu", {"v"}, {"w"}}, {"Identity", {"c"}, {"d"}}},
                 .inputs = {valueInfo("i", kInt64, {}), valueInfo("c", kBool, {}), valueInfo("v", kFloat, {"2"})},
                 .outputs = {valueInfo("d", kBool, {}), valueInfo("w", kFloat, {"2"})}};
  return {"Loop", {count, condition, "x"}, {"y"}, {graphAttribute("body", body.graph())}};
}
Bytes looping(std::vector<Bytes> constants, const Bytes &count, const Bytes &condition) {
  ModelText model = relu();
  model.nodes = {loop(count, condition)};
  model.initializers = std::move(constants);
  return model.model();
}

/// Nested branches, both of which are computed: 2^depth in all.
Bytes branching(int depth) {
  Bytes branch =
      ModelText{.nodes = {{"Relu", {"x"}, {"z"}}}, .inputs = {}, .outputs = {valueInfo("z", kFloat, {"2"})}}.graph();
  auto both = [&](const Bytes &output) {
    return NodeText{
        "If", {"flag"}, {output}, {graphAttribute("then_branch", branch), graphAttribute("else_branch", branch)}};
  };
  for (int i = 0; i < depth; ++i)
    branch = ModelText{.nodes = {both("z")}, .inputs = {}, .outputs = {valueInfo("z", kFloat, {"2"})}}.graph();
  ModelText model = relu();
  model.nodes = {both("y")};
  model.inputs.push_back(valueInfo("flag", kBool, {}));
  return model.model();
}

Bytes withOpset(int64_t opset) {
  ModelText model = relu();
  model.opset = opset;
  return model.model();
}

Bytes withoutOpset() { return Message().add(1, int64_t(10)).add(7, relu().graph()); }

Bytes withInput(const Bytes &input) {
  ModelText model = relu();
  model.inputs = {input};
  return model.model();
}

/// x, and a sequence to which each node adds a tensor.
Bytes longSequence(int count) {
  std::vector<NodeText> nodes{{"SequenceEmpty", {}, {"s0"}}};
  for (int i = 0; i < count; ++i)
    nodes.push_back({"SequenceInsert", {"s" + std::to_string(i), "x"}, {"s" + std::to_string(i + 1)}});
  nodes.push_back({"ConcatFromSequence", {"s" + std::to_string(count)}, {"y"}, {attribute("axis", int64_t(0))}});
  return graphOf(std::move(nodes));
}

/// The derivative of the value named `y` with respect to x.
NodeText derivative(const Bytes &y, const Bytes &result) {
  return {"Gradient", {"x"},
          {result},   {stringsAttribute("xs", {"x"}), attribute("y", y.c_str())},
          "",         "ai.onnx.preview.training"};
}
/// Nested derivatives of x * x.
std::vector<NodeText> derivatives(int order) {
  std::vector<NodeText> nodes{{"Mul", {"x", "x"}, {"d0"}}};
  for (int i = 0; i < order; ++i)
    nodes.push_back(derivative("d" + std::to_string(i), i + 1 == order ? "y" : "d" + std::to_string(i + 1)));
  return nodes;
}

} // namespace

std::vector<HostileModel> hostileGraphs() {
  Bytes x = valueInfo("x", kFloat, {"2"}), y = valueInfo("y", kFloat, {"2"}), w = floatTensor("w", {2}, {1, 2});
  ModelText twoInputs = relu(), twoOutputs = relu(), twoWeights = relu();
  twoInputs.inputs = {x, x};
  twoOutputs.outputs = {y, y};
  twoWeights.initializers = {w, w};
  NodeText act{"Relu", {"x"}, {"y"}};
  Bytes many = intTensor("many", {}, {INT64_MAX}), yes = tensorProto<char>("yes", kBool, {}, {1});
  NodeText lost{"LeakyRelu", {"x"}, {"y"}, {referenceAttribute("alpha", "slope", 1)}};
  NodeText lostTensor{"Constant", {}, {"b"}, {referenceAttribute("value", "v", 4)}};
  Bytes defaultless = Message()
                          .add(1, Bytes("f"))
                          .add(4, Bytes("a"))
                          .add(5, Bytes("b"))
                          .add(7, lostTensor)
                          .add(9, Message().add(1, Bytes()).add(2, int64_t(21)))
                          .add(10, Bytes("local"))
                          .add(11, referenceAttribute("v", "other", 4));
  return {
      {"a node that uses its own output", graphOf({{"Add", {"x", "y"}, {"y"}}}), 3,
       "\"y\" is computed by no node before it"},
      {"two nodes that need each other", graphOf({{"Add", {"x", "b"}, {"a"}}, {"Add", {"x", "a"}, {"b"}}, act}), 3,
       "\"b\" is computed by no node before it"},
      {"a weight that is missing", graphOf({{"Add", {"x", "w"}, {"y"}}}), 3, "\"w\" is computed by no node before it"},
      {"two nodes with one output", graphOf({act, act}), 3, "two values of the name \"y\""},
      {"a node that computes an input", graphOf({{"Relu", {"x"}, {"x"}}, act}), 3, "two values of the name \"x\""},
      {"two inputs of one name", twoInputs.model(), 3, "two of its inputs have one name"},
      {"two outputs of one name", twoOutputs.model(), 3, "two of its outputs have one name"},
      {"two weights of one name", twoWeights.model(), 3, "two values of the name \"w\""},
      {"an op that is not there", graphOf({{"Wonder", {"x"}, {"y"}}}), 4, "Wonder (ai.onnx 21)"},
      {"no op set", withoutOpset(), 3, "which version of the op set"},
      {"op set 0", withOpset(0), 3, "version 0 of the op set"},
      {"op set -7", withOpset(-7), 3, "version -7 of the op set"},
      {"op set 9999", withOpset(9999), 4, "op set 9999"},
      {"an input without a type", withInput(Message().add(1, Bytes("x"))), 3, "\"x\" has no type"},
      {"an input without a shape",
       withInput(Message().add(1, Bytes("x")).add(2, Message().add(1, Message().add(1, int64_t(1))))), 4,
       "does not say how many dimensions"},
      {"an input of a type that ends the world", withInput(valueInfo("x", OnnxType(1000), {"2"})), 4, "type 1000"},
      {"an input of negative size", withInput(valueInfo("x", kFloat, {"-5"})), 3, "has the size -5"},
      {"an input of 1,000 dimensions", withInput(valueInfo("x", kFloat, std::vector<Bytes>(1000, "1"))), 3,
       "more than 64 dimensions"},
      {"an input of 2^124 elements", withInput(valueInfo("x", kFloat, {"4611686018427387904", "4611686018427387904"})),
       3, "64 bits"},
      {"an input of 2^60 elements",
       ModelText{.nodes = {act},
                 .inputs = {valueInfo("x", kFloat, {"1152921504606846976"})},
                 .outputs = {valueInfo("y", kFloat, {})}}
           .model(),
       3, "memory"},
      {"a function that calls itself", calling("f", {function("f", {call("f", "a", "b")})}), 3, "in a circle"},
      {"functions that call each other",
       calling("f", {function("f", {call("g", "a", "b")}), function("g", {call("f", "a", "b")})}), 3, "in a circle"},
      {"functions 2,000 deep", chain(2000), 3, "nested too deep"},
      {"functions that double 50 times", doubling(50), 4, "expand to more than"},
      {"branches that double 13 times", branching(13), 4, "expand to more than"},
      {"an attribute of no function", graphOf({lost}), 3, "is in none"},
      {"a function's tensor that nobody gives", calling("f", {defaultless}), 3, "needs the attribute \"value\""},
      {"a loop of 2^63 - 1 iterations", looping({many, yes}, "many", "yes"), 4, "more than 1024"},
      {"a loop without end", looping({many, yes}, "", "yes"), 4, "more than 1024"},
      {"a loop without a body", graphOf({{"Loop", {"", "", "x"}, {"y"}}}), 3, "needs the attribute \"body\""},
      {"a sequence of 2,000 tensors", longSequence(2000), 4, "a sequence of more than"},
      {"a sequence as an output", graphOf({{"SequenceConstruct", {"x"}, {"y"}}}), 4, "is a sequence"},
      {"a sequence of sequences", graphOf({{"SequenceConstruct", {"x"}, {"s"}}, {"SequenceConstruct", {"s"}, {"y"}}}),
       3, "holds tensors"},
      {"the derivative of nothing", graphOf({derivative("z", "y")}), 3, "no value \"z\""},
      {"the derivative of itself", graphOf({derivative("y", "y")}), 3, "which depends on it"},
      {"two derivatives of each other", graphOf({derivative("z", "y"), derivative("y", "z")}), 3, "depends on it"},
      {"the 40th derivative", graphOf(derivatives(40)), 4, "order above 4"},
  };
}

} // namespace burin::test
