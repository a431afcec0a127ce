// Walks the nodes of a model and its subgraphs and functions.
#pragma once
#include "frontend/onnx/Node.h"
#include "frontend/onnx/Tensors.h"
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

namespace burin::onnx {

/// The values by name in a graph; names of a surrounding graph are visible, those of a caller of a function are not.
class Scope {
public:
  Scope(const Opsets &opsets, Scope *outer) : opsets(opsets), outer(outer) {}
  const Value *find(std::string_view name) const;
  /// False if the name stands for something in this scope already.
  bool define(std::string_view name, Value value) { return values.try_emplace(name, std::move(value)).second; }

  const Opsets &opsets;
  /// In a function: the attributes of the call, by name; null for those without a value.
  const std::unordered_map<std::string_view, const AttributeProto *> *attributes = nullptr;

private:
  Scope *outer;
  std::unordered_map<std::string_view, Value> values;
};

class Importer {
public:
  Importer(const ModelProto &model, TensorReader &reader, std::string fileName);

  Graph import(const StateDict &fixed, const Location &where);

  std::vector<Value> runSubgraph(const GraphProto &graph, const std::vector<Value> &arguments, Scope &outer);
  Tensor read(const TensorProto &proto, const Location &where) { return reader.read(proto, where); }
  /// Where a node is, for errors and profiles: "model.onnx:conv1".
  Location locationOf(const NodeProto &node) const;

private:
  const ModelProto &model;
  TensorReader &reader;
  std::string fileName;
  using FunctionName = std::tuple<std::string_view, std::string_view, std::string_view>; // domain, name, overload
  std::map<FunctionName, const FunctionProto *> functions;
  std::map<std::string, Dim> symbols; // of symbolic sizes, by parameter
  std::set<std::string> symbolNames;
  std::set<std::string_view> named;           // the sizes of inputs that are a name
  std::map<std::string, size_t> symbolCounts; // of names with one stem
  int depth = 0;                              // of functions and subgraphs
  int64_t expanded = 0;                       // nodes of functions and subgraphs so far

  void checkOps(const Location &where) const;
  TensorSpec specOf(const ValueInfo &input, const Location &where);
  void collectNames();
  std::optional<Dim> expression(std::string_view parameter);
  void checkType(const ValueInfo &declared, const Value &value, const Location &where) const;
  void checkShape(const ValueInfo &declared, const Value &value, const Location &where) const;
  Dim symbol(std::string parameter);
  std::vector<Tensor> runModel(Scope &scope, const Location &where);
  static void define(std::string_view name, Value value, Scope &scope, const Location &where);
  std::vector<Value> runNodes(const GraphProto &graph, Scope &scope);
  void runNode(const NodeProto &node, Scope &scope);
  Values translate(const NodeProto &node, Scope &scope);
  const FunctionProto *findFunction(const NodeProto &node) const;
  Values callFunction(const FunctionProto &function, const NodeProto &node, Scope &scope);
};

} // namespace burin::onnx
