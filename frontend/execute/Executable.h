// Loaded code, run asynchronously.
#pragma once
#include "frontend/tensor/TensorState.h"
#include "runtime/execute/Session.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <chrono>
#include <mutex>

namespace burin::detail {

/// An artifact ready to run, from any number of threads at once.
class Executable {
public:
  explicit Executable(rt::Program::Ptr program) : loaded(std::move(program)) {}
  const rt::Program &program() const { return *loaded; }
  const rt::Program::Ptr &shared() const { return loaded; }
  /// Runs of code with states follow each other: all see one session's.
  bool hasStates() const { return !loaded->artifact().states.empty(); }

  /// Runs a function, counted among the public ones, on this thread. Outputs without data are gone when it returns:
  /// `take` sees them before.
  rt::Status run(
      uint32_t function, std::span<const rt::TensorView> inputs, std::span<rt::TensorView> outputs,
      llvm::function_ref<void()> take = [] {});
  /// Does something with the states, between two runs.
  rt::Status onStates(llvm::function_ref<rt::Status(rt::Session &)> action);
  /// What a run on operands of `bytes` in all may take, judging by the last one.
  std::chrono::nanoseconds expectedTime(size_t bytes) const;
  /// The outputs for inputs of these types, or what is wrong with the inputs. A size that a run has to tell is a
  /// symbol.
  rt::Status outputsFor(uint32_t function, std::span<const TensorSpec> inputs, std::vector<TensorSpec> &outputs);

private:
  rt::Program::Ptr loaded;
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

/// Enqueues a run and returns its results. Inputs are not traced; a scalar is passed as the element type in
/// `scalarTypes`, which may be empty if there are none. `op` names the call in errors and must never be freed.
/// A run whose inputs are there and that is expected to take at most `atOnce` happens in the call: handing it to
/// another thread would take longer. One whose results have symbolic sizes always does: their shapes are to be right.
std::vector<Tensor> launch(const ExecutableRef &executable, uint32_t function, std::span<const Tensor *const> inputs,
                           std::span<const DType> scalarTypes, std::span<const TensorSpec> results,
                           std::chrono::nanoseconds atOnce, const char *op, const Location &where);

} // namespace burin::detail
