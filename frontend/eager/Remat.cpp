// Rematerialisation: a second call of the function in the backward pass instead of saved values.
#include "burin/training/gradients.h"
#include "frontend/autodiff/tape/Tape.h"
#include "frontend/tensor/context/AutocastScope.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/core/Cell.h"
#include "frontend/trace/Trace.h"
#include <unordered_set>

namespace burin::detail {

namespace {

/// During its lifetime, logs cells that eager code of this thread sets.
class NotedChanges {
public:
  explicit NotedChanges(CellChanges &changes) : outer(std::exchange(cellChanges, &changes)), changes(changes) {}
  ~NotedChanges() {
    cellChanges = outer;
    if (outer)
      outer->insert(outer->end(), changes.begin(), changes.end());
  }

private:
  CellChanges *outer, &changes;
};

/// During its lifetime, cells have the values of the first call of a function.
class FormerValues {
public:
  explicit FormerValues(const CellChanges &changes) {
    for (const auto &[cell, before] : changes)
      if (std::ranges::none_of(now, [&](const auto &known) { return known.first == cell; })) {
        now.emplace_back(cell, cell->value());
        cell->store(before);
      }
  }
  ~FormerValues() {
    for (auto &[cell, value] : now)
      cell->store(value);
  }

private:
  CellChanges now;
};

/// The values outside of a call that its results depend on: those with sequence numbers before `start`.
std::vector<TapeEdge> dependencies(const std::vector<Tensor> &results, uint64_t start) {
  std::vector<TapeEdge> found;
  std::unordered_set<TapeNode *> seen;
  std::vector<TapeEdge> open;
  auto visit = [&](const TapeEdge &edge) {
    if (!edge.node)
      return;
    if (edge.node->sequence >= start) {
      if (seen.insert(edge.node.get()).second)
        open.push_back(edge);
    } else if (std::ranges::none_of(
                   found, [&](const TapeEdge &e) { return e.node == edge.node && e.result == edge.result; })) {
      found.push_back(edge);
    }
  };
  for (const Tensor &result : results)
    visit(edgeOf(result));
  while (!open.empty()) {
    TapeEdge edge = std::move(open.back());
    open.pop_back();
    for (const TapeEdge &next : edge.node->edges)
      visit(next);
  }
  return found;
}

class TapeRemat : public TapeNode {
public:
  TapeRemat(const Function &function, std::vector<Tensor> inputs, const std::vector<Tensor> &made,
            std::vector<TapeEdge> outside, CellChanges changes, const Location &where)
      : TapeNode("remat", where), function(function), inputs(std::move(inputs)), changes(std::move(changes)),
        type(autocastType()) {
    edges = std::move(outside);
    for (const Tensor &result : made)
      results.push_back(result.spec(where));
  }

  std::vector<Tensor> propagate(std::vector<Tensor> gradients, bool recorded) override {
    std::vector<Tensor> again;
    {
      FormerValues former(changes);
      EnableGrad on;
      AutocastTypeScope scope(type);
      again = function(inputs, place);
    }
    std::vector<TapeEdge> roots;
    std::vector<Tensor> seeds;
    for (size_t i = 0; i < again.size(); ++i)
      if (TapeEdge edge = edgeOf(again[i]); edge.node && gradients[i].defined()) {
        roots.push_back(std::move(edge));
        seeds.push_back(gradients[i]);
      }
    return runBackward(roots, std::move(seeds), edges, {.create_graph = recorded}, place, false);
  }

  void release() override { inputs.clear(); }

private:
  Function function;
  std::vector<Tensor> inputs;
  CellChanges changes;
  std::optional<DType> type;
};

} // namespace

std::vector<Tensor> remat(const Function &function, std::vector<Tensor> inputs, const Location &given) {
  const Location where = inScope(given);
  if (Trace *trace = Trace::active())
    return trace->remat(function, inputs, where);
  if (!isGradEnabled())
    return function(inputs, where);
  const uint64_t start = TapeLeaf({DType::f32, {}}, where).sequence;
  CellChanges changes;
  std::vector<Tensor> results;
  {
    NotedChanges noted(changes);
    results = function(inputs, where);
  }
  std::vector<TapeEdge> outside = dependencies(results, start);
  if (outside.empty())
    return results;
  auto node =
      std::make_shared<TapeRemat>(function, std::move(inputs), results, std::move(outside), std::move(changes), where);
  for (size_t i = 0; i < results.size(); ++i)
    if (TapeEdge edge = edgeOf(results[i]); edge.node && edge.node->sequence >= start)
      results[i] = withEdge(results[i], {node, uint32_t(i)});
  return results;
}

} // namespace burin::detail
