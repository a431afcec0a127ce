// A loaded artifact with states of its own, ready to run; one run at a time.
#pragma once
#include "runtime/execute/session/PendingRun.h"
#include <atomic>

namespace burin::rt {

struct SessionOptions {
  int threads = 0; // 0: the shared pool; 1: only the caller; more: a private pool
  Allocator allocator = {};
  ParallelFor parallelFor = {}; // if set, used instead of a pool
  Logger logger = {};
  HostFunctions host = {};
  /// The session has no states: callers of run() append their values to the inputs and memory for new values to the
  /// outputs. If a plan updates a state in place, both are the same memory.
  bool statesAreGiven = false;
  std::string device = {}; // "" or "cpu", or a GPU such as "cuda:0", which ignores threads
  gpu::StreamChoice stream = {};
};

/// Parses a device name: the ordinal of "cuda:0", or -1 for "" and "cpu". InvalidArgument for anything else.
Status parseDevice(std::string_view name, int &ordinal);

class Session {
public:
  static Status create(Program::Ptr program, const SessionOptions &options, std::unique_ptr<Session> &out);
  /// Runs on `gpu` if it is not null; it must have the code and weights of the program.
  Session(Program::Ptr program, const SessionOptions &options, std::unique_ptr<gpu::Gpu> gpu);
  ~Session();

  const Program &program() const { return *context.program; }
  int threads() const { return context.parallel.threads; }

  // ---- functions, by index among the public ones; most artifacts have a single one, 0
  /// Prepares for these input shapes (data may be null) and makes them current for outputShape.
  Status bind(std::span<const TensorView> inputs, uint32_t function = 0);
  /// Whether a bind or run has succeeded; required by the next three functions.
  bool isBound(uint32_t function = 0) const { return context.runners[function]->isBound(); }
  /// After a bind, or a failed run, sizes that are computed at run time are -1.
  std::span<const int64_t> outputShape(uint32_t i, uint32_t function = 0) const {
    return context.runners[function]->outputShape(i);
  }
  uint64_t outputBytes(uint32_t i, uint32_t function = 0) const { return context.runners[function]->outputBytes(i); }
  /// Bytes of the arena for the current shapes.
  uint64_t arenaBytes(uint32_t function = 0) const { return context.runners[function]->arenaBytes(); }

  /// Runs. An output with data must have the right dtype and shape, and must overlap neither inputs nor other outputs.
  /// For one without data all fields are set, with memory of the session that is valid until the next run. If a shape
  /// depends on computed values, an output with data is checked, and may be rejected, during the run. A failed run
  /// leaves all states unchanged.
  ///
  /// On a GPU a run returns when its outputs are complete. It returns early if all outputs are in GPU memory and either
  /// `later` is given, which it sets (null: the run cannot find errors), or the stream is the caller's: see
  /// synchronize().
  ///
  /// On a CPU, if the states are given: calls `updates`.
  Status run(std::span<const TensorView> inputs, std::span<TensorView> outputs, uint32_t function = 0,
             std::shared_ptr<PendingRun> *later = nullptr, const UpdateHook &updates = {});
  /// Waits for runs that returned early. Returns the first error since the last call.
  Status synchronize();

  // ---- states
  /// The value of a state, in memory of the device; valid until the next run.
  TensorView state(uint32_t i) const;
  /// The value of a state in host memory.
  Status readState(uint32_t i, TensorView &out);
  /// Replaces a state by `bytes`, which must have its size; in memory of the session's GPU if `isOnGpu`.
  Status writeState(uint32_t i, Bytes bytes, bool isOnGpu = false);
  /// Resets all states to their initial values in the artifact.
  Status resetStates();
  /// Copies all states from another session of the same artifact.
  Status copyStates(Session &from);
  /// Element j of a state along `axis` becomes element order[j]; for example, the rows of a cache follow their beams.
  Status reorderState(uint32_t i, uint32_t axis, std::span<const int64_t> order);
  /// Writes all states to a file, by name, as safetensors. The write is atomic.
  Status saveStates(const std::string &path);
  /// Replaces all states by those of a file, which must have exactly these names, element types and shapes; otherwise
  /// nothing is changed.
  Status loadStates(const std::string &path);

  /// Called after each step of later runs; a null function disables it.
  Status setProfile(const ProfileHook &hook);

private:
  std::unique_ptr<gpu::Gpu> gpu; // first member: the memory of the context may be on it
  RunContext context;
  std::unique_ptr<Pool> ownPool;
  struct StateMemory {
    GrowingMemory value, next; // `next` is written by runs that replace the state
    uint64_t bytes = 0;
    GrowingMemory onHost; // copy of the value, as last read from a GPU
  };
  std::vector<StateMemory> states;
  std::vector<TensorView> allInputs, allOutputs; // of the caller, followed by states
  std::atomic<bool> busy = false;
  const bool statesAreGiven;

  std::vector<std::shared_ptr<PendingRun>> left; // runs that returned early
  bool isStreamGiven = false;

  Status makeStates();
  void initialise(uint32_t state);
  Status withStates(std::span<const TensorView> inputs, std::span<const TensorView> outputs, const Plan &plan);
  Status runWithStates(std::span<const TensorView> inputs, std::span<TensorView> outputs, uint32_t function,
                       GpuRun &mode);
  Status withStatesOnGpu(const Plan &plan, bool inPlace);
  Status keepReport(uint32_t function, GpuRun &mode, std::shared_ptr<PendingRun> *later);
  Status allocateState(GrowingMemory &memory, const StateMemory &of, uint32_t state) const;
  void copyState(void *to, const void *from, uint64_t bytes);
  Status overwriteState(uint32_t state, const void *from, bool isOnGpu);
  Status valuesIn(Bytes file, const std::string &path, std::vector<const std::byte *> &values) const;
};

/// Marks a session busy for the duration of one call.
class SessionHold {
public:
  explicit SessionHold(std::atomic<bool> &busy) : busy(busy), held(!busy.exchange(true, std::memory_order_acquire)) {}
  ~SessionHold() {
    if (held)
      busy.store(false, std::memory_order_release);
  }
  bool ok() const { return held; }
  static Status refusal() {
    return {ErrorCode::Busy,
            "the session is running already\n  make one session per thread; they share the loaded artifact"};
  }

private:
  std::atomic<bool> &busy;
  const bool held;
};

} // namespace burin::rt
