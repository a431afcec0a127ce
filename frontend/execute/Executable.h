// Loaded code, run asynchronously.
#pragma once
#include "burin/graph.h"
#include "frontend/tensor/HostFunctions.h"
#include "frontend/tensor/OnDevice.h"
#include "runtime/execute/Session.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <chrono>
#include <mutex>
#include <optional>

namespace burin::detail {

/// An artifact ready to run, from any number of threads at once.
class Executable {
public:
  /// `functions` are those that its host calls run; `statesAreGiven`: runs take and give states like other values. To
  /// run on the processor, or on a GPU.
  explicit Executable(rt::Program::Ptr program, HostFunctions functions = {}, bool statesAreGiven = false,
                      rt::gpu::Device::Ptr gpu = nullptr);
  Device device() const { return gpu ? cuda(gpu->ordinal()) : cpu; }
  const rt::gpu::Device::Ptr &gpuDevice() const { return gpu; }
  const rt::Program &program() const { return *loaded; }
  const rt::Program::Ptr &shared() const { return loaded; }
  /// Runs of code with states follow each other: all see one session's.
  bool hasStates() const { return !statesAreGiven && !loaded->artifact().states.empty(); }
  /// Of a state that is output `output` of a function and given to its runs: the input that is its old value, and
  /// whether the new one is written over it. nullopt for other outputs.
  struct GivenState {
    size_t input;
    bool isInPlace;
  };
  std::optional<GivenState> givenState(uint32_t function, size_t output) const;
  const HostFunctions &functions() const { return hostFunctions; }
  /// Whether runs print or call C++ functions: that happens while the caller waits.
  bool needsHost() const { return asksHost; }

  /// Runs a function, counted among the public ones, on this thread. Outputs without data are gone when it returns:
  /// `take` sees them before.
  /// On a GPU it may return when the run is enqueued: `later` is for what turns out to be wrong.
  rt::Status run(
      uint32_t function, std::span<const rt::TensorView> inputs, std::span<rt::TensorView> outputs,
      llvm::function_ref<void()> take = [] {}, std::shared_ptr<rt::PendingRun> *later = nullptr);
  /// Does something with the states, between two runs.
  rt::Status onStates(llvm::function_ref<rt::Status(rt::Session &)> action);
  /// What a run on operands of `bytes` in all may take, judging by the last one.
  std::chrono::nanoseconds expectedTime(size_t bytes) const;
  /// The outputs for inputs of these types, or what is wrong with the inputs. A size that a run has to tell is a
  /// symbol.
  rt::Status outputsFor(uint32_t function, std::span<const TensorSpec> inputs, std::vector<TensorSpec> &outputs);

private:
  rt::Program::Ptr loaded;
  HostFunctions hostFunctions;
  const bool asksHost, statesAreGiven;
  rt::gpu::Device::Ptr gpu;
  std::atomic<std::chrono::nanoseconds> lastTime{std::chrono::nanoseconds::max()};
  std::atomic<size_t> lastBytes{0};
  std::mutex inOrder;                             // of runs with states
  std::mutex mutex;                               // for what follows
  std::vector<std::unique_ptr<rt::Session>> idle; // a session does one run at a time
  struct Signature {
    uint32_t function;
    std::vector<TensorSpec> inputs, outputs;
  };
  std::vector<Signature> signatures; // of calls of outputsFor, the latest first

  rt::Status takeSession(std::unique_ptr<rt::Session> &session);
  rt::Status withSession(llvm::function_ref<rt::Status(rt::Session &)> action);
};
using ExecutableRef = std::shared_ptr<Executable>;

/// Enqueues a run and returns its results, where the executable runs; inputs are moved there. Inputs are not traced; a
/// scalar is passed as the element type in `scalarTypes`, which may be empty if there are none. `op` names the call in
/// errors and must never be freed. A run whose inputs are there and that is expected to take at most `atOnce` happens
/// in the call: handing it to another thread would take longer. One whose results have symbolic sizes always does:
/// their shapes are to be right. New values of given states are handed to `publish`, with all results, before the run
/// begins: what drops the last other reference to an old value there lets the run write over it. A run that fails
/// leaves the old values in the new ones.
std::vector<Tensor> launch(
    const ExecutableRef &executable, uint32_t function, std::span<const Tensor *const> inputs,
    std::span<const DType> scalarTypes, std::span<const TensorSpec> results, std::chrono::nanoseconds atOnce,
    const char *op, const Location &where,
    llvm::function_ref<void(std::span<const Tensor> results)> publish = [](std::span<const Tensor>) {});

/// artifact.run() with the values of the states that are given to its runs.
std::vector<Tensor> runWithStates(const Artifact &artifact, std::span<const Tensor> inputs,
                                  llvm::function_ref<void(std::span<const Tensor> results)> publish,
                                  const Location &where);

} // namespace burin::detail
