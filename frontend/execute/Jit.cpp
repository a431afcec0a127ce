#include "frontend/tensor/EagerKey.h"
#include "frontend/tensor/LocationScope.h"
#include "frontend/trace/Trace.h"
#include <list>

namespace burin::detail {

/// What the function is for one combination of arguments.
struct Compiled {
  Key key;
  Artifact artifact;
  std::vector<Guard> guards;
  std::vector<StateUse> states;
  std::vector<TensorSpec> stateSpecs;

  bool isCurrent() const {
    for (size_t i = 0; i < states.size(); ++i)
      if (states[i].cell->value.spec() != stateSpecs[i])
        return false;
    return llvm::all_of(guards, [](const Guard &guard) { return guard.holds(); });
  }

  /// Runs with the cells' values and puts the new ones there. Runs that share a cell happen one after the other.
  std::vector<Tensor> run(std::span<const Tensor> given, const Location &where) const {
    if (states.empty())
      return artifact.run(given, where);
    std::vector<detail::Cell *> order;
    for (const StateUse &state : states)
      order.push_back(state.cell.get());
    llvm::sort(order);
    std::vector<std::unique_lock<std::mutex>> locks;
    for (detail::Cell *cell : order)
      locks.emplace_back(cell->mutex);
    std::vector<Tensor> inputs(given.begin(), given.end());
    for (const StateUse &state : states)
      inputs.push_back(state.cell->value);
    std::vector<Tensor> results = artifact.run(inputs, where);
    size_t returned = results.size();
    for (const StateUse &state : states)
      if (state.output) {
        state.cell->commit(results[*state.output]);
        returned = std::min(returned, *state.output);
      }
    results.resize(returned);
    return results;
  }
};

struct JitCache::Data {
  /// Programs whose shapes never repeat must not keep every artifact.
  static constexpr size_t kMost = 64;
  Function function;
  std::function<TensorNames()> names;
  std::mutex mutex;
  std::list<std::shared_ptr<const Compiled>> compiled; // used last first
  size_t traces = 0;

  std::shared_ptr<const Compiled> find(const Key &key) {
    for (auto at = compiled.begin(); at != compiled.end(); ++at)
      if ((*at)->key == key) {
        if ((*at)->isCurrent()) {
          compiled.splice(compiled.begin(), compiled, at);
          return compiled.front();
        }
        for (const Guard &guard : (*at)->guards)
          if (guard.cell && !guard.holds())
            countRetrace(guard.cell);
        compiled.erase(at);
        break;
      }
    return nullptr;
  }
  /// A parameter whose value was taken for a constant has changed: when it does so again and again, it is none.
  void countRetrace(const std::shared_ptr<Cell> &cell) {
    constexpr size_t kMostRetraces = 2;
    if (++cell->retraces >= kMostRetraces && !llvm::is_contained(unstable, cell))
      unstable.push_back(cell);
  }
  std::vector<std::shared_ptr<Cell>> unstable;
  std::shared_ptr<const Compiled> make(Key key, std::span<const Tensor> inputs, const Location &where);
};

std::shared_ptr<const Compiled> JitCache::Data::make(Key key, std::span<const Tensor> inputs, const Location &where) {
  std::vector<Trace::Input> traced;
  for (const Tensor &input : inputs)
    traced.push_back({stateOf(input, where).spec, stateOf(input, where).weak});
  Trace trace(traced, {}, names(), where);
  trace.unstable = unstable;
  ++traces;
  Graph graph = [&] {
    Trace::Recording recording(trace);
    std::vector<Tensor> results = function(trace.inputs(), where);
    return trace.finish(results, {}, where);
  }();
  auto result = std::make_shared<Compiled>(
      Compiled{std::move(key), compile(graph, {}, where), std::move(trace.guards), std::move(trace.states), {}});
  for (const StateUse &state : result->states)
    result->stateSpecs.push_back(state.cell->value.spec());
  compiled.push_front(result);
  if (compiled.size() > kMost)
    compiled.pop_back();
  return result;
}

JitCache::JitCache(Function function, std::function<TensorNames()> names) : data(std::make_shared<Data>()) {
  data->function = std::move(function);
  data->names = std::move(names);
}

size_t JitCache::traces() const {
  std::lock_guard lock(data->mutex);
  return data->traces;
}

std::vector<Tensor> JitCache::call(std::span<const Tensor> inputs, const Location &where) {
  const Location place = inScope(where);
  if (Trace::active())
    return data->function(inputs, place);
  Key key;
  for (const Tensor &input : inputs) {
    const TensorState &state = stateOf(input, place);
    key.add(state.spec, state.weak);
  }
  std::shared_ptr<const Compiled> compiled;
  {
    std::lock_guard lock(data->mutex); // while it compiles, other callers would wait for the same code anyway
    compiled = data->find(key);
    if (!compiled)
      compiled = data->make(std::move(key), inputs, place);
  }
  return compiled->run(inputs, place);
}

} // namespace burin::detail
