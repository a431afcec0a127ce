#include "frontend/onnx/import/Importer.h"
#include "frontend/tensor/LocationScope.h"
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace burin::onnx {

namespace {

constexpr int64_t kNewestOpset = 28;
// Nodes of functions and subgraphs, each time they run: a short file can call for any number of them.
constexpr int64_t kMaxExpanded = 1 << 13;

std::string identifierOf(std::string_view name) {
  std::string out(name.substr(0, 64));
  for (char &c : out)
    if (!std::isalnum(static_cast<unsigned char>(c)))
      c = '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])))
    out = "n" + out;
  for (const char *reserved : {"min", "max", "mod", "floordiv", "ceildiv"})
    if (out == reserved)
      out += "_";
  return out;
}

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
  return {detail::keepText(fileName + ":" + printable(name)), 0};
}

Importer::Importer(const ModelProto &model, TensorReader &reader, std::string fileName)
    : model(model), reader(reader), fileName(std::move(fileName)) {
  for (const FunctionProto &function : model.functions)
    functions.try_emplace({function.domain, function.name, function.overload}, &function);
}

// ---- which ops there are

const FunctionProto *Importer::findFunction(const NodeProto &node) const {
  auto at = functions.find({node.domain, node.op, node.overload});
  return at == functions.end() ? nullptr : at->second;
}

/// All ops without a translation are reported at once.
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
  throw Unsupported(where, "", "it uses ops that burin does not have:" + list);
}

// ---- the signature

/// Every dim_param that is a name.
void Importer::collectNames() {
  for (const ValueInfo &input : model.graph.inputs)
    for (const DimProto &dim : input.shape)
      if (dim.value < 0 && !dim.param.empty() && identifierOf(dim.param) == dim.param)
        named.insert(dim.param);
}

/// Exporters also write sums and products of names, such as "past + sequence"; they count if the names are sizes too.
std::optional<Dim> Importer::expression(std::string_view parameter) {
  std::optional<Dim> parsed = Dim::parse(parameter);
  if (!parsed || parsed->isStatic() || named.contains(parameter))
    return std::nullopt;
  for (const std::string &name : parsed->symbols())
    if (!named.contains(name))
      return std::nullopt;
  return parsed->substitute([&](std::string_view name) { return symbol(std::string(name)); });
}

/// A symbol for a dim_param, or for a size without a name. Different ones never share a symbol.
Dim Importer::symbol(std::string parameter) {
  auto known = symbols.find(parameter);
  if (known != symbols.end())
    return known->second;
  std::string stem = identifierOf(parameter), name = stem;
  while (!symbolNames.insert(name).second)
    name = stem + "_" + std::to_string(++symbolCounts[stem]);
  return symbols.emplace(std::move(parameter), Dim(name)).first->second;
}

/// What no machine holds is refused now rather than when the graph runs.
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
    throw Unsupported(where, "", what + " does not say how many dimensions it has; give its shape in the model");
  for (const DimProto &dim : input.shape)
    if (dim.value >= 0)
      spec.shape.push_back(dim.value);
    else if (std::optional<Dim> computed = expression(dim.param))
      spec.shape.push_back(*std::move(computed));
    else
      spec.shape.push_back(symbol(!dim.param.empty()
                                      ? std::string(dim.param)
                                      : std::string(input.name) + "_" + std::to_string(spec.shape.size())));
  checkMemory(spec, where);
  return spec;
}

Graph Importer::import(const StateDict &fixed, const Location &where) {
  checkOps(where);
  if (model.graph.outputs.empty())
    throw Error(where, "", "the graph has no outputs");
  collectNames();
  std::vector<TensorSpec> specs;
  std::vector<std::string> names, outputNames;
  std::vector<std::string_view> free; // inputs that stay inputs
  std::set<std::string_view> initialized, declared;
  for (const TensorProto &initializer : model.graph.initializers)
    initialized.insert(initializer.name);
  for (const ValueInfo &input : model.graph.inputs)
    if (declared.insert(input.name).second && !initialized.contains(input.name) && !fixed.find(input.name)) {
      specs.push_back(specOf(input, where));
      names.emplace_back(input.name);
      free.push_back(input.name);
    }
  if (declared.size() != model.graph.inputs.size())
    throw Error(where, "", "two of its inputs have one name");
  for (const auto &[name, tensor] : fixed)
    if (!declared.contains(name))
      throw Error(where, "", "there is no input " + quoted(name) + " to fix");
  for (const ValueInfo &output : model.graph.outputs)
    outputNames.emplace_back(output.name);
  if (std::set(outputNames.begin(), outputNames.end()).size() != outputNames.size())
    throw Error(where, "", "two of its outputs have one name");
  detail::TensorNames weights;
  for (const TensorProto &initializer : model.graph.initializers)
    if (!fixed.find(std::string(initializer.name)))
      weights.emplace_back(std::string(initializer.name), read(initializer, where));
  auto body = [&](std::span<const Tensor> inputs, const Location &) {
    Scope scope(model.opsets, nullptr);
    for (const auto &[name, tensor] : fixed)
      define(name, tensor, scope, where);
    for (const auto &[name, tensor] : weights)
      define(name, tensor, scope, where);
    for (size_t i = 0; i < inputs.size(); ++i)
      define(free[i], inputs[i], scope, where);
    return runModel(scope, where);
  };
  return detail::trace(body, specs, names, outputNames, weights, where);
}

std::vector<Tensor> Importer::runModel(Scope &scope, const Location &where) {
  std::vector<Tensor> results;
  std::vector<Value> values = runNodes(model.graph, scope);
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

// ---- what the model says about its values, and what they are

static TensorSpec computedSpec(const Value &value) {
  if (value.contents)
    return {value.contents->dtype, Shape(value.contents->shape.begin(), value.contents->shape.end())};
  return tensorOf(value).spec();
}

/// Of every value that the model declares. Its shape, though, is what tools that change a model often leave behind:
/// nothing follows from it, and of values inside a model it is ignored.
void Importer::checkType(const ValueInfo &declared, const Value &value, const Location &where) const {
  if (declared.kind != ValueInfo::Kind::Tensor || !value.defined() || value.sequence)
    return;
  DType dtype = computedSpec(value).dtype;
  if (declared.elementType != DataType::Undefined && dtypeOf(declared.elementType) != dtype)
    throw Error(where, "",
                "the model declares " + quoted(declared.name) + " as " + nameOf(declared.elementType) +
                    ", but it is computed as " + std::string(name(dtype)));
}

/// An output's: numbers must be what they are declared to be. A name or nothing for a size says nothing about it, nor
/// do no sizes at all, which some tools write for a shape that they do not know.
void Importer::checkShape(const ValueInfo &declared, const Value &value, const Location &where) const {
  if (declared.kind != ValueInfo::Kind::Tensor || declared.shape.empty())
    return;
  Shape shape = computedSpec(value).shape;
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
    throw Error(where, "",
                "the model declares the output " + quoted(declared.name) + " with the shape [" + text +
                    "], but it is computed as " + str(shape));
}

// ---- nodes

void Importer::define(std::string_view name, Value value, Scope &scope, const Location &where) {
  if (!scope.define(name, std::move(value)))
    throw Error(where, "", "there are two values of the name " + quoted(name));
}

std::vector<Value> Importer::runNodes(const GraphProto &graph, Scope &scope) {
  scope.nodes = &graph.nodes;
  for (const NodeProto &node : graph.nodes)
    runNode(node, scope);
  std::vector<Value> results;
  for (const ValueInfo &output : graph.outputs) {
    const Value *value = scope.find(output.name);
    results.push_back(value ? *value : Value());
  }
  return results;
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
  if (std::optional<Value> known = propagateContents(node))
    return {*std::move(known)};
  const OpEntry &op = *findOp(proto.domain, proto.op);
  for (size_t i = 0; i < op.ranks.size(); ++i)
    if (op.ranks[i] > 0)
      node.requireRank(i, op.ranks[i]);
  agreeOnSizes(node);
  return op.handler(node);
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
  inner.nodes = &function.nodes;
  for (size_t i = 0; i < function.inputs.size(); ++i)
    inner.define(function.inputs[i], call.has(i) ? call.value(i) : Value());
  for (const NodeProto &node : function.nodes)
    runNode(node, inner);
  Values results;
  for (std::string_view output : function.outputs) {
    const Value *value = inner.find(output);
    results.push_back(value ? *value : Value());
  }
  return results;
}

std::vector<Value> Importer::runSubgraph(const GraphProto &graph, const std::vector<Value> &arguments, Scope &outer) {
  Deeper deeper(depth, detail::inScope({}));
  Scope scope(outer.opsets, &outer);
  scope.attributes = outer.attributes;
  for (size_t i = 0; i < graph.inputs.size() && i < arguments.size(); ++i)
    scope.define(graph.inputs[i].name, arguments[i]);
  for (const TensorProto &initializer : graph.initializers) // the defaults of inputs too
    scope.define(initializer.name, read(initializer, detail::inScope({})));
  return runNodes(graph, scope);
}

} // namespace burin::onnx
