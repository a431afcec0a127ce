// Walks the nodes of a model and its subgraphs and functions.
#pragma once
#include "frontend/onnx/Node.h"
#include "frontend/onnx/Tensors.h"
#include <unordered_map>

namespace burin::onnx {

/// The values by name in a graph; names of a surrounding graph are visible, those of a caller of a function are not.
class Scope {
public:
  Scope(const Opsets &opsets, Scope *outer) : opsets(opsets), outer(outer) {}
  const Value *find(std::string_view name) const;
  void define(std::string_view name, Value value) { values.insert_or_assign(name, std::move(value)); }

  const Opsets &opsets;
  /// In a function: the attributes of the call, by name; null for those without a value.
  const std::unordered_map<std::string_view, const AttributeProto *> *attributes = nullptr;

private:
  Scope *outer;
  std::unordered_map<std::string_view, Value> values;
};

class Importer {
public:
  Importer(const ModelProto &model, TensorReader &reader, std::string fileName)
      : model(model), reader(reader), fileName(std::move(fileName)) {}

  Graph import(const StateDict &fixed, const Location &where);

  std::vector<Value> runSubgraph(const GraphProto &graph, const std::vector<Value> &arguments, Scope &outer);
  Tensor read(const TensorProto &proto, const Location &where) { return reader.read(proto, where); }
  /// Where a node is, for errors and profiles: "model.onnx:conv1".
  Location locationOf(const NodeProto &node) const;

private:
  const ModelProto &model;
  TensorReader &reader;
  std::string fileName;
  std::vector<std::string> symbols; // the names of symbolic sizes, by the order of `parameters`
  std::vector<std::string> parameters;
  int depth = 0; // of functions and subgraphs

  void checkOps(const Location &where) const;
  TensorSpec specOf(const ValueInfo &input, const Location &where);
  Dim symbol(std::string parameter);
  std::vector<Tensor> runModel(const std::vector<Value> &arguments, const std::vector<std::string_view> &names);
  std::vector<Value> runNodes(const GraphProto &graph, Scope &scope);
  void runNode(const NodeProto &node, Scope &scope);
  Values translate(const NodeProto &node, Scope &scope);
  const FunctionProto *findFunction(const NodeProto &node) const;
  Values callFunction(const FunctionProto &function, const NodeProto &node, Scope &scope);
};

} // namespace burin::onnx
