#include "frontend/onnx/import/Importer.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace burin::onnx {

namespace {

constexpr int64_t kNewestOpset = 28;
// Limit of nodes of functions and subgraphs, counted each time they are expanded: a short file can expand to any
// number.
constexpr int64_t kMaxExpanded = 1 << 13;

} // namespace

const Value *Scope::find(std::string_view name) const {
  for (const Scope *scope = this; scope; scope = scope->outer)
    if (auto at = scope->values.find(name); at != scope->values.end())
      return &at->second;
  return nullptr;
}

Location Importer::locationOf(const NodeProto &node) const {
  std::string_view output = node.outputs.empty() ? "" : node.outputs[0];
  std::string name = node.name.empty() ? std::string(node.op) + "->" + std::string(output) : std::string(node.name);
  return {detail::keepText(task.fileName + ":" + printable(name)), 0};
}

Importer::Importer(const ImportTask &task, const InputSizes &sizes)
    : task(task), model(task.model), reader(task.reader), sizes(sizes) {
  for (const FunctionProto &function : model.functions)
    functions.try_emplace({function.domain, function.name, function.overload}, &function);
}

// ---- which ops there are

const FunctionProto *Importer::findFunction(const NodeProto &node) const {
  auto at = functions.find({node.domain, node.op, node.overload});
  return at == functions.end() ? nullptr : at->second;
}

/// Reports all unsupported ops together.
void Importer::checkOps(const Location &where) const {
  std::map<std::string, int> missing; // by op with its domain and version
  std::set<const FunctionProto *> seen;
  std::vector<std::pair<const std::vector<NodeProto> *, const Opsets *>> open{{&model.graph.nodes, &model.opsets}};
  auto check = [&](const NodeProto &node, const Opsets &opsets) {
    auto version = opsets.find(node.domain);
    if (const FunctionProto *function = findFunction(node)) {
      if (seen.insert(function).second)
        open.emplace_back(&function->nodes, &function->opsets);
    } else if (!findOp(node.domain, node.op)) {
      std::string number = version == opsets.end() ? "?" : std::to_string(version->second);
      ++missing[printable(node.op) + " (" + (node.domain.empty() ? "ai.onnx" : printable(node.domain)) + " " + number +
                ")"];
    } else if (version == opsets.end()) {
      throw Error(locationOf(node), printable(node.op),
                  "the model does not say which version of the op set it is taken from; the file may be cut off");
    } else if (version->second < 1) {
      throw Error(locationOf(node), printable(node.op),
                  "the model takes it from version " + std::to_string(version->second) + " of the op set");
    } else if (node.domain.empty() && version->second > kNewestOpset) {
      throw Unsupported(where, "",
                        "it uses op set " + std::to_string(version->second) + "; burin knows those up to " +
                            std::to_string(kNewestOpset));
    }
    for (const AttributeProto &attribute : node.attributes)
      if (attribute.graph)
        open.emplace_back(&attribute.graph->nodes, &opsets);
  };
  while (!open.empty()) {
    auto [nodes, opsets] = open.back();
    open.pop_back();
    for (const NodeProto &node : *nodes)
      check(node, *opsets);
  }
  if (missing.empty())
    return;
  constexpr size_t kMostListed = 50;
  std::string list;
  for (size_t i = 0; auto &[op, count] : missing)
    if (++i <= kMostListed)
      list += "\n  " + op + (count > 1 ? " in " + std::to_string(count) + " nodes" : "");
  if (missing.size() > kMostListed)
    list += "\n  … and " + std::to_string(missing.size() - kMostListed) + " more";
  Unsupported problem(where, "", "it uses ops that burin does not have:" + list);
  if (!task.problems)
    throw problem;
  task.problems->push_back(problem.what());
}

// ---- the signature

/// Rejects sizes that no machine holds now rather than in a run.
static void checkMemory(const TensorSpec &spec, const Location &where) {
  constexpr int64_t kMostElements = int64_t(1) << 40;
  Dim count = elements(spec.shape);
  if (count.isStatic() && count.value() > kMostElements)
    throw Error(where, "", str(spec) + " has " + count.str() + " elements: more than any memory holds");
}

TensorSpec Importer::specOf(const ValueInfo &input, const Location &where) {
  const std::string what = "the input " + quoted(input.name);
  static constexpr const char *kinds[] = {"of no type", "",      "a sparse tensor",
                                          "a sequence", "a map", "an optional value"};
  if (input.kind == ValueInfo::Kind::Unknown)
    throw Error(where, "", what + " has no type");
  if (input.kind != ValueInfo::Kind::Tensor)
    throw Unsupported(where, "", what + " is " + kinds[size_t(input.kind)] + "; burin's graphs take tensors");
  TensorSpec spec{requireType(input.elementType, what, where), {}};
  if (!input.hasShape)
    throw Unsupported(where, "",
                      what +
                          " does not say how many dimensions it has; give its shape, with names for the sizes that "
                          "differ between runs: --shape " +
                          printable(input.name) + "=batch,3,224,224");
  if (narrowType(input.elementType))
    warnings->push_back(what + " is of type " + nameOf(input.elementType) + ", and takes numbers of type " +
                        std::string(name(spec.dtype)));
  spec.shape = sizes.shapeOf(input);
  checkMemory(spec, where);
  return spec;
}

/// The inputs that are not fixed.
static std::vector<const ValueInfo *> freeInputs(const ImportTask &task, const Location &where) {
  const GraphProto &graph = task.model.graph;
  std::vector<const ValueInfo *> free;
  std::set<std::string_view> initialized, declared;
  for (const TensorProto &initializer : graph.initializers)
    initialized.insert(initializer.name);
  for (const ValueInfo &input : graph.inputs)
    if (declared.insert(input.name).second && !initialized.contains(input.name) && !task.options.fixed.find(input.name))
      free.push_back(&input);
  if (declared.size() != graph.inputs.size())
    throw Error(where, "", "two of its inputs have one name");
  for (const auto &[name, tensor] : task.options.fixed)
    if (!declared.contains(name))
      throw Error(where, "", "there is no input " + quoted(name) + " to fix");
  return free;
}

std::optional<Graph> importGraph(const ImportTask &task, const Location &where) {
  constexpr int kMostPasses = 32;
  const InputSizes initial(freeInputs(task, where), task.options.sizes, where);
  InputSizes sizes = initial;
  Decisions decisions;
  struct Imported {
    Graph graph;
    std::vector<std::string> warnings;
  };
  std::optional<Imported> unlikely; // its outputs have other ranks than declared
  auto accept = [&](Imported result) {
    for (const std::string &warning : result.warnings)
      if (task.options.warn)
        task.options.warn(warning);
    return std::move(result.graph);
  };
  for (int pass = 1;; ++pass) {
    Trace::SizePairs assumed;
    std::vector<std::string> warnings, problems;
    ImportTask mine = task;
    mine.problems = task.problems ? &problems : nullptr;
    mine.decisions = &decisions;
    bool isOver = pass >= kMostPasses;
    try {
      Importer importer(mine, sizes);
      Imported result{importer.import(assumed, warnings, where), {}};
      if (!isOver && sizes.learn(assumed))
        continue;
      for (const std::vector<std::string> &more : {decisions.warnings(), sizes.warnings()})
        warnings.insert(warnings.end(), more.begin(), more.end());
      result.warnings = std::move(warnings);
      if (!importer.hasOtherRanks())
        return accept(std::move(result));
      if (!unlikely)
        unlikely = std::move(result);
      isOver = isOver || !decisions.goBack();
    } catch (const Error &) {
      if (!isOver && (sizes.learn(assumed) || sizes.learnNames()))
        continue;
      isOver = isOver || !decisions.goBack();
      if (isOver && !unlikely && problems.empty())
        throw;
      if (isOver && !unlikely) {
        *task.problems = std::move(problems);
        return std::nullopt;
      }
    }
    if (isOver)
      return accept(*std::move(unlikely));
    sizes = initial; // facts learned in the other branch do not apply
  }
}

Graph Importer::import(Trace::SizePairs &assumed, std::vector<std::string> &odd, const Location &where) {
  const StateDict &fixed = task.options.fixed;
  warnings = &odd;
  checkOps(where);
  if (model.graph.outputs.empty())
    throw Error(where, "", "the graph has no outputs");
  std::vector<const ValueInfo *> free = freeInputs(task, where);
  std::vector<TensorSpec> specs;
  std::vector<std::string> names, outputNames;
  for (const ValueInfo *input : free) {
    specs.push_back(specOf(*input, where));
    names.emplace_back(input->name);
  }
  for (const ValueInfo &output : model.graph.outputs)
    outputNames.emplace_back(output.name);
  if (std::set(outputNames.begin(), outputNames.end()).size() != outputNames.size())
    throw Error(where, "", "two of its outputs have one name");
  detail::TensorNames weights;
  auto typed = [](Value value, DataType type) {
    value.narrow = narrowType(type) ? type : DataType::Undefined;
    return value;
  };
  std::map<std::string_view, DataType> types; // of inputs and weights
  for (const TensorProto &initializer : model.graph.initializers)
    types[initializer.name] = initializer.dataType;
  for (const ValueInfo &input : model.graph.inputs)
    types[input.name] = input.elementType;
  for (const TensorProto &initializer : model.graph.initializers)
    if (!fixed.find(std::string(initializer.name)))
      weights.emplace_back(std::string(initializer.name), read(initializer, where));
  auto body = [&](std::span<const Tensor> inputs, const Location &) {
    Trace::active()->assumeSizes(assumed, [&](const Dim &a, const Dim &b) { return sizes.mayRepeat(a, b); });
    for (const auto &[bounded, size] : sizes.ranges())
      requireEqual(bounded, size);
    Scope scope(model.opsets, nullptr);
    for (const auto &[name, tensor] : fixed)
      define(name, typed(tensor, types[name]), scope, where);
    for (const auto &[name, tensor] : weights)
      define(name, typed(tensor, types[name]), scope, where);
    for (size_t i = 0; i < inputs.size(); ++i)
      define(free[i]->name, typed(inputs[i], free[i]->elementType), scope, where);
    return runModel(scope, where);
  };
  return detail::trace(body, specs, names, outputNames, weights, where);
}

std::vector<Tensor> Importer::runModel(Scope &scope, const Location &where) {
  std::vector<Tensor> results;
  std::vector<Value> values = runNodes(model.graph, scope);
  if (task.problems && !task.problems->empty())
    throw Error(where, "", task.problems->front());
  std::unordered_map<std::string_view, const NodeProto *> makers;
  for (const NodeProto &node : model.graph.nodes)
    for (std::string_view output : node.outputs)
      makers.emplace(output, &node);
  auto placeOf = [&](std::string_view name) {
    auto maker = makers.find(name);
    return maker == makers.end() ? where : locationOf(*maker->second);
  };
  for (const ValueInfo &declared : model.graph.values)
    if (const Value *value = scope.find(declared.name))
      checkType(declared, *value, placeOf(declared.name));
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueInfo &declared = model.graph.outputs[i];
    std::string name = quoted(declared.name);
    if (values[i].sequence)
      throw Unsupported(where, "", "the output " + name + " is a sequence; burin's graphs give tensors");
    if (!values[i].defined())
      throw Error(where, "", "the output " + name + " is computed by no node");
    checkType(declared, values[i], placeOf(declared.name));
    checkShape(declared, values[i], placeOf(declared.name));
    results.push_back(tensorOf(values[i]));
  }
  return results;
}

// ---- branches

bool Decisions::take(const std::string &place, const std::string &branches) {
  for (Taken &known : taken)
    if (known.place == place) {
      known.branches = branches;
      return known.isFirst;
    }
  taken.push_back({place, branches});
  return true;
}

bool Decisions::goBack() {
  while (!taken.empty() && !taken.back().isFirst)
    taken.pop_back();
  if (taken.empty())
    return false;
  taken.back().isFirst = false;
  return true;
}

void Importer::warn(const NodeProto &node, const std::string &what) {
  std::string warning = locationOf(node).str() + ": " + what;
  if (std::find(warnings->begin(), warnings->end(), warning) == warnings->end())
    warnings->push_back(std::move(warning));
}

bool Importer::decide(const NodeProto &node, const std::string &branches) {
  return task.decisions->take(locationOf(node).str(), branches);
}

std::vector<std::string> Decisions::warnings() const {
  std::vector<std::string> list;
  for (const Taken &one : taken)
    list.push_back(one.place + ": its branches give " + one.branches + "; runs for whose sizes the condition is " +
                   (one.isFirst ? "false" : "true") + " are refused");
  return list;
}

// ---- declared and computed types of values

static TensorSpec computedSpec(const Value &value) {
  if (value.contents)
    return {value.contents->dtype, Shape(value.contents->shape.begin(), value.contents->shape.end())};
  return tensorOf(value).spec();
}

/// Checks the declared element type of every value. The declared shape of inner values is ignored, because tools that
/// change models often leave it outdated.
void Importer::checkType(const ValueInfo &declared, const Value &value, const Location &where) const {
  if (declared.kind != ValueInfo::Kind::Tensor || !value.defined() || value.sequence ||
      (declared.elementType == DataType::String && value.narrow == DataType::String))
    return;
  DType dtype = computedSpec(value).dtype;
  if (declared.elementType != DataType::Undefined && dtypeOf(declared.elementType) != dtype)
    throw Error(where, "",
                "the model declares " + quoted(declared.name) + " as " + nameOf(declared.elementType) +
                    ", but it is computed as " + std::string(name(dtype)));
}

/// Warns of an output whose sizes are not the declared ones, as ONNX Runtime does. Names and missing sizes are not
/// checked, nor are empty shapes, which some tools write for unknown ones.
void Importer::checkShape(const ValueInfo &declared, const Value &value, const Location &where) const {
  if (declared.kind != ValueInfo::Kind::Tensor || declared.shape.empty())
    return;
  Shape shape = computedSpec(value).shape;
  otherRanks = otherRanks || declared.shape.size() != shape.size();
  bool fits = declared.shape.size() == shape.size();
  std::string text;
  for (size_t i = 0; i < declared.shape.size(); ++i) {
    const DimProto &dim = declared.shape[i];
    fits = fits && (dim.value < 0 || !shape[i].isStatic() || shape[i] == Dim(dim.value));
    text += (i ? ", " : "") + (dim.value >= 0      ? std::to_string(dim.value)
                               : dim.param.empty() ? std::string("?")
                                                   : printable(dim.param));
  }
  if (!fits)
    warnings->push_back((where.str().empty() ? "" : where.str() + ": ") + "the model declares the output " +
                        quoted(declared.name) + " with the shape [" + text + "], but it is computed as " + str(shape));
}

// ---- nodes

void Importer::define(std::string_view name, Value value, Scope &scope, const Location &where) {
  if (!scope.define(name, std::move(value)))
    throw Error(where, "", "there are two values of the name " + quoted(name));
}

std::vector<Value> Importer::runNodes(const std::vector<NodeProto> &nodes, std::vector<std::string_view> outputs,
                                      Scope &scope) {
  scope.nodes = &nodes;
  scope.outputs = std::move(outputs);
  for (const NodeProto &node : nodes)
    if (!scope.isDone)
      runOrReport(node, scope);
  std::vector<Value> results;
  for (std::string_view output : scope.outputs) {
    const Value *value = scope.find(output);
    results.push_back(value ? *value : Value());
  }
  return results;
}

std::vector<Value> Importer::runNodes(const GraphProto &graph, Scope &scope) {
  std::vector<std::string_view> outputs;
  for (const ValueInfo &output : graph.outputs)
    outputs.push_back(output.name);
  return runNodes(graph.nodes, std::move(outputs), scope);
}

/// In a search for problems, a node of the main graph with a problem invalidates its outputs, and the search continues.
void Importer::runOrReport(const NodeProto &node, Scope &scope) {
  if (!task.problems || depth > 0)
    return runNode(node, scope);
  auto abandon = [&] {
    for (std::string_view output : node.outputs) {
      Value value;
      value.isBroken = true;
      if (!output.empty())
        scope.define(output, value);
    }
  };
  if (!findFunction(node) && !findOp(node.domain, node.op)) // checkOps has reported it
    return abandon();
  try {
    runNode(node, scope);
  } catch (const Error &error) {
    task.problems->push_back(error.what());
    abandon();
  } catch (Broken) {
    abandon();
  }
}

void Importer::runNode(const NodeProto &node, Scope &scope) {
  Location place = locationOf(node);
  LocationScope named(place);
  if (depth > 0 && ++expanded > kMaxExpanded)
    throw Unsupported(place, "",
                      "its loops, branches, functions and gradients expand to more than " +
                          std::to_string(kMaxExpanded) + " nodes");
  Values results = translate(node, scope);
  if (results.size() > node.outputs.size())
    results.resize(node.outputs.size());
  for (const Value &result : results)
    if (result.tensor.defined())
      checkMemory(result.tensor.spec(), place);
  for (size_t i = 0; i < results.size(); ++i)
    if (!node.outputs[i].empty())
      define(node.outputs[i], std::move(results[i]), scope, place);
}

Values Importer::translate(const NodeProto &proto, Scope &scope) {
  if (const FunctionProto *function = findFunction(proto))
    return callFunction(*function, proto, scope);
  Node node(*this, proto, scope);
  if (std::optional<Values> known = propagateContents(node)) {
    keepNarrow(node, *known);
    return *std::move(known);
  }
  const OpEntry &op = *findOp(proto.domain, proto.op);
  for (size_t i = 0; i < op.ranks.size(); ++i)
    if (op.ranks[i] > 0)
      node.requireRank(i, op.ranks[i]);
  Values results = op.handler(node);
  keepNarrow(node, results);
  return results;
}

Values Importer::callFunction(const FunctionProto &function, const NodeProto &proto, Scope &scope) {
  Node call(*this, proto, scope);
  Deeper deeper(depth, locationOf(proto));
  std::unordered_map<std::string_view, const AttributeProto *> attributes;
  for (const AttributeProto &attribute : function.defaults)
    attributes[attribute.name] = &attribute;
  for (const AttributeProto &attribute : proto.attributes) {
    const AttributeProto *given = &attribute;
    if (!attribute.reference.empty()) {
      auto at = scope.attributes ? scope.attributes->find(attribute.reference) : decltype(attributes)::const_iterator();
      given = scope.attributes && at != scope.attributes->end() ? at->second : nullptr;
    }
    if (given)
      attributes[attribute.name] = given;
  }
  Scope inner(function.opsets, nullptr);
  inner.attributes = &attributes;
  for (size_t i = 0; i < function.inputs.size(); ++i)
    inner.define(function.inputs[i], call.has(i) ? call.value(i) : Value());
  std::vector<Value> results = runNodes(function.nodes, {function.outputs.begin(), function.outputs.end()}, inner);
  return Values(results.begin(), results.end());
}

std::vector<Value> Importer::runSubgraph(const GraphProto &graph, const std::vector<Value> &arguments, Scope &outer) {
  Deeper deeper(depth, detail::inScope({}));
  Scope scope(outer.opsets, &outer);
  scope.attributes = outer.attributes;
  for (size_t i = 0; i < graph.inputs.size() && i < arguments.size(); ++i)
    scope.define(graph.inputs[i].name, arguments[i]);
  for (const TensorProto &initializer : graph.initializers) { // also the defaults of inputs
    Value value = read(initializer, detail::inScope({}));
    value.narrow = narrowType(initializer.dataType) ? initializer.dataType : DataType::Undefined;
    scope.define(initializer.name, std::move(value));
  }
  return runNodes(graph, scope);
}

} // namespace burin::onnx
