#include "test/onnx/Hostile.h"
#include <fstream>

namespace burin::test {

namespace {

/// A field that declares a length of `length` bytes.
Bytes promise(uint32_t tag, uint64_t length) {
  Bytes bytes(1, char(tag << 3 | 2));
  for (; length >= 128; length >>= 7)
    bytes += char(length | 128);
  return bytes + char(length);
}

/// Nested graphs.
Bytes nested(int depth) {
  Bytes graph = relu().graph();
  for (int i = 0; i < depth; ++i) {
    NodeText branch{"If", {"x"}, {"y"}, {graphAttribute("then_branch", graph), graphAttribute("else_branch", graph)}};
    if (i > 3) // keeps the size from doubling at every level
      branch.attributes.pop_back();
    graph = Message().add(1, branch).add(12, valueInfo("y", kFloat, {"2"}));
  }
  return Message().add(1, int64_t(10)).add(7, graph).add(8, Message().add(1, Bytes()).add(2, int64_t(21)));
}

/// An input type of nested sequences.
Bytes nestedType(int depth) {
  Bytes type = Message().add(1, Message().add(1, int64_t(kFloat)));
  for (int i = 0; i < depth; ++i)
    type = Message().add(4, Message().add(1, type));
  return Message().add(1, Bytes("x")).add(2, type);
}

/// Writes a model whose node has a name of 20 MB, where `place` puts it.
std::function<void(const std::string &)> giant(void (*place)(NodeText &, const Bytes &)) {
  return [=](const std::string &folder) {
    ModelText model = relu();
    place(model.nodes[0], Bytes(20 << 20, 'n'));
    std::ofstream(folder + "/model.onnx", std::ios::binary) << model.model();
  };
}

Bytes withInput(const Bytes &input) {
  ModelText model = relu();
  model.inputs = {input};
  return model.model();
}

} // namespace

std::vector<HostileModel> hostileFiles() {
  Bytes whole = relu().model();
  ModelText noOutputs = relu(), noNodes = relu();
  noOutputs.outputs.clear();
  noNodes.nodes.clear();
  ModelText notUtf8 = relu(), control = relu();
  notUtf8.nodes[0].name = "\xff\xfe";
  control.nodes[0].name = "\x1b[2Jline\nbreak";
  control.nodes[0].inputs = {"z"};
  return {
      {"an empty file", "", 3, "has no graph"},
      {"text", "This is not a model.\n", 3, "cut off or damaged"},
      {"zeros", Bytes(1000, '\0'), 3, "cut off or damaged"},
      {"the first byte", whole.substr(0, 1), 3, "cut off or damaged"},
      {"half of a model", whole.substr(0, whole.size() / 2), 3, "cut off"},
      {"all but the last byte", whole.substr(0, whole.size() - 1), 3, "cut off or damaged"},
      {"a field of 2 GB in a file of ten bytes", promise(7, 1u << 31) + "graph", 3, "cut off or damaged"},
      {"a field of 2^63 bytes", promise(7, uint64_t(1) << 63) + "graph", 3, "cut off or damaged"},
      {"a number without end", Bytes(1, '\x08') + Bytes(20, '\xff'), 3, "cut off or damaged"},
      {"a graph that is a number", Message().add(7, int64_t(7)), 3, "of the wrong kind"},
      {"a group, which protobuf has given up", Bytes("\x3b\x3c"), 3, "cut off or damaged"},
      {"no graph", Message().add(1, int64_t(10)), 3, "has no graph"},
      {"an empty graph", Message().add(1, int64_t(10)).add(7, Bytes()), 3, "no outputs"},
      {"no outputs", noOutputs.model(), 3, "no outputs"},
      {"no nodes", noNodes.model(), 3, "\"y\" is computed by no node"},
      {"a node without an op",
       ModelText{.nodes = {{"", {"x"}, {"y"}}}, .inputs = relu().inputs, .outputs = relu().outputs}.model(), 3,
       "no op_type"},
      {"subgraphs 300 deep", nested(300), 3, "nested deeper"},
      {"an input's type 1,000 deep", withInput(nestedType(1000)), 4, "is a sequence"},
      {"a node's name of 20 MB", "", 3, "nnn…",
       giant([](NodeText &node, const Bytes &name) { node.name = name, node.inputs = {"z"}; })},
      {"an op's name of 20 MB", "", 4, "nnn…", giant([](NodeText &node, const Bytes &name) { node.op = name; })},
      {"a value's name of 20 MB", "", 3, "nnn…",
       giant([](NodeText &node, const Bytes &name) { node.inputs = {name}; })},
      {"a name that is not UTF-8", notUtf8.model(), 3, "not UTF-8"},
      {"a name with control characters", control.model(), 3, "?[2Jline?break"},
  };
}

} // namespace burin::test
