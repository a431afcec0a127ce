// Walks the nodes of a model and its subgraphs and functions.
#pragma once
#include "frontend/onnx/import/InputSizes.h"
#include "frontend/onnx/import/Node.h"
#include "frontend/onnx/import/Tensors.h"
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

  /// The node that gives a value of this graph or a surrounding one, and where it stands: how many graphs surround its
  /// own, then its number among the nodes. The node is null if there is none.
  struct Maker {
    size_t level = 0, index = 0;
    const NodeProto *node = nullptr;
  };
  Maker makerOf(std::string_view name) const;

  const Opsets &opsets;
  /// Of the graph.
  const std::vector<NodeProto> *nodes = nullptr;
  /// In a function: the attributes of the call, by name; null for those without a value.
  const std::unordered_map<std::string_view, const AttributeProto *> *attributes = nullptr;

private:
  Scope *outer;
  std::unordered_map<std::string_view, Value> values;
  mutable std::unordered_map<std::string_view, size_t> makers; // by output; filled when one is asked for
};

/// While one lives, nodes run one level deeper.
class Deeper {
public:
  Deeper(int &depth, const Location &where) : depth(depth) {
    constexpr int kMaxDepth = 64; // of functions and subgraphs within each other
    if (++depth > kMaxDepth) {
      --depth;
      throw Error(where, "", "functions call each other in a circle, or subgraphs and functions are nested too deep");
    }
  }
  ~Deeper() { --depth; }
  Deeper(const Deeper &) = delete;
  Deeper &operator=(const Deeper &) = delete;

private:
  int &depth;
};

/// Which branches the Ifs over sizes take that cannot be functions of the graph, by the places of the nodes. The first
/// branch is tried first; if the model does not fit, the search goes back to the last If that has another one.
class Decisions {
public:
  bool take(const std::string &place);
  /// False if there is no other choice.
  bool goBack();

private:
  std::vector<std::pair<std::string, bool>> taken; // in the order of the nodes
};

/// What an import is given.
struct ImportTask {
  const ModelProto &model;
  TensorReader &reader;
  std::string fileName;
  const OnnxOptions &options;
  std::vector<std::string> *problems; // see problemsOf; null: the first one is thrown
  Decisions *decisions = nullptr;     // of importGraph, across its passes
};
/// Imports the model, again with fewer symbols as long as ops need sizes of inputs to be equal.
/// Nullopt if there are problems and they are asked for.
std::optional<Graph> importGraph(const ImportTask &task, const Location &where);

/// One pass over the model.
class Importer {
public:
  Importer(const ImportTask &task, const InputSizes &sizes);

  /// Adds the sizes that are taken to be equal to `assumed`, and what is odd to `warnings`.
  Graph import(Trace::SizePairs &assumed, std::vector<std::string> &warnings, const Location &where);

  /// What the value called `name` in the graph of the node `by` is when others have the values `given`.
  Value recompute(std::string_view name, const GivenValues &given, const NodeProto &by, Scope &scope);
  std::vector<Value> runSubgraph(const GraphProto &graph, const std::vector<Value> &arguments, Scope &outer);
  void warn(const NodeProto &node, const std::string &what);
  /// Which branch an If takes, with a warning.
  bool decide(const NodeProto &node);
  Tensor read(const TensorProto &proto, const Location &where) { return reader.read(proto, where); }
  /// Keeps a generator as long as the import takes, so that it becomes a state of the graph.
  Generator keep(Generator generator) { return generators.emplace_back(std::move(generator)); }
  /// Where a node is, for errors and profiles: "model.onnx:conv1".
  Location locationOf(const NodeProto &node) const;

private:
  const ImportTask &task;
  const ModelProto &model;
  TensorReader &reader;
  const InputSizes &sizes;
  using FunctionName = std::tuple<std::string_view, std::string_view, std::string_view>; // domain, name, overload
  std::map<FunctionName, const FunctionProto *> functions;
  std::vector<Generator> generators;
  int depth = 0;        // of functions and subgraphs
  int64_t expanded = 0; // nodes of functions and subgraphs so far
  int recomputing = 0;  // recompute() within each other
  int64_t followed = 0; // nodes that recompute() has looked at so far
  std::vector<std::string> *warnings = nullptr;

  std::vector<const NodeProto *> nodesBehind(std::string_view name, const GivenValues &given, const NodeProto &by,
                                             const Scope &scope);
  void checkOps(const Location &where) const;
  TensorSpec specOf(const ValueInfo &input, const Location &where);
  void checkType(const ValueInfo &declared, const Value &value, const Location &where) const;
  void checkShape(const ValueInfo &declared, const Value &value, const Location &where) const;
  std::vector<Tensor> runModel(Scope &scope, const Location &where);
  static void define(std::string_view name, Value value, Scope &scope, const Location &where);
  std::vector<Value> runNodes(const GraphProto &graph, Scope &scope);
  void runNode(const NodeProto &node, Scope &scope);
  void runOrReport(const NodeProto &node, Scope &scope);
  Values translate(const NodeProto &node, Scope &scope);
  const FunctionProto *findFunction(const NodeProto &node) const;
  Values callFunction(const FunctionProto &function, const NodeProto &node, Scope &scope);
};

} // namespace burin::onnx
