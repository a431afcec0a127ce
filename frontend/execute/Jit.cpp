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
  bool isCurrent() const {
    return llvm::all_of(guards, [](const Guard &guard) { return guard.holds(); });
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
        compiled.erase(at);
        break;
      }
    return nullptr;
  }
  std::shared_ptr<const Compiled> make(Key key, std::span<const Tensor> inputs, const Location &where);
};

std::shared_ptr<const Compiled> JitCache::Data::make(Key key, std::span<const Tensor> inputs, const Location &where) {
  std::vector<Trace::Input> traced;
  for (const Tensor &input : inputs)
    traced.push_back({stateOf(input, where).spec, stateOf(input, where).weak});
  Trace trace(traced, {}, names(), where);
  ++traces;
  Graph graph = [&] {
    Trace::Recording recording(trace);
    std::vector<Tensor> results = function(trace.inputs(), where);
    return trace.finish(results, {}, where);
  }();
  auto result =
      std::make_shared<Compiled>(Compiled{std::move(key), compile(graph, {}, where), std::move(trace.guards)});
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
  return compiled->artifact.run(inputs, place);
}

} // namespace burin::detail
