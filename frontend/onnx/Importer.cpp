#include "frontend/onnx/Importer.h"
#include "frontend/Scope.h"
#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <set>

namespace burin::onnx {

namespace {

constexpr int kMaxDepth = 64; // of functions that call functions

/// Location wants text that is never freed.
const char *keep(std::string text) {
  static std::mutex mutex;
  static std::set<std::string> kept;
  std::lock_guard lock(mutex);
  return kept.insert(std::move(text)).first->c_str();
}

std::string quoted(std::string_view name) { return "\"" + std::string(name.substr(0, 200)) + "\""; }

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
  return {keep(fileName + ":" + name), 0};
}

// ---- which ops there are

const FunctionProto *Importer::findFunction(const NodeProto &node) const {
  for (const FunctionProto &function : model.functions)
    if (function.name == node.op && function.domain == node.domain && function.overload == node.overload)
      return &function;
  return nullptr;
}

namespace {
struct Missing {
  std::map<std::string, int> counts; // by op with its domain and version
  std::set<const FunctionProto *> seen;
};
} // namespace

/// All ops without a translation are reported at once.
void Importer::checkOps(const Location &where) const {
  Missing missing;
  auto check = [&](auto &&self, const std::vector<NodeProto> &nodes, const Opsets &opsets) -> void {
    for (const NodeProto &node : nodes) {
      const FunctionProto *function = findFunction(node);
      if (function) {
        if (missing.seen.insert(function).second)
          self(self, function->nodes, function->opsets);
      } else if (!findOp(node.domain, node.op)) {
        auto version = opsets.find(node.domain);
        std::string domain(node.domain.empty() ? "ai.onnx" : node.domain);
        ++missing.counts[std::string(node.op) + " (" + domain + " " +
                         (version == opsets.end() ? "?" : std::to_string(version->second)) + ")"];
      } else if (!opsets.contains(node.domain)) {
        throw Error(locationOf(node), node.op,
                    "the model does not say which version of the op set it is taken from; the "
                    "file may be cut off");
      }
      for (const AttributeProto &attribute : node.attributes)
        if (attribute.graph)
          self(self, attribute.graph->nodes, opsets);
    }
  };
  check(check, model.graph.nodes, model.opsets);
  if (missing.counts.empty())
    return;
  std::string list;
  for (auto &[op, count] : missing.counts)
    list += "\n  " + op + (count > 1 ? " in " + std::to_string(count) + " nodes" : "");
  throw Unsupported(where, "", "it uses ops that burin does not have:" + list);
}

// ---- the signature

/// A symbol for a dim_param, or for a size without a name. Different ones never share a symbol.
Dim Importer::symbol(std::string parameter) {
  auto known = std::find(parameters.begin(), parameters.end(), parameter);
  if (known == parameters.end()) {
    std::string name = identifierOf(parameter);
    while (std::find(symbols.begin(), symbols.end(), name) != symbols.end())
      name += "_";
    symbols.push_back(std::move(name));
    parameters.push_back(std::move(parameter));
    known = parameters.end() - 1;
  }
  return Dim(symbols[size_t(known - parameters.begin())]);
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
    else
      spec.shape.push_back(symbol(!dim.param.empty()
                                      ? std::string(dim.param)
                                      : std::string(input.name) + "_" + std::to_string(spec.shape.size())));
  return spec;
}

Graph Importer::import(const StateDict &fixed, const Location &where) {
  checkOps(where);
  std::vector<TensorSpec> specs;
  std::vector<std::string> names, outputNames;
  std::vector<std::string_view> free; // inputs that stay inputs
  std::set<std::string_view> initialized;
  for (const TensorProto &initializer : model.graph.initializers)
    initialized.insert(initializer.name);
  for (const ValueInfo &input : model.graph.inputs)
    if (!initialized.contains(input.name) && !fixed.find(input.name)) {
      specs.push_back(specOf(input, where));
      names.emplace_back(input.name);
      free.push_back(input.name);
    }
  for (const auto &[name, tensor] : fixed)
    if (std::none_of(model.graph.inputs.begin(), model.graph.inputs.end(),
                     [&, &name = name](const ValueInfo &input) { return input.name == name; }))
      throw Error(where, "", "there is no input " + quoted(name) + " to fix");
  for (const ValueInfo &output : model.graph.outputs)
    outputNames.emplace_back(output.name);
  detail::TensorNames weights;
  std::vector<Value> constants;
  for (const TensorProto &initializer : model.graph.initializers) {
    Tensor tensor = read(initializer, where);
    weights.emplace_back(std::string(initializer.name), tensor);
  }
  auto body = [&](std::span<const Tensor> inputs, const Location &) {
    Scope scope(model.opsets, nullptr);
    for (const auto &[name, tensor] : fixed)
      scope.define(name, tensor);
    for (const auto &[name, tensor] : weights)
      scope.define(name, tensor);
    for (size_t i = 0; i < inputs.size(); ++i)
      scope.define(free[i], inputs[i]);
    std::vector<Tensor> results;
    std::vector<Value> values = runNodes(model.graph, scope);
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].sequence)
        throw Unsupported(where, "",
                          "the output " + quoted(outputNames[i]) + " is a sequence; burin's graphs give tensors");
      if (!values[i].defined())
        throw Error(where, "", "the output " + quoted(outputNames[i]) + " is computed by no node");
      results.push_back(tensorOf(values[i]));
    }
    return results;
  };
  return detail::trace(body, specs, names, outputNames, weights, where);
}

// ---- nodes

std::vector<Value> Importer::runNodes(const GraphProto &graph, Scope &scope) {
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
  Values results = translate(node, scope);
  if (results.size() > node.outputs.size())
    results.resize(node.outputs.size());
  for (size_t i = 0; i < results.size(); ++i)
    if (!node.outputs[i].empty())
      scope.define(node.outputs[i], std::move(results[i]));
}

Values Importer::translate(const NodeProto &proto, Scope &scope) {
  if (const FunctionProto *function = findFunction(proto))
    return callFunction(*function, proto, scope);
  Node node(*this, proto, scope);
  if (std::optional<Value> known = propagateContents(node))
    return {*std::move(known)};
  return findOp(proto.domain, proto.op)(node);
}

Values Importer::callFunction(const FunctionProto &function, const NodeProto &proto, Scope &scope) {
  Node call(*this, proto, scope);
  if (++depth > kMaxDepth)
    call.fail("functions call each other in a circle, or too deep");
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
  for (const NodeProto &node : function.nodes)
    runNode(node, inner);
  Values results;
  for (std::string_view output : function.outputs) {
    const Value *value = inner.find(output);
    results.push_back(value ? *value : Value());
  }
  --depth;
  return results;
}

std::vector<Value> Importer::runSubgraph(const GraphProto &graph, const std::vector<Value> &arguments, Scope &outer) {
  Scope scope(outer.opsets, &outer);
  scope.attributes = outer.attributes;
  for (const TensorProto &initializer : graph.initializers)
    scope.define(initializer.name, read(initializer, detail::inScope({})));
  for (size_t i = 0; i < graph.inputs.size() && i < arguments.size(); ++i)
    scope.define(graph.inputs[i].name, arguments[i]);
  return runNodes(graph, scope);
}

} // namespace burin::onnx
