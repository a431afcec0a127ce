// A loaded artifact ready to run, with its own states; one run at a time.
#pragma once
#include "runtime/execute/PendingRun.h"
#include <atomic>

namespace burin::rt {

struct SessionOptions {
  int threads = 0; // 0: the shared pool; 1: only the caller; more: a pool of its own
  Allocator allocator = {};
  ParallelFor parallelFor = {}; // when set, used instead of a pool
  Logger logger = {};
  HostFunctions host = {};
  /// The session has no states: callers of run() pass their values behind the inputs, and places for new values behind
  /// the outputs; where a plan updates a state in place, both are the same memory.
  bool statesAreGiven = false;
  std::string device = {}; // "" or "cpu": the processor; "cuda:0": a GPU, and threads play no part
  gpu::StreamChoice stream = {};
};

/// The number of the GPU "cuda:0", or -1 for the processor ("" or "cpu"). InvalidArgument for anything else.
Status parseDevice(std::string_view name, int &ordinal);

class Session {
public:
  static Status create(Program::Ptr program, const SessionOptions &options, std::unique_ptr<Session> &out);
  /// On a GPU if one is given, which has the code and weights of the program.
  Session(Program::Ptr program, const SessionOptions &options, std::unique_ptr<gpu::Gpu> gpu);
  ~Session();

  const Program &program() const { return *context.program; }
  int threads() const { return context.parallel.threads; }

  // ---- functions, by their place among the public ones; 0 is the only one of most artifacts
  /// Prepares for these input shapes (data may be null) and makes them current: outputShape answers for them.
  Status bind(std::span<const TensorView> inputs, uint32_t function = 0);
  /// Whether there was a successful bind or run; the next three need one.
  bool isBound(uint32_t function = 0) const { return context.runners[function]->isBound(); }
  /// After a bind, or a run that failed, a size that only a run can tell is -1.
  std::span<const int64_t> outputShape(uint32_t i, uint32_t function = 0) const {
    return context.runners[function]->outputShape(i);
  }
  uint64_t outputBytes(uint32_t i, uint32_t function = 0) const { return context.runners[function]->outputBytes(i); }
  /// Bytes planned for intermediate results of the current shapes.
  uint64_t arenaBytes(uint32_t function = 0) const { return context.runners[function]->arenaBytes(); }

  /// Runs. An output with data must have the right dtype and shape, and must overlap neither inputs nor other
  /// outputs; one without is given memory of the session, valid until the next run, and all its fields are set. Whether
  /// a shape that depends on what is computed is the right one turns out, and may be refused, on the way. A run that
  /// fails leaves all states as they were.
  ///
  /// On a GPU a run returns when its outputs are complete, unless all of them are there, and `later` is given, which it
  /// sets (null: the run cannot find anything wrong), or the stream is the caller's: see synchronize().
  Status run(std::span<const TensorView> inputs, std::span<TensorView> outputs, uint32_t function = 0,
             std::shared_ptr<PendingRun> *later = nullptr);
  /// Waits for runs that have returned early. What was wrong first since the last call.
  Status synchronize();

  // ---- states
  /// The value of a state, where the session runs; valid until the next run.
  TensorView state(uint32_t i) const;
  /// The same in the memory of the process.
  Status readState(uint32_t i, TensorView &out);
  /// Replaces it by `bytes`, which must be as many as it has; on the session's GPU if `isOnGpu`.
  Status writeState(uint32_t i, Bytes bytes, bool isOnGpu = false);
  /// All states become what the artifact begins with.
  Status resetStates();
  /// All states become those of another session of the same artifact.
  Status copyStates(Session &from);
  /// Element j of a state along `axis` becomes what element order[j] is: the rows of a cache follow their beams.
  Status reorderState(uint32_t i, uint32_t axis, std::span<const int64_t> order);

  /// Called after each step of later runs; a null function turns it off.
  Status setProfile(const ProfileHook &hook);

private:
  std::unique_ptr<gpu::Gpu> gpu; // first: the memory of the context may lie there
  RunContext context;
  std::unique_ptr<Pool> ownPool;
  struct StateMemory {
    GrowingMemory value, next; // `next` is written by runs that replace it
    uint64_t bytes = 0;
    GrowingMemory onHost; // the value as it was last read from a GPU
  };
  std::vector<StateMemory> states;
  std::vector<TensorView> allInputs, allOutputs; // of the caller, and states
  std::atomic<bool> busy = false;
  const bool statesAreGiven;

  std::vector<std::shared_ptr<PendingRun>> left; // runs that have returned early
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
};

/// Holds a session for the length of one call.
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
