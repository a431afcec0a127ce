// Recomputation of a value of a graph for other values of its inputs, by a second import of the nodes between them.
#include "frontend/onnx/import/Importer.h"
#include <algorithm>

namespace burin::onnx {

Scope::Maker Scope::makerOf(std::string_view name) const {
  if (nodes && makers.empty())
    for (size_t i = 0; i < nodes->size(); ++i)
      for (std::string_view output : (*nodes)[i].outputs)
        if (!output.empty())
          makers.emplace(output, i);
  size_t level = 0;
  for (const Scope *scope = outer; scope; scope = scope->outer)
    ++level;
  if (auto at = makers.find(name); at != makers.end())
    return {level, at->second, &(*nodes)[at->second]};
  return outer ? outer->makerOf(name) : Maker();
}

void forEachUse(const NodeProto &root, const std::function<void(std::string_view)> &visit) {
  std::vector<const NodeProto *> open{&root};
  while (!open.empty()) {
    const NodeProto &node = *open.back();
    open.pop_back();
    for (std::string_view input : node.inputs)
      visit(input);
    for (const AttributeProto &attribute : node.attributes) {
      if (node.op == "Gradient" && attribute.name == "y")
        visit(attribute.s);
      if (!attribute.graph)
        continue;
      for (const NodeProto &inner : attribute.graph->nodes)
        open.push_back(&inner);
      for (const ValueInfo &output : attribute.graph->outputs)
        visit(output.name);
    }
  }
}

/// The nodes that the value depends on, up to the given ones, in the order of the model.
std::vector<const NodeProto *> Importer::nodesBehind(std::string_view name, const GivenValues &given,
                                                     const NodeProto &by, const Scope &scope) {
  constexpr int64_t kMaxFollowed = 1 << 20;
  std::set<std::string_view> seen;
  for (const auto &[known, value] : given)
    seen.insert(known);
  std::vector<Scope::Maker> makers;
  std::vector<std::string_view> open{name};
  while (!open.empty()) {
    std::string_view next = open.back();
    open.pop_back();
    Scope::Maker maker = seen.insert(next).second ? scope.makerOf(next) : Scope::Maker();
    if (!maker.node)
      continue;
    if (maker.node == &by)
      throw Error(locationOf(by), printable(by.op), "it is to differentiate " + quoted(name) + ", which depends on it");
    makers.push_back(maker);
    forEachUse(*maker.node, [&](std::string_view use) {
      if (++followed > kMaxFollowed)
        throw Unsupported(locationOf(by), printable(by.op), "too many nodes lie behind what is differentiated");
      if (!use.empty())
        open.push_back(use);
    });
  }
  auto order = [](const Scope::Maker &a) { return std::pair(a.level, a.index); };
  std::ranges::sort(makers, {}, order);
  std::vector<const NodeProto *> nodes;
  for (const Scope::Maker &maker : makers)
    if (nodes.empty() || nodes.back() != maker.node) // once per node with several outputs
      nodes.push_back(maker.node);
  return nodes;
}

Value Importer::recompute(std::string_view name, const GivenValues &given, const NodeProto &by, Scope &scope) {
  constexpr int kMaxOrder = 4; // a derivative has several times as many ops as its function
  const Location place = locationOf(by);
  Deeper deeper(depth, place), order(recomputing, place);
  if (recomputing > kMaxOrder)
    throw Unsupported(place, printable(by.op), "derivatives of an order above " + std::to_string(kMaxOrder));
  auto requireKnown = [&](std::string_view value) {
    if (!scope.find(value) && !scope.makerOf(value).node)
      throw Error(place, printable(by.op), "there is no value " + quoted(value) + " in its graph");
  };
  requireKnown(name);
  Scope inner(scope.opsets, &scope);
  inner.attributes = scope.attributes;
  std::set<std::string_view> changed;
  for (const auto &[known, value] : given) {
    requireKnown(known);
    inner.define(known, value);
    changed.insert(known);
  }
  for (const NodeProto *node : nodesBehind(name, given, by, scope)) {
    bool isStale = false; // not computed yet, or computed from other values
    forEachUse(*node, [&](std::string_view use) { isStale = isStale || changed.contains(use); });
    for (std::string_view output : node->outputs)
      isStale = isStale || (!output.empty() && !scope.find(output));
    if (!isStale)
      continue;
    for (std::string_view output : node->outputs)
      if (!output.empty())
        changed.insert(output);
    runNode(*node, inner);
  }
  const Value *value = inner.find(name);
  if (!value || !value->defined())
    throw Error(place, printable(by.op), "the value " + quoted(name) + " is computed by no node");
  return *value;
}

} // namespace burin::onnx
