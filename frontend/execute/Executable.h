// Loaded code with asynchronous runs.
#pragma once
#include "burin/graph/graph.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/functions/HostFunctions.h"
#include "runtime/execute/session/Session.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <chrono>
#include <mutex>
#include <optional>

namespace burin::detail {

/// The size of all elements.
size_t byteCount(std::span<const rt::TensorView> views);

/// A loaded artifact; may be run by several threads concurrently.
class Executable {
public:
  /// `functions` are the targets of its host calls. `statesAreGiven`: states are inputs and outputs of runs. `gpu`:
  /// null for the CPU. `threads`: of each session, 0 for the shared ones.
  explicit Executable(rt::Program::Ptr program, HostFunctions functions = {}, bool statesAreGiven = false,
                      rt::gpu::Device::Ptr gpu = nullptr, int threads = 0);
  int threads() const { return threadCount; }
  Device device() const { return gpu ? cuda(gpu->ordinal()) : cpu; }
  const rt::gpu::Device::Ptr &gpuDevice() const { return gpu; }
  const rt::Program &program() const { return *loaded; }
  const rt::Program::Ptr &shared() const { return loaded; }
  /// Whether runs use states of one session; they are then serialised.
  bool hasStates() const { return !statesAreGiven && !loaded->artifact().states.empty(); }
  /// For an output that is a state given to runs: the input with its old value, and whether the plan updates it in
  /// place. nullopt for other outputs.
  struct GivenState {
    size_t input;
    bool isInPlace;
  };
  std::optional<GivenState> givenState(uint32_t function, size_t output) const;
  const HostFunctions &functions() const { return hostFunctions; }
  /// Whether runs print or call C++ functions; they are then synchronous.
  bool needsHost() const { return asksHost; }

  /// Runs a function, by its index among the public ones, on this thread. Outputs without `data` are only valid during
  /// `take`. On a GPU it may return when the run is enqueued; errors are then reported to `later`.
  rt::Status run(
      uint32_t function, std::span<const rt::TensorView> inputs, std::span<rt::TensorView> outputs,
      llvm::function_ref<void()> take = [] {}, std::shared_ptr<rt::PendingRun> *later = nullptr,
      const rt::UpdateHook &updates = {});
  /// Accesses the states between two runs.
  rt::Status onStates(llvm::function_ref<rt::Status(rt::Session &)> action);
  /// The expected time of a run with operands of `bytes` in total, from the last run.
  std::chrono::nanoseconds expectedTime(size_t bytes) const;
  /// The outputs for inputs of these types, or an error for the inputs. Sizes that a run computes are symbols.
  rt::Status outputsFor(uint32_t function, std::span<const TensorSpec> inputs, std::vector<TensorSpec> &outputs);

private:
  rt::Program::Ptr loaded;
  HostFunctions hostFunctions;
  const bool asksHost, statesAreGiven;
  const int threadCount;
  rt::gpu::Device::Ptr gpu;
  std::atomic<std::chrono::nanoseconds> lastTime{std::chrono::nanoseconds::max()};
  std::atomic<size_t> lastBytes{0};
  std::mutex inOrder;                             // of runs with states
  std::mutex mutex;                               // guards the members below
  std::vector<std::unique_ptr<rt::Session>> idle; // a session runs one call at a time
  struct Signature {
    uint32_t function;
    std::vector<TensorSpec> inputs, outputs;
  };
  std::vector<Signature> signatures; // of calls of outputsFor, most recent first

  rt::Status takeSession(std::unique_ptr<rt::Session> &session);
  rt::Status withSession(llvm::function_ref<rt::Status(rt::Session &)> action);
};
using ExecutableRef = std::shared_ptr<Executable>;

/// Where the new values of states that are given to a run are stored.
class StateStore {
public:
  /// Stores the new values among the results of the run, which are computed later or during the call. Drops the
  /// caller's references to the former ones.
  virtual void store(std::span<const Tensor> results) = 0;
  /// Readers of the states, which have waited since store(), get the new values.
  virtual void release() = 0;

protected:
  ~StateStore() = default;
};

/// Enqueues a run and returns its results, on the device of the executable, where inputs are moved. Inputs must not be
/// traced values; scalars are passed as `scalarTypes`, which may be empty without scalars. `op` names the call in
/// errors and must never be freed. The run is synchronous if its inputs are complete and its expected time is at most
/// `atOnce`, because another thread would take longer, and if its results have symbolic sizes, because their shapes
/// must be known. New values of given states go to `states` before the run begins: if that drops the last other
/// reference to an old value, the run can overwrite it. If a run calls host functions or determines sizes, they go
/// there after its last step that can fail: until then the old values are read. A failed run leaves the old values in
/// the new ones, and does not make later runs fail that read only those.
std::vector<Tensor> launch(const ExecutableRef &executable, uint32_t function, std::span<const Tensor *const> inputs,
                           std::span<const DType> scalarTypes, std::span<const TensorSpec> results,
                           std::chrono::nanoseconds atOnce, const char *op, const Location &where,
                           StateStore *states = nullptr);

/// artifact.run() with the states as inputs and outputs.
std::vector<Tensor> runWithStates(const Artifact &artifact, std::span<const Tensor> inputs, StateStore *states,
                                  const Location &where);

} // namespace burin::detail
