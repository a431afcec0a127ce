// What the functions of one session share while they run.
#pragma once
#include "runtime/code/Loader.h"
#include "runtime/execute/GrowingMemory.h"
#include "runtime/execute/ShapeBinding.h"
#include "runtime/gpu/Gpu.h"
#include "runtime/threads/Pool.h"
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

namespace burin::rt {

/// Somebody else's thread pool, with the contract of Pool: worker indices below `threads`, no two running bodies of
/// one call with the same index.
struct ParallelFor {
  void *ctx = nullptr;
  void (*run)(void *ctx, int64_t n, int64_t grain, Pool::Body body, void *bodyCtx) = nullptr;
  int threads = 0;
};

/// Receives messages for whoever watches; level 0: debug, 1: info, 2: warning.
struct Logger {
  void *ctx = nullptr;
  void (*log)(void *ctx, int level, const char *message) = nullptr;
};

/// What one step of a run did; steps of a loop report once per turn. The pointers live as long as the program.
struct StepProfile {
  uint32_t step = 0;
  const char *kernel = nullptr, *location = nullptr; // location: "file:line", or ""
  int64_t startNs = 0, endNs = 0;                    // of CLOCK_MONOTONIC
  int64_t tasks = 0, flops = 0, bytes = 0;
  bool parallel = false;
  int64_t turn = 0, turns = 1;    // of the loop that the step is in
  const char *function = nullptr; // whose plan has the step
};
struct ProfileHook {
  void *ctx = nullptr;
  void (*step)(void *ctx, const StepProfile &profile) = nullptr;
};

/// Calls the functions of host calls: those of the process that compiled the artifact.
struct HostFunctions {
  void *ctx = nullptr;
  Status (*call)(void *ctx, uint32_t function, std::span<const TensorView> inputs,
                 std::span<const TensorView> results) = nullptr;
};

/// The first step of a run that found a value that is not allowed, and where: whatever the number of threads, the one
/// that comes first in the plan, in its first turn, at its lowest position.
class DataError {
public:
  static constexpr int64_t kNone = INT64_MAX;

  bool any() const { return step != kNone; }
  /// Whether a step must still run: those before the failed one may fail, too.
  bool precedes(int64_t other) const { return other < step; }
  void add(int64_t inStep, int64_t inTurn, int64_t at) {
    std::lock_guard lock(mutex);
    if (std::tie(inStep, inTurn, at) < std::tie(step, turn, position))
      step = inStep, turn = inTurn, position = at;
  }
  void clear() { step = turn = position = kNone; }
  int64_t step = kNone, turn = kNone, position = kNone;

private:
  std::mutex mutex;
};

class PlanRunner;

struct RunContext {
  Program::Ptr program;
  Allocator allocator;
  gpu::Gpu *gpu = nullptr; // null: on the processor
  Allocator runMemory;     // of intermediate results and scratch, where kernels run
  Allocator stateMemory;   // of states, there too
  Allocator exchange;      // of results: on a GPU memory of the process that it can copy to
  ParallelFor parallel;
  Pool *pool = nullptr; // null when `parallel` is somebody else's, or serial
  Logger logger;
  ProfileHook profile;
  HostFunctions host;
  GrowingMemory scratch;
  std::vector<std::unique_ptr<PlanRunner>> runners; // one per plan

  Place place() const { return {parallel.threads, gpu ? gpu->weights() : nullptr}; }
};

} // namespace burin::rt
