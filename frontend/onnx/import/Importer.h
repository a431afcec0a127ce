// Import of the nodes of a model, its subgraphs and functions.
#pragma once
#include "frontend/onnx/import/InputSizes.h"
#include "frontend/onnx/import/Node.h"
#include "frontend/onnx/import/Tensors.h"
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

namespace burin::onnx {

/// The values of a graph by name; names of enclosing graphs are visible, those of a caller of a function are not.
class Scope {
public:
  Scope(const Opsets &opsets, Scope *outer) : opsets(opsets), outer(outer) {}
  const Value *find(std::string_view name) const;
  /// Returns false if the name is already defined in this scope.
  bool define(std::string_view name, Value value) { return values.try_emplace(name, std::move(value)).second; }

  /// The node that computes a value of this graph or an enclosing one, with its nesting level and its index among the
  /// nodes. Null if there is none.
  struct Maker {
    size_t level = 0, index = 0;
    const NodeProto *node = nullptr;
  };
  Maker makerOf(std::string_view name) const;

  const Opsets &opsets;
  /// The nodes of the graph, and the names of its outputs.
  const std::vector<NodeProto> *nodes = nullptr;
  std::vector<std::string_view> outputs;
  /// Whether a continuation has taken all nodes that are left.
  bool isDone = false;
  /// In a function: the attributes of the call by name; null for those without a value.
  const std::unordered_map<std::string_view, const AttributeProto *> *attributes = nullptr;

private:
  Scope *outer;
  std::unordered_map<std::string_view, Value> values;
  mutable std::unordered_map<std::string_view, size_t> makers; // by output; filled on first use
};

/// Calls `visit` for the name of each value that the node may use: its inputs, outer values of its subgraphs, and names
/// in attributes, as in Gradient.
void forEachUse(const NodeProto &root, const std::function<void(std::string_view)> &visit);

/// Increments the nesting depth during its lifetime.
class Deeper {
public:
  Deeper(int &depth, const Location &where) : depth(depth) {
    constexpr int kMaxDepth = 64; // of nested functions and subgraphs
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

/// The branches taken by Ifs over sizes that cannot be functions of the graph, by node. The first branch is tried
/// first; if the model fails to import, the search backtracks to the last If with another branch.
class Decisions {
public:
  /// `branches` describes what they give.
  bool take(const std::string &place, const std::string &branches);
  /// Returns false if there is no alternative left.
  bool goBack();
  /// One per branch taken. A later pass may know the condition from sizes that the branch needs.
  std::vector<std::string> warnings() const;

private:
  struct Taken {
    std::string place, branches;
    bool isFirst = true;
  };
  std::vector<Taken> taken; // in node order
};

/// Input of an import.
struct ImportTask {
  const ModelProto &model;
  TensorReader &reader;
  std::string fileName;
  const OnnxOptions &options;
  std::vector<std::string> *problems; // see problemsOf; null: throw the first problem
  Decisions *decisions = nullptr;     // of importGraph, kept between its passes
};
/// Imports the model, repeatedly with fewer symbols as long as ops need sizes of inputs to be equal. Returns nullopt if
/// there are problems and `problems` is set.
std::optional<Graph> importGraph(const ImportTask &task, const Location &where);

/// One pass over the model.
class Importer {
public:
  Importer(const ImportTask &task, const InputSizes &sizes);

  /// Adds the sizes that are assumed to be equal to `assumed`, and warnings to `warnings`.
  Graph import(Trace::SizePairs &assumed, std::vector<std::string> &warnings, const Location &where);

  /// The value called `name` in the graph of the node `by` for given values of others.
  Value recompute(std::string_view name, const GivenValues &given, const NodeProto &by, Scope &scope);
  std::vector<Value> runSubgraph(const GraphProto &graph, const std::vector<Value> &arguments, Scope &outer);
  /// See Node::continuation.
  std::optional<Continuation> continuationOf(const NodeProto &node, Scope &scope);
  Values runContinuation(const Continuation &continuation, const NodeProto &node, const Values &results, Scope &outer);
  Values finish(const Continuation &continuation, const NodeProto &node, Values values, Scope &scope);
  void warn(const NodeProto &node, const std::string &what);
  /// The branch that an If takes; see Decisions.
  bool decide(const NodeProto &node, const std::string &branches);
  Tensor read(const TensorProto &proto, const Location &where) { return reader.read(proto, where); }
  /// Keeps a generator alive during the import, so that it becomes a state of the graph.
  Generator keep(Generator generator) { return generators.emplace_back(std::move(generator)); }
  /// Whether an output has another number of dimensions than the model declares.
  bool hasOtherRanks() const { return otherRanks; }
  bool isOfInputs(const Dim::Symbol &symbol) const { return sizes.contains(symbol); }
  /// The location of a node for errors and profiles: "model.onnx:conv1".
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
  int recomputing = 0;  // nesting of recompute()
  int64_t followed = 0; // nodes visited by recompute() so far
  std::vector<std::string> *warnings = nullptr;
  mutable bool otherRanks = false;

  std::vector<const NodeProto *> nodesBehind(std::string_view name, const GivenValues &given, const NodeProto &by,
                                             const Scope &scope);
  void checkOps(const Location &where) const;
  TensorSpec specOf(const ValueInfo &input, const Location &where);
  void checkType(const ValueInfo &declared, const Value &value, const Location &where) const;
  void checkShape(const ValueInfo &declared, const Value &value, const Location &where) const;
  std::vector<Tensor> runModel(Scope &scope, const Location &where);
  static void define(std::string_view name, Value value, Scope &scope, const Location &where);
  std::vector<Value> runNodes(const std::vector<NodeProto> &nodes, std::vector<std::string_view> outputs, Scope &scope);
  std::vector<Value> runNodes(const GraphProto &graph, Scope &scope);
  void runNode(const NodeProto &node, Scope &scope);
  void runOrReport(const NodeProto &node, Scope &scope);
  Values translate(const NodeProto &node, Scope &scope);
  const FunctionProto *findFunction(const NodeProto &node) const;
  Values callFunction(const FunctionProto &function, const NodeProto &node, Scope &scope);
};

} // namespace burin::onnx
