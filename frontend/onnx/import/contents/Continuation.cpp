// The nodes that follow an If, imported once per branch.
#include "frontend/onnx/import/Importer.h"
#include <algorithm>

namespace burin::onnx {

std::optional<Continuation> Importer::continuationOf(const NodeProto &node, Scope &scope) {
  size_t next = 0;
  while (scope.nodes && next < scope.nodes->size() && &(*scope.nodes)[next] != &node)
    ++next;
  if (!scope.nodes || next++ == scope.nodes->size())
    return std::nullopt;
  Continuation continuation;
  std::set<std::string_view> names; // of the node's results, and of what is computed from them
  auto add = [&](const NodeProto &one) {
    for (std::string_view output : one.outputs)
      if (!output.empty())
        names.insert(output);
  };
  add(node);
  scope.isDone = true;
  for (; next < scope.nodes->size(); ++next) {
    const NodeProto &later = (*scope.nodes)[next];
    bool isDependent = false;
    forEachUse(later, [&](std::string_view use) { isDependent = isDependent || names.contains(use); });
    if (isDependent) {
      add(later);
      continuation.nodes.push_back(later);
    } else {
      runOrReport(later, scope);
    }
  }
  for (std::string_view output : scope.outputs)
    if (names.contains(output))
      continuation.outputs.push_back(output);
  return continuation;
}

Values Importer::runContinuation(const Continuation &continuation, const NodeProto &node, const Values &results,
                                 Scope &outer) {
  const Location place = locationOf(node);
  Deeper deeper(depth, place);
  Scope scope(outer.opsets, &outer);
  scope.attributes = outer.attributes;
  for (size_t i = 0; i < results.size() && i < node.outputs.size(); ++i)
    define(node.outputs[i], results[i], scope, place);
  std::vector<Value> values = runNodes(continuation.nodes, continuation.outputs, scope);
  return Values(values.begin(), values.end());
}

Values Importer::finish(const Continuation &continuation, const NodeProto &node, Values values, Scope &scope) {
  Values own(node.outputs.size());
  for (size_t i = 0; i < values.size(); ++i) {
    auto at = std::ranges::find(node.outputs, continuation.outputs[i]);
    if (at != node.outputs.end())
      own[size_t(at - node.outputs.begin())] = std::move(values[i]);
    else
      define(continuation.outputs[i], std::move(values[i]), scope, locationOf(node));
  }
  return own;
}

} // namespace burin::onnx
