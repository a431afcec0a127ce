// State that the functions of a session share during a run.
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

/// The caller's thread pool, with the contract of Pool: worker indices are below `threads`, and concurrent bodies of
/// one call have distinct ones.
struct ParallelFor {
  void *ctx = nullptr;
  void (*run)(void *ctx, int64_t n, int64_t grain, Pool::Body body, void *bodyCtx) = nullptr;
  int threads = 0;
};

/// Receives log messages; level 0: debug, 1: info, 2: warning.
struct Logger {
  void *ctx = nullptr;
  void (*log)(void *ctx, int level, const char *message) = nullptr;
};

/// Profile of one step; steps of a loop report once per iteration. The pointers live as long as the program.
struct StepProfile {
  uint32_t step = 0;
  const char *kernel = nullptr, *location = nullptr; // location: "file:line", or ""
  int64_t startNs = 0, endNs = 0;                    // of CLOCK_MONOTONIC
  int64_t tasks = 0, flops = 0, bytes = 0;
  bool parallel = false;
  int64_t iteration = 0, iterations = 1; // iteration of the surrounding loop, and their number
  const char *function = nullptr;        // the function that contains the step
  const char *provider = nullptr;        // the library that has computed the step instead of the kernel, or null
};
struct ProfileHook {
  void *ctx = nullptr;
  void (*step)(void *ctx, const StepProfile &profile) = nullptr;
};

/// Calls the functions of host calls, which belong to the process that compiled the artifact.
struct HostFunctions {
  void *ctx = nullptr;
  Status (*call)(void *ctx, uint32_t function, std::span<const TensorView> inputs,
                 std::span<const TensorView> results) = nullptr;
};

/// Called once in a run on a CPU whose caller gives the states, before the first step that overwrites one and after the
/// last one that can fail: until then, callers' memory has the former values. The function may change the data of
/// states, in the inputs and outputs of the run alike. If it fails, the run ends, and no state has been overwritten.
struct UpdateHook {
  void *ctx = nullptr;
  Status (*begin)(void *ctx) = nullptr;
};

/// The first error of a run: the step that comes first in the plan, in its first iteration, at its lowest position. It
/// does not depend on the number of threads.
class DataError {
public:
  static constexpr int64_t kNone = INT64_MAX;

  bool any() const { return step != kNone; }
  /// Whether a step must still run: steps before the failed one may fail, too.
  bool precedes(int64_t other) const { return other < step; }
  void add(int64_t inStep, int64_t inIteration, int64_t at) {
    std::lock_guard lock(mutex);
    if (std::tie(inStep, inIteration, at) < std::tie(step, iteration, position))
      step = inStep, iteration = inIteration, position = at;
  }
  void clear() { step = iteration = position = kNone; }
  int64_t step = kNone, iteration = kNone, position = kNone;

private:
  std::mutex mutex;
};

class PlanRunner;

struct RunContext {
  Program::Ptr program;
  Allocator allocator;
  gpu::Gpu *gpu = nullptr; // null on a CPU
  Allocator runMemory;     // intermediate results and scratch, where kernels run
  Allocator stateMemory;   // states, where kernels run
  Allocator exchange;      // results; on a GPU pinned host memory
  ParallelFor parallel;
  Pool *pool = nullptr; // null if `parallel` is the caller's, or serial
  Logger logger;
  ProfileHook profile;
  HostFunctions host;
  GrowingMemory scratch;
  std::vector<std::unique_ptr<PlanRunner>> runners; // one per plan

  Place place() const { return {parallel.threads, gpu ? gpu->weights() : nullptr, gpu ? gpu->codeIndex() : 0, gpu}; }
  /// Reports why a GPU does not use a library: to the logger, and, if BURIN_LOG has the topic "provider", on stderr.
  void reportNote() const;
};

} // namespace burin::rt
