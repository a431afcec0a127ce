// Jitted functions: traced and compiled once per argument types, run with their states.
#include "frontend/autodiff/tape/Opaque.h"
#include "frontend/execute/Executable.h"
#include "frontend/execute/JitCheck.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/AutocastScope.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/core/EagerKey.h"
#include "frontend/trace/Origins.h"
#include <cstdio>
#include <list>
#include <random>

namespace burin::detail {

using Inputs = std::vector<Trace::Input>;

/// What a trace takes from the leaf of a parameter: 0 if it is frozen, else 1 and the number of its hooks.
static size_t leafOf(const TensorState &state) { return state.node ? 1 + state.node->hooks.size() : 0; }

/// The function compiled for one combination of argument types.
struct Compiled {
  Key key;
  Inputs inputs;
  Artifact artifact;
  std::optional<Graph> graph; // the traced graph, if it is checked later
  std::vector<Guard> guards;
  std::vector<StateUse> states;
  std::vector<Cell *> order, cellsSet; // of the states, in the order in which calls lock them
  std::vector<const void *> marks;     // all of them, see InUse
  std::vector<TensorSpec> stateSpecs;
  std::vector<size_t> leaves;                  // of the states, see leafOf
  std::vector<std::shared_ptr<Cell>> unstable; // see Trace
  std::vector<Origins> origins;                // by result of the function
  size_t calls = 0;                            // without those that a check refused; under the mutex of the cache

  bool isCurrent() const {
    for (size_t i = 0; i < states.size(); ++i) {
      if (states[i].cell->tied)
        return false;
      const Tensor value = states[i].cell->value();
      if (const TensorState &held = *Access::state(value); held.spec != stateSpecs[i] || leafOf(held) != leaves[i] ||
                                                           (!follows(held) && deviceOf(held) != artifact.device()))
        return false;
    }
    return llvm::all_of(guards, [](const Guard &guard) { return guard.holds(); });
  }
  /// Whether it can never be used again: a captured value has changed. Modes may change back.
  bool isStale() const {
    return llvm::any_of(guards, [](const Guard &guard) { return guard.cell && !guard.holds(); });
  }
  std::vector<Tensor> run(std::span<const Tensor> given, const Location &where) const;
  std::vector<std::vector<TapeEdge>> sources(std::span<const Tensor> given) const;
};

/// By result: what it depends on that requires a gradient.
std::vector<std::vector<TapeEdge>> Compiled::sources(std::span<const Tensor> given) const {
  std::vector<std::vector<TapeEdge>> found(isGradEnabled() ? origins.size() : 0);
  for (size_t i = 0; i < found.size(); ++i) {
    auto add = [&](TapeEdge edge) {
      if (edge.node)
        found[i].push_back(std::move(edge));
    };
    for (size_t argument : origins[i].arguments)
      add(edgeOf(given[argument]));
    for (const Cell *cell : origins[i].cells)
      add(edgeOf(cell->value()));
    for (const std::weak_ptr<TapeNode> &node : origins[i].captured)
      add({node.lock(), 0});
  }
  return found;
}

/// Makes a backward pass fail that reaches the results of a jitted function.
static void recordRun(std::vector<std::vector<TapeEdge>> sources, std::vector<Tensor> &results, const Location &where) {
  for (size_t i = 0; i < sources.size(); ++i)
    if (!sources[i].empty())
      connectOpaque(results[i], std::move(sources[i]), "jit",
                    "a backward pass has reached this call, but jitted functions are not differentiated from outside.\n"
                    "  Compute the gradients in the function (value_and_grad, grad, backward), jit the whole loss, or "
                    "make the result a constant by NoGrad or detach()",
                    where);
}

namespace {
/// Stores the new values of states in their cells, all at the same moment for those who read them.
class CellStore final : public StateStore {
public:
  CellStore(std::span<const StateUse> states, std::span<Cell *const> order, std::vector<Tensor> &arguments)
      : states(states), order(order), arguments(arguments) {}
  void store(std::span<const Tensor> results) override {
    readers.reserve(order.size());
    former.reserve(order.size());
    for (Cell *cell : order)
      readers.push_back(cell->keepFromReaders());
    for (const StateUse &state : states)
      if (state.output)
        former.push_back(state.cell->exchange(results[*state.output]));
    arguments.clear(); // drops references, so that the run may overwrite old values
    former.clear();
  }
  void release() override { readers.clear(); }

private:
  std::span<const StateUse> states;
  std::span<Cell *const> order;
  std::vector<Tensor> &arguments;
  std::vector<std::unique_lock<std::mutex>> readers;
  std::vector<Tensor> former;
};
} // namespace

/// Runs with the values of the cells and stores the new ones in them, pending. Runs that share a cell are serialised.
std::vector<Tensor> Compiled::run(std::span<const Tensor> given, const Location &where) const {
  if (states.empty()) {
    std::vector<Tensor> results = runWithStates(artifact, given, nullptr, where);
    recordRun(sources(given), results, where);
    return results;
  }
  InUse mark(marks, "jit", where);
  std::vector<std::unique_lock<std::mutex>> locks;
  locks.reserve(order.size());
  for (detail::Cell *cell : order)
    locks.emplace_back(cell->mutex);
  std::vector<Tensor> arguments(given.begin(), given.end());
  for (const StateUse &state : states)
    arguments.push_back(state.cell->value());
  CellStore store(states, cellsSet, arguments);
  std::vector<std::vector<TapeEdge>> from = sources(given);
  std::vector<Tensor> results = runWithStates(artifact, arguments, &store, where);
  results.resize(results.size() - cellsSet.size()); // new values are last
  recordRun(std::move(from), results, where);
  return results;
}

struct JitCache::Data {
  /// Limit of compiled artifacts, for programs whose shapes never repeat.
  static constexpr size_t kMost = 64;
  Function function;
  std::function<TensorNames()> names;
  JitOptions options;
  std::mutex mutex;
  std::list<std::shared_ptr<Compiled>> compiled; // most recently used first
  std::vector<std::shared_ptr<Cell>> unstable;
  std::string changed; // what made compiled code stale last
  size_t traces = 0;
  std::minstd_rand chance;

  std::shared_ptr<Compiled> find(const Key &key);
  std::shared_ptr<Compiled> make(Key key, Inputs inputs, std::optional<Device> device, const Location &where);
  Graph record(Trace &trace, std::vector<Origins> *origins, const Location &where);
  std::optional<Device> deviceOf(std::span<const Tensor> given, const Location &where) const;
  void check(Compiled &known, const Location &where);
  bool isCheckDue(size_t call);
  void noteStale(const Guard &guard);
  std::string reasonToTrace(const Inputs &inputs) const;
  void report(const Inputs &inputs, const Location &where) const;
  Inputs inputsOf(std::span<const Tensor> given, const Location &where) const;
};

static JitCheck checkWanted(JitCheck asked) {
  const char *given = std::getenv("BURIN_JIT_CHECK");
  if (!given || !*given)
    return asked;
  std::string_view value = given;
  return value == "0" ? JitCheck::Never : value == "always" ? JitCheck::Always : JitCheck::Sometimes;
}

static bool isLogged(std::string_view topic) {
  const char *given = std::getenv("BURIN_LOG");
  return given && std::string_view(given).find(topic) != std::string_view::npos;
}

std::shared_ptr<Compiled> JitCache::Data::find(const Key &key) {
  changed.clear();
  for (auto at = compiled.begin(); at != compiled.end();) {
    if ((*at)->key == key && (*at)->isCurrent()) {
      compiled.splice(compiled.begin(), compiled, at);
      return compiled.front();
    }
    bool isGone = (*at)->key == key && (*at)->isStale();
    for (const Guard &guard : (*at)->guards)
      if (isGone && guard.cell && !guard.holds())
        noteStale(guard);
    at = isGone ? compiled.erase(at) : std::next(at);
  }
  return nullptr;
}

/// A captured parameter has changed. If that happens repeatedly, it becomes an input.
void JitCache::Data::noteStale(const Guard &guard) {
  constexpr size_t kMostRetraces = 2;
  if (guard.cell->tied) {
    changed = "a parameter was tied to another one";
    return;
  }
  const Tensor value = guard.cell->value();
  std::string name = guard.cell->name;
  for (const auto &[known, tensor] : names())
    if (Access::state(tensor) == Access::state(value))
      name = known;
  changed = (name.empty() ? "a parameter" : "the parameter " + name) + ", " + str(value.spec()) +
            ", whose value was a constant, has changed";
  if (++guard.cell->retraces < kMostRetraces || llvm::is_contained(unstable, guard.cell))
    return;
  unstable.push_back(guard.cell);
  changed += "; it is an input from now on";
}

/// Sizes that the options declare dynamic become symbols; equal sizes become the same one.
Inputs JitCache::Data::inputsOf(std::span<const Tensor> given, const Location &where) const {
  Inputs inputs;
  for (const Tensor &input : given)
    inputs.push_back({stateOf(input, where).spec, stateOf(input, where).weak});
  std::vector<int64_t> sizes;
  for (auto [argument, dimension] : options.dynamic) {
    if (argument < 0 || size_t(argument) >= inputs.size() || dimension < 0 ||
        size_t(dimension) >= inputs[argument].spec.shape.size())
      throw Error(where, "jit",
                  "dimension " + std::to_string(dimension) + " of argument " + std::to_string(argument) +
                      " is called dynamic, but there is no such dimension among the " + std::to_string(given.size()) +
                      " arguments");
    Dim &size = inputs[argument].spec.shape[dimension];
    if (size == Dim(1))
      continue; // it may broadcast
    auto known = llvm::find(sizes, size.value());
    if (known == sizes.end())
      known = sizes.insert(known, size.value());
    size = Dim("size" + std::to_string(known - sizes.begin()));
  }
  return inputs;
}

Graph JitCache::Data::record(Trace &trace, std::vector<Origins> *origins, const Location &where) {
  Trace::Recording recording(trace);
  CallerGradMode mode;
  OriginNotes notes(trace);
  std::vector<Tensor> results = function(trace.inputs(), where);
  for (size_t i = 0; origins && i < results.size(); ++i)
    origins->push_back(notes.originsOf(results[i], where));
  return trace.finish(results, {}, where);
}

/// Forgets cells that each call has for its own.
static void dropLocalCells(std::vector<Origins> &origins, const Trace &trace) {
  auto isLocal = [&](const Cell *cell) {
    return llvm::none_of(trace.guards, [&](const Guard &guard) { return guard.cell.get() == cell; }) &&
           llvm::none_of(trace.states, [&](const StateUse &state) { return state.cell.get() == cell; });
  };
  for (Origins &origin : origins)
    llvm::erase_if(origin.cells, isLocal);
}

/// The device of the arguments; nullopt if they follow others.
std::optional<Device> JitCache::Data::deviceOf(std::span<const Tensor> given, const Location &where) const {
  std::optional<size_t> first;
  for (size_t i = 0; i < given.size(); ++i) {
    const TensorState &state = stateOf(given[i], where);
    if (follows(state))
      continue;
    const Device device = detail::deviceOf(state);
    if (first && device != detail::deviceOf(*Access::state(given[*first])))
      throw Error(where, "jit",
                  "argument " + std::to_string(*first) + " is on " + given[*first].device().str() + ", argument " +
                      std::to_string(i) + " on " + device.str() +
                      "; a compiled function runs on one device: move one with to()");
    first = first.value_or(i);
  }
  return first ? std::optional(detail::deviceOf(*Access::state(given[*first]))) : std::nullopt;
}

std::shared_ptr<Compiled> JitCache::Data::make(Key key, Inputs inputs, std::optional<Device> device,
                                               const Location &where) {
  if (traces > 0)
    report(inputs, where);
  std::optional<Trace> trace(std::in_place, inputs, std::vector<std::string>(), names(), where);
  if (device)
    trace->runOn(*device, "jit", where);
  trace->unstable = unstable;
  ++traces;
  std::vector<Origins> origins;
  Graph graph = record(*trace, &origins, where);
  dropLocalCells(origins, *trace);
  CompileOptions compileOptions;
  compileOptions.memory_limit = options.memory_limit;
  compileOptions.memory_allow_bf16 = options.memory_allow_bf16;
  compileOptions.device = trace->device().value_or(options.device);
  std::vector<Guard> guards = std::move(trace->guards);
  std::vector<StateUse> states = std::move(trace->states);
  const std::vector<std::shared_ptr<Cell>> cellsSet = trace->cellsSet();
  const Escapes escapes = trace->takeEscapes();
  trace.reset();
  escapes.refuse("jit", where);
  bool isChecked = checkWanted(options.check) != JitCheck::Never;
  auto result = std::make_shared<Compiled>(Compiled{std::move(key),
                                                    std::move(inputs),
                                                    compile(graph, compileOptions, where),
                                                    isChecked ? std::optional(graph) : std::nullopt,
                                                    std::move(guards),
                                                    std::move(states),
                                                    {},
                                                    {},
                                                    {},
                                                    {},
                                                    {},
                                                    unstable,
                                                    std::move(origins)});
  if (const std::string &changed = result->artifact.memory_report(); !changed.empty() && isLogged("memory"))
    std::fprintf(stderr, "burin: %s\n", changed.c_str());
  // Cells that the function sets in one mode are not constant in another one.
  for (const std::shared_ptr<Cell> &cell : cellsSet)
    if (!llvm::is_contained(unstable, cell))
      unstable.push_back(cell);
  for (const StateUse &state : result->states) {
    const Tensor value = state.cell->value();
    result->stateSpecs.push_back(value.spec());
    result->leaves.push_back(leafOf(*Access::state(value)));
    result->order.push_back(state.cell.get());
    if (state.output)
      result->cellsSet.push_back(state.cell.get());
  }
  llvm::sort(result->order);
  result->marks.assign(result->order.begin(), result->order.end());
  llvm::sort(result->cellsSet);
  compiled.push_front(result);
  if (compiled.size() > kMost)
    compiled.pop_back();
  return result;
}

// ---- checks

bool JitCache::Data::isCheckDue(size_t call) {
  constexpr size_t kFirst = 3, kOneOf = 32;
  switch (checkWanted(options.check)) {
  case JitCheck::Never:
    return false;
  case JitCheck::First:
    return call <= kFirst;
  case JitCheck::Sometimes:
    return call == 1 || chance() % kOneOf == 0;
  case JitCheck::Always:
    return true;
  }
  return false;
}

/// Describes the first state of `trace` that is another variable than that of the compiled function, whose graph is the
/// same: compiled code would read and set the former one.
static std::optional<std::string> otherState(const Compiled &known, const Trace &trace) {
  for (size_t i = 0; i < known.states.size(); ++i)
    if (llvm::none_of(trace.states, [&](const StateUse &use) { return use.cell == known.states[i].cell; })) {
      const std::string &name = known.states[i].cell->name;
      return "a parameter or generator that it uses" + (name.empty() ? "" : " (" + name + ")") + ", " +
             str(known.stateSpecs[i]) +
             ", is another one than before, of the same type: a module, an optimiser or a "
             "generator was replaced";
    }
  return std::nullopt;
}

/// Traces again without running anything, and compares the graphs and the states.
void JitCache::Data::check(Compiled &known, const Location &where) {
  // In the first call, only functions of branches and loops can differ, see Trace::repeatsFunctions.
  if (!known.graph || !(known.calls ? isCheckDue(known.calls) : known.graph->shared()->privateFunctions > 0)) {
    ++known.calls;
    return;
  }
  std::optional<Trace> trace(std::in_place, known.inputs, std::vector<std::string>(), names(), where);
  trace->unstable = known.unstable;
  trace->repeatsFunctions = true;
  std::optional<Graph> graph;
  std::optional<std::string> difference;
  try {
    graph = record(*trace, nullptr, where);
    difference = firstDifference(*known.graph, *graph,
                                 sameStates(known.states, trace->states, known.inputs.size(), known.origins.size()));
    if (!difference)
      difference = otherState(known, *trace);
  } catch (const Error &error) {
    difference = std::string("it now throws: ") + error.what();
  }
  if (difference)
    throw Error(
        where, "jit",
        "the function no longer does what it did when it was compiled for these arguments: " + *difference +
            ".\nIt depends on something that compiled code does not see change: a tensor or number that was "
            "assigned after it was captured, a counter, the order of a container, a variable that the body of a "
            "loop or a branch changes. Make it an argument, a value that the loop carries, or a Parameter that "
            "is set");
  const Escapes escapes = trace->takeEscapes();
  trace.reset();
  escapes.refuse("jit", where);
  ++known.calls;
}

// ---- why a function is traced again

std::string JitCache::Data::reasonToTrace(const Inputs &inputs) const {
  if (!changed.empty())
    return changed;
  if (compiled.empty())
    return "a parameter whose value was a constant has changed";
  const Compiled &last = *compiled.front();
  if (last.inputs.size() != inputs.size())
    return "there are " + std::to_string(inputs.size()) + " arguments, and were " + std::to_string(last.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].spec != last.inputs[i].spec || inputs[i].weak != last.inputs[i].weak)
      return "argument " + std::to_string(i) + " is " + str(inputs[i].spec) + ", and was " + str(last.inputs[i].spec);
  for (size_t i = 0; i < last.states.size(); ++i) {
    if (last.states[i].cell->tied)
      return "a parameter was tied to another one";
    const Tensor value = last.states[i].cell->value();
    if (value.spec() != last.stateSpecs[i])
      return "a parameter is " + str(value.spec()) + ", and was " + str(last.stateSpecs[i]);
    if (const size_t leaf = leafOf(*Access::state(value)); leaf != last.leaves[i])
      return "a parameter was " + std::string(leaf && last.leaves[i] ? "given a hook" : leaf ? "unfrozen" : "frozen");
  }
  return "a module changed between training and evaluation, or an optimiser has other state";
}

void JitCache::Data::report(const Inputs &inputs, const Location &where) const {
  constexpr size_t kMostRecompilations = 8;
  bool isWarning = traces == kMostRecompilations;
  if (!isWarning && !isLogged("recompile"))
    return;
  std::string place =
      where.file && *where.file ? std::string(where.file) + ":" + std::to_string(where.line) + ": " : "";
  std::string text = place + "jit: recompilation " + std::to_string(traces) + ": " + reasonToTrace(inputs);
  if (isWarning)
    text += "\n  This function has been compiled many times. Where a size varies, say so with jit(f, {.dynamic = "
            "{{argument, "
            "dimension}}}); what else changes can be an argument. BURIN_LOG=recompile tells of each time.";
  std::fprintf(stderr, "burin: %s\n", text.c_str());
}

// ---- calls

JitCache::JitCache(Function function, std::function<TensorNames()> names, JitOptions options)
    : data(std::make_shared<Data>()) {
  data->function = std::move(function);
  data->names = std::move(names);
  data->options = std::move(options);
}

size_t JitCache::traces() const {
  std::lock_guard lock(data->mutex);
  return data->traces;
}

/// Gradients with respect to all float arguments can be taken, as in a trace.
static std::vector<Tensor> callEagerly(const Function &function, std::span<const Tensor> given, const Location &where) {
  std::vector<Tensor> inputs(given.begin(), given.end());
  for (Tensor &input : inputs)
    if (const TensorState &state = stateOf(input, where); !state.weak && isFloat(state.spec.dtype))
      input = input.detach(where).requires_grad_(true, where);
  std::vector<Tensor> results = function(inputs, where);
  for (Tensor &result : results)
    result = result.detach(where);
  return results;
}

std::vector<Tensor> JitCache::call(std::span<const Tensor> given, const Location &where) {
  const Location place = inScope(where);
  if (Trace::active())
    return data->function(given, place);
  if (is_anomaly_detected())
    return callEagerly(data->function, given, place);
  Inputs inputs = data->inputsOf(given, place);
  Key key;
  for (const Trace::Input &input : inputs)
    key.add(input.spec, input.weak);
  key.add(uint64_t(autocastType() ? int(*autocastType()) + 1 : 0));
  std::optional<Device> device = data->deviceOf(given, place);
  const Device runsOn = device.value_or(data->options.device);
  key.add(uint64_t(runsOn.is_cuda() ? runsOn.index() + 1 : 0));
  std::shared_ptr<Compiled> compiled;
  {
    std::lock_guard lock(data->mutex); // compiles under the lock: other callers would wait for the same code anyway
    compiled = data->find(key);
    if (!compiled)
      compiled = data->make(std::move(key), std::move(inputs), device, place);
    data->check(*compiled, place);
  }
  return compiled->run(given, place);
}

} // namespace burin::detail
