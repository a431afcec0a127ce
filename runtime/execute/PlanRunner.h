// Runs the launch plan of one function for one session. The first run with given shapes binds sizes and allocates;
// later runs with the same shapes neither allocate nor lock.
#pragma once
#include "runtime/execute/RunContext.h"
#include "runtime/execute/ShapeBinding.h"
#include "runtime/format/ErrorList.h"
#include "runtime/gpu/ErrorSlots.h"
#include <span>
#include <vector>

namespace burin::rt {

/// The status of a run in which a step found an invalid value.
Status dataErrorOf(const Artifact &artifact, const Plan &plan, int64_t step, int64_t position);

/// The way a run on a GPU ends.
struct GpuRun {
  bool mayLeave = false;               // may return without waiting if no output is in host memory
  bool isAtomic = false;               // updates states in place, see canUpdateInPlace
  std::unique_ptr<gpu::Report> report; // errors of kernels, if the run returned early; null: none are possible
};

class PlanRunner {
public:
  PlanRunner(RunContext &context, uint32_t plan);

  /// Prepares for these input shapes (data may be null) and makes them current for outputShape.
  Status bind(std::span<const TensorView> inputs);
  /// Whether a bind or run has succeeded; required by the next three functions.
  bool isBound() const { return reached > 0; }
  /// After a bind, or a failed run, sizes that are computed at run time are -1.
  std::span<const int64_t> outputShape(uint32_t i) const { return current(reached - 1).outputShape(i); }
  uint64_t outputBytes(uint32_t i) const { return current(reached - 1).outputBytes(i); }
  /// Bytes of the arena for the current shapes.
  uint64_t arenaBytes() const;

  /// Runs. An output with data must have the right dtype and shape. For one without data all fields are set, with
  /// memory that is valid until the next run.
  Status run(std::span<const TensorView> inputs, std::span<TensorView> outputs, GpuRun *gpuRun = nullptr,
             const UpdateHook &updates = {});
  /// On a GPU: whether a run with these inputs is a single recorded graph, which completes as a whole or not at all.
  bool canUpdateInPlace(std::span<const TensorView> inputs);
  /// The steps that may report invalid values, by slot.
  std::span<const gpu::ReportingStep> reportingSteps() const { return onGpu.slots; }
  /// Clears outputs that point to memory of the runner, after a failed run.
  void forget(std::span<TensorView> outputs) const;

  // ---- private functions
  /// Prepares a run with these values of the symbols.
  Status enter(std::span<const int64_t> symbols);
  void setInput(uint32_t i, void *data) { current(0).setInput(i, data); }
  void setOutput(uint32_t i, void *data) { current(0).setOutput(i, data); }
  /// Runs with the inputs and outputs set before.
  Status execute();

private:
  static constexpr size_t kMaxBindings = 8;

  RunContext &context;
  const uint32_t index; // of the plan
  const Plan &plan;
  const Stages &pieces;
  const uint32_t firstUpdate; // the first step that overwrites a state, or the number of steps
  std::vector<GrowingMemory> outputMemory;
  struct Stage {
    GrowingMemory arena;
    std::vector<std::unique_ptr<ShapeBinding>> bindings; // most recent first
  };
  std::vector<Stage> stages;
  size_t reached = 0;         // stages bound by the latest bind or run
  std::vector<int64_t> sizes; // symbols of the next stage
  DataError error;
  Status failure; // of a function that a step runs
  /// Of a run with a hook, until it is called.
  struct PendingUpdates {
    UpdateHook hook;
    std::span<const TensorView> inputs, outputs;
  } updates;

  ShapeBinding &current(size_t stage) const { return *stages[stage].bindings.front(); }
  Status runStages(std::span<const TensorView> inputs, std::span<TensorView> outputs);
  Status prepare(std::span<const TensorView> inputs, std::span<TensorView> outputs);
  Status prepareStage(size_t stage, std::span<const TensorView> inputs, std::span<TensorView> outputs);
  /// Copies a value to the host; `fromGpu`: it is in GPU memory if the plan runs there.
  Status copyToHost(void *to, const void *from, size_t bytes, bool fromGpu);
  Status runStage(size_t stage, std::span<const TensorView> inputs, std::span<TensorView> outputs);
  Status bindNext(std::span<const TensorView> inputs, std::span<const TensorView> outputs);
  Status readSizes(const ShapeBinding &before, std::span<const TensorView> inputs, std::span<const TensorView> outputs);
  std::string noArena(const ShapeBinding &binding) const;
  void keep(size_t stage, std::unique_ptr<ShapeBinding> binding);
  Status prepareMemory(size_t stage);
  Status setOperands(size_t stage, std::span<const TensorView> inputs, std::span<TensorView> outputs);
  Status checkInputs(std::span<const TensorView> inputs, std::span<const TensorView> outputs);
  /// Whether an output points to memory of the runner.
  bool isOurs(uint32_t output, const TensorView &view) const {
    return view.data && (view.data == outputMemory[output].data() ||
                         (context.gpu && !plan.isPrivate && view.data == onGpu.outputs[output].data()));
  }
  void checkOutput(uint32_t output, const ShapeBinding &binding, const TensorView &given, ErrorList &problems) const;
  Status executeStage(ShapeBinding &binding);
  /// The error of a stage, or success.
  Status outcome();
  /// Whether the step must still run after an error.
  bool mustRun(uint32_t step) const { return error.precedes(step) && failure.ok(); }
  /// Whether the next iteration of a loop must run. All independent iterations run, so that the first error does not
  /// depend on the number of threads.
  bool goesOn(const ShapeBinding &binding, const BoundLoop &loop) const {
    return !loop.sequential || mustRun(binding.steps()[loop.end - 1].index);
  }
  void runKernel(const ShapeBinding &binding, const BoundStep &step, void *const *operands, int64_t iteration);
  void runStep(const ShapeBinding &binding, const BoundStep &step, void *const *operands, int64_t iteration) {
    if (step.isKernel)
      return runKernel(binding, step, operands, iteration);
    collectErrors(iteration);
    if (mustRun(step.index))
      runFunctions(step, binding, operands);
  }
  void runFunctions(const BoundStep &step, const ShapeBinding &binding, void *const *operands);
  Status askHost(const Step &step, const ShapeBinding &binding, void *const *operands);
  /// The runner of plans[which] of a step.
  PlanRunner &callee(const Step &step, size_t which);
  Status call(const Step &step, size_t which, std::span<const int64_t> symbols, void *const *operands);
  Status runWhile(const Step &step, std::span<const int64_t> symbols, void *const *operands);
  /// In a CUDA graph: the same as conditional nodes.
  bool isInGraph(const Step &step) const;
  Status branchInGraph(const Step &step, std::span<const int64_t> symbols, void *const *operands);
  Status whileInGraph(const Step &step, std::span<const int64_t> symbols, void *const *operands);
  void runSideBySide(const ShapeBinding &binding, std::span<const BoundStep> steps);
  void runLoop(ShapeBinding &binding, const BoundLoop &loop);
  template <class F> void runIteration(ShapeBinding &binding, const BoundLoop &loop, int64_t iteration, F run);
  /// Whether these steps may run: calls the hook if one of them overwrites a state.
  bool mayUpdate(ShapeBinding &binding, std::span<const BoundStep> steps) {
    return !updates.hook.begin || steps.back().index < firstUpdate || beginUpdates(binding);
  }
  bool beginUpdates(ShapeBinding &binding);
  static uint32_t firstUpdateOf(const Artifact &a, const Plan &plan);
  bool hasFailed() const { return error.any() || !failure.ok(); }
  /// After a failure: runs those of a group of steps that come before it in the plan, as they may fail, too. Steps that
  /// overwrite a state come after all that can fail.
  void runPreceding(const ShapeBinding &binding, std::span<const BoundStep> steps);
  void runSteps(ShapeBinding &binding);
  void runProfiled(ShapeBinding &binding);
  Status dataError() const;

  // ---- on a GPU (PlanOnGpu.cpp)
  /// State of a public function: memory for inputs and outputs in host memory, and pinned memory to copy them through.
  /// Outputs are copied to outputMemory.
  struct OnGpu {
    std::vector<GrowingMemory> inputs, outputs, stagedInputs;
    std::vector<void *> inputAt, outputAt; // of the current run: addresses that kernels use
    std::vector<void *> memory;            // addresses that a recording depends on
    std::vector<gpu::ReportingStep> slots; // for errors of this plan and of the functions that it calls
    std::vector<uint32_t> slotOf;          // per step: its slot, or the first one of its functions; or Gpu::kNoErrors
    uint32_t firstSlot = 0;                // of this call, among those of the public function
    unsigned usedLanes = 0;                // bits: lanes with concurrent steps that are not joined yet
    bool isRecordable = false;             // no step needs the host, see canBeGraph
    bool leaves = false, isAtomic = false; // of this run: see GpuRun
    // Of this run: inputs and outputs are copied to and from memory of the session, because the caller's memory differs
    // in each run and a recording needs fixed addresses.
    bool isOwn = false;
    std::vector<TensorView> given; // inputs of the current run
  } onGpu;
  bool isOnGpu(const TensorView &view) const { return view.device.isGpu; }
  void prepareForGpu();
  bool canRecord(ShapeBinding &binding);
  /// Launches of a run, at most; prepares the functions that it calls, with their memory. Negative if that fails.
  int64_t prepareLaunches(ShapeBinding &binding);
  Status runOnGpu(std::span<const TensorView> inputs, std::span<TensorView> outputs, GpuRun &mode);
  Status startOnGpu(std::span<const TensorView> inputs, std::span<TensorView> outputs, const GpuRun &mode);
  Status endOnGpu(Status run, std::span<TensorView> outputs, GpuRun &mode);
  Status runRecorded(std::span<const TensorView> inputs, std::span<TensorView> outputs);
  ShapeBinding::Recorded &recorded(ShapeBinding &binding, std::span<const TensorView> outputs);
  Status setOperandsOnGpu(size_t stage, std::span<const TensorView> inputs, std::span<TensorView> outputs);
  Status stageInputs(std::span<const TensorView> inputs);
  void checkDevices(std::span<const TensorView> views, std::span<const TensorInfo> infos, const char *what,
                    ErrorList &problems) const;
  void sendInputs();
  void copyIn();
  void copyOut(std::span<const TensorView> outputs);
  void fetchResults(std::span<const TensorView> outputs);
  void launch(const ShapeBinding &binding, const BoundStep &step, void *const *operands, int lane);
  void launchSideBySide(const ShapeBinding &binding, std::span<const BoundStep> steps);
  /// Waits for errors that kernels of this plan may have reported in this iteration of a loop.
  void collectErrors(int64_t iteration);
  void takeErrors(int64_t iteration);
};

} // namespace burin::rt
