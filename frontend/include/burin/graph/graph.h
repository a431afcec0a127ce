// Tracing of functions to graphs, and compilation of graphs to machine code.
#pragma once
#include "burin/graph/callable.h"
#include <map>
#include <optional>

namespace burin {

/// An input or output of a graph or artifact.
struct NamedSpec {
  std::string name;
  TensorSpec spec;
  friend bool operator==(const NamedSpec &, const NamedSpec &) = default;
};
BURIN_API std::string str(const NamedSpec &);

/// Options of compile().
struct CompileOptions {
  /// "native" (the best of the next three on this machine), "x86-64-v3", "x86-64-v4", "x86-64-v4+bf16" (products of
  /// bf16 by AVX512-BF16); an artifact may have code for several targets, of which loading chooses the best. Or
  /// "x86-64-v4+amx" alone: large f32 products on tiles of bf16, up to 1.8 times as fast, with the accuracy of f32 but
  /// other last bits than other targets (docs/numerics.md). Code for NVIDIA GPUs: "cuda-sm_80+ptx", "cuda-sm_90a+ptx",
  /// also with "+tf32" or "+bf16x3" at the end for less exact f32 products (docs/gpu.md).
  std::vector<std::string> targets{"native"};
  /// Limit in bytes of a run's weights, states, inputs, outputs and intermediate values; 0: no limit. If the plan needs
  /// more, values that are held for later are recomputed by the same kernels, the cheapest first, so results keep their
  /// bits. Throws if that is not enough, with the smallest peak found and the values held there.
  uint64_t memory_limit = 0;
  /// With a memory_limit: f32 values may be stored as bf16 between two uses, which changes results.
  bool memory_allow_bf16 = false;
  /// For GPUs alone: "cublaslt" lets NVIDIA's library cuBLASLt compute matrix products where it is installed; the
  /// artifact has kernels for them all the same. "": kernels of burin alone.
  std::string provider = {};
  /// Where the artifact runs at first (see Artifact::to); unset: where the graph does (see Graph::device). For a GPU,
  /// "native" is the code that fits it, unless `targets` have code for GPUs besides.
  std::optional<Device> device = {};
};

/// Options of Artifact::load().
struct ArtifactOptions {
  /// Where the artifact runs at first (see Artifact::to). Unset: on the processor, or if there is code for GPUs alone,
  /// on the first GPU. Throws where there is no such device, or no code for it.
  std::optional<Device> device = {};
  /// Threads of each run, including the one that runs it; 0: the process's (see num_threads), which all runs share.
  /// Concurrent runs have threads of their own. Results do not depend on it. As burin_session_options.threads of the C
  /// interface; copies by to() and with_own_states() have as many.
  int threads = 0;
};

/// Compiled code with its weights and states; a handle, whose copies share them. Calls are asynchronous, like ops.
/// Calls of functions with states are serialised, from all threads.
class BURIN_API Artifact {
public:
  const std::vector<NamedSpec> &inputs() const;
  const std::vector<NamedSpec> &outputs() const;

  /// The names of the functions; most artifacts have one, "main".
  std::vector<std::string> functions() const;
  /// The same artifact with another function for inputs(), outputs() and run(); weights and states are shared. Throws
  /// if no function has that name.
  Artifact function(const std::string &name, Location where = Location::current()) const;

  /// Tensors that outlive a run: parameters in training, running statistics, caches. In the order of the file.
  const std::vector<NamedSpec> &states() const;
  /// A copy of the current value. Throws if no state has that name.
  Tensor state(const std::string &name, Location where = Location::current()) const;
  /// Throws unless element type and shape are those of the state.
  void set_state(const std::string &name, const Tensor &value, Location where = Location::current()) const;
  /// Restores all states to the values in the file.
  void reset_states(Location where = Location::current()) const;
  /// Writes all states, by name, as safetensors. The write is atomic.
  void save_states(const std::string &path, Location where = Location::current()) const;
  /// The file must have exactly the states of the artifact, with their element types and shapes; otherwise nothing
  /// changes.
  void load_states(const std::string &path, Location where = Location::current()) const;
  /// The same code and weights, with separate states that start with the current values.
  Artifact with_own_states(Location where = Location::current()) const;

  /// Where it runs.
  Device device() const;
  /// The same artifact on another device that it has code for, with states of its own that begin as they are now.
  /// Inputs are moved there; results are there.
  Artifact to(Device device, Location where = Location::current()) const;

  /// The target whose code runs here: "x86-64-v4"; empty if all code is for other machines.
  const std::string &target() const;

  /// The effect of CompileOptions::memory_limit as text: for each function its need of memory, then each recomputed
  /// value with its location, the bytes saved and the FLOP added. Empty without a limit.
  const std::string &memory_report() const;

  std::vector<Tensor> run(std::span<const Tensor> inputs, Location where = Location::current()) const;
  std::vector<Tensor> run(std::initializer_list<Tensor> inputs, Location where = Location::current()) const {
    return run(std::span(inputs.begin(), inputs.size()), where);
  }
  /// By the names in inputs() and outputs(). Throws if a name is missing or unknown.
  std::map<std::string, Tensor> run(const std::map<std::string, Tensor> &inputs,
                                    Location where = Location::current()) const;
  /// For artifacts with one output.
  template <std::convertible_to<Tensor>... Rest>
  Tensor operator()(const detail::Operand &first, const Rest &...rest) const {
    return single({first.tensor, Tensor(rest)...}, first.where);
  }
  /// Loads a compiled artifact (.plate). It contains machine code: load only what you would run. Throws if the file
  /// is none, is damaged, or was compiled for other machines only.
  static Artifact load(const std::string &path, const ArtifactOptions &options = {},
                       Location where = Location::current());
  /// Writes the file, whole or not at all.
  void save(const std::string &path, Location where = Location::current()) const;

  struct Data;
  explicit Artifact(std::shared_ptr<const Data> data, uint32_t index = 0) : data(std::move(data)), index(index) {}
  const std::shared_ptr<const Data> &shared() const { return data; }

private:
  Tensor single(std::initializer_list<Tensor> inputs, const Location &where) const;
  Artifact onDevice(Device device, const char *op, const Location &where) const;
  uint32_t stateIndex(const std::string &name, const char *op, const Location &where) const;
  std::shared_ptr<const Data> data;
  uint32_t index; // of the function
};

/// The same as Artifact::load.
BURIN_API Artifact load(const std::string &path, const ArtifactOptions &options = {},
                        Location where = Location::current());

/// A traced function: ops, weights, names and source locations. A handle to an immutable object.
class BURIN_API Graph {
public:
  const std::vector<NamedSpec> &inputs() const;
  const std::vector<NamedSpec> &outputs() const;

  /// The names of the functions. A graph from trace() or ONNX has one, "main"; see Program for more.
  std::vector<std::string> functions() const;
  /// The same graph with another function for inputs(), outputs() and run(). Throws if no function has that name.
  Graph function(const std::string &name, Location where = Location::current()) const;

  /// MLIR text, without large weights.
  std::string str() const;
  void print(std::ostream &) const;
  /// Writes the graph with its weights (.burin), atomically; as an ONNX model if the name ends with .onnx.
  void save(const std::string &path, Location where = Location::current()) const;
  /// Reads a .burin file, MLIR text, or an ONNX model (see load_onnx). Damaged files and files of other formats throw.
  /// Load graphs only from sources that you trust with code: MLIR's reader is not hardened against forged files with a
  /// valid checksum.
  static Graph load(const std::string &path, Location where = Location::current());

  /// Where run() and compile() have it run: what to() has said, else where the parameters of the traced function were,
  /// else on the processor. Files do not say it.
  Device device() const;
  /// The same graph, to run on another device: weights are copied there when it is compiled.
  Graph to(Device device) const;

  /// Compiles for this machine, and the device, on the first call, then runs; asynchronous like ops. Inputs are moved
  /// to the device; results are there. States are shared by all handles to the graph on one device, and by its
  /// functions.
  std::vector<Tensor> run(std::span<const Tensor> inputs, Location where = Location::current()) const;
  std::vector<Tensor> run(std::initializer_list<Tensor> inputs, Location where = Location::current()) const {
    return run(std::span(inputs.begin(), inputs.size()), where);
  }

  struct Data;
  explicit Graph(std::shared_ptr<Data> data, std::optional<size_t> chosen = {}, std::optional<Device> place = {})
      : data(std::move(data)), chosen(chosen), place(place) {}
  const std::shared_ptr<Data> &shared() const { return data; }

private:
  std::shared_ptr<Data> data;
  std::optional<size_t> chosen; // by function(); otherwise the first function
  std::optional<Device> place;  // what to() has said
};

BURIN_API Artifact compile(const Graph &graph, const CompileOptions &options = {},
                           Location where = Location::current());

/// Origin of the kernels of this process's eager calls.
struct KernelStatistics {
  uint64_t compiled = 0, fromDisk = 0;
};
BURIN_API KernelStatistics kernel_statistics();

/// When a jitted function is traced again, without running anything, to verify that it still records the compiled
/// graph. The C++ code of the function runs each time.
enum class JitCheck {
  Never,
  First,     /// on the second, third and fourth call per argument types
  Sometimes, /// on the second call, then on one of 32 at random
  Always,
};

/// Options of jit().
struct JitOptions {
  /// The environment variable BURIN_JIT_CHECK overrides it: 0 is Never, 1 Sometimes, "always" Always.
#ifdef NDEBUG
  JitCheck check = JitCheck::Never;
#else
  JitCheck check = JitCheck::First;
#endif
  /// {argument, dimension}: sizes that may change between calls without recompilation. Sizes that are equal in the
  /// first call must be equal in all calls that use the same code; other calls are compiled again. Size 1, which may
  /// broadcast, has separate code.
  std::vector<std::pair<int64_t, int64_t>> dynamic = {};
  /// As in CompileOptions, for each combination of arguments; parameters and other states count as inputs, and their
  /// new values as outputs. BURIN_LOG=memory prints the recomputed values.
  uint64_t memory_limit = 0;
  bool memory_allow_bf16 = false;
  /// Where the function runs if neither an argument nor a parameter that it uses says so.
  Device device = {};
};

namespace detail {
BURIN_API Graph trace(const Function &function, std::span<const TensorSpec> inputs, std::vector<std::string> inputNames,
                      std::vector<std::string> outputNames, const TensorNames &names, const Location &where);

/// Cache of the compiled variants of a jitted function.
class BURIN_API JitCache {
public:
  JitCache(Function function, std::function<TensorNames()> names, JitOptions options);
  std::vector<Tensor> call(std::span<const Tensor> inputs, const Location &where);
  size_t traces() const;

private:
  struct Data;
  std::shared_ptr<Data> data;
};
} // namespace detail

/// During its lifetime, ops of this thread run eagerly, even while a function is traced: for values that are computed
/// once, at tracing time, such as initial states.
class BURIN_API NoTrace {
public:
  NoTrace();
  ~NoTrace();
  NoTrace(const NoTrace &) = delete;
  NoTrace &operator=(const NoTrace &) = delete;

private:
  void *outer;
};

/// Records what `function` does to inputs of these types: the ops that it calls, not the C++ around them. `function`
/// takes one Tensor per input, or one std::vector<Tensor>; it returns a Tensor, or a vector, pair or tuple of them.
/// Tensors from outside are captured as constants. Reading a value, or deciding on a symbolic size, throws. The graph
/// runs where the parameters and constants are, all of them on one device; else where the thread's DeviceScope says, or
/// on the processor: see Graph::to.
template <class F>
Graph trace(F &&function, const std::vector<TensorSpec> &inputs, std::vector<std::string> inputNames = {},
            std::vector<std::string> outputNames = {}, Location where = Location::current()) {
  return detail::trace(detail::erase(function), inputs, std::move(inputNames), std::move(outputNames),
                       detail::namesOf(function), where);
}

/// `function`, compiled: traced once per combination of element types and shapes of its arguments, and of modes of its
/// modules. Traced again when a parameter that it only reads has changed, at most twice. Copies share the compiled
/// code. Inside another trace the function itself is called.
template <class F> class Jit {
public:
  explicit Jit(F function, JitOptions options = {})
      : cache(detail::erase(function), [function] { return detail::namesOf(function); }, std::move(options)) {}

  template <class G = F>
    requires(detail::takes<G, 0> || detail::takesList<G>)
  auto operator()(Location where = Location::current()) const {
    return call<0>(where, {});
  }
  /// Any number of tensors, numbers or sizes, one per parameter.
  template <std::convertible_to<Tensor>... Rest>
    requires(detail::takes<F, 1 + sizeof...(Rest)> || detail::takesList<F>)
  auto operator()(const detail::Operand &first, const Rest &...rest) const {
    return call<1 + sizeof...(Rest)>(first.where, {first.tensor, Tensor(rest)...});
  }
  /// A function of a list takes a list.
  template <std::same_as<std::vector<Tensor>> List>
    requires(detail::takesList<F>)
  auto operator()(const List &inputs, Location where = Location::current()) const {
    using Result = detail::ResultOf<F, detail::kMaxArguments + 1>;
    return detail::unflatten<Result>(cache.call(inputs, where));
  }
  auto operator()(std::initializer_list<Tensor> inputs, Location where = Location::current()) const
    requires(detail::takesList<F> && !detail::takes<F, 1>)
  {
    return (*this)(std::vector<Tensor>(inputs), where);
  }
  /// Any number of arguments; returns a list of results.
  std::vector<Tensor> run(std::span<const Tensor> inputs, Location where = Location::current()) const {
    return cache.call(inputs, where);
  }
  /// How often the function has been traced.
  size_t traces() const { return cache.traces(); }

private:
  template <size_t N> auto call(const Location &where, std::initializer_list<Tensor> inputs) const {
    using Result = detail::ResultOf<F, N>;
    return detail::unflatten<Result>(cache.call(std::span(inputs.begin(), inputs.size()), where));
  }
  mutable detail::JitCache cache;
};

template <class F> Jit<std::decay_t<F>> jit(F &&function, JitOptions options = {}) {
  return Jit<std::decay_t<F>>(std::forward<F>(function), std::move(options));
}

} // namespace burin
