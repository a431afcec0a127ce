// A stage of a launch plan, bound to sizes: all its symbolic sizes evaluated, its buffers placed, its steps ready to
// run. A plan has a stage more for each point at which a size that its own steps compute must be known (see Stages.h);
// most have one stage.
#pragma once
#include "runtime/code/Loader.h"
#include "runtime/execute/LaneOrder.h"
#include "runtime/format/ArenaPlacement.h"
#include "runtime/gpu/Gpu.h"
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace burin::rt {

/// The device of a tensor, as burin_device in the C API.
struct DeviceTag {
  uint8_t isGpu = 0, index = 0, reserved = 0;
  friend bool operator==(const DeviceTag &, const DeviceTag &) = default;
};

/// A dense row-major tensor of the caller.
struct TensorView {
  void *data = nullptr;
  const int64_t *shape = nullptr;
  uint32_t rank = 0;
  DType dtype = DType::f32;
  DeviceTag device = {};
};

/// "f32[2, 3]"
std::string tensorText(DType dtype, std::span<const int64_t> shape);

/// Where a plan runs: on threads of the CPU, or on a GPU.
struct Place {
  int workers = 1;                 // threads that may run iterations of a loop at the same time
  std::byte *gpuWeights = nullptr; // address of the weights on the GPU; null: the CPU
  uint32_t gpuCode = 0;            // on a GPU: index of the code in use, among the artifact's codes for GPUs
  const gpu::Gpu *gpu = nullptr;   // null: the CPU, or the plan is bound for its sizes alone
  /// Number of steps that may run concurrently, each with its own scratch memory.
  int lanes() const { return gpuWeights ? gpu::Gpu::kLanes : workers; }
  bool isGpu() const { return gpuWeights; }
};

/// A bound step: `kernel(operands, sizes, scratch, lo, hi)` for the tasks [0, tasks), which threads take in chunks of
/// `grain`. With grain == tasks the calling thread runs all of them. On a GPU a task is a block. A step that runs
/// functions (branches, loops with conditions) has no kernel; its sizes are the symbols of these functions.
struct BoundStep {
  KernelFunction kernel; // null on a GPU
  bool isKernel;
  void *const *operands;
  const int64_t *sizes;
  int64_t tasks, grain;
  uint32_t index;             // in Plan::steps
  uint32_t together = 1;      // size of the concurrent group that starts here, one thread per step; 1 for other steps
  LaneOrder::Place lane = {}; // on a GPU, for steps of a concurrent group
};

/// A bound loop: the steps [first, end) run `iterations` times. Threads take `grain` iterations at a time; with grain
/// == iterations one thread runs all of them.
struct BoundLoop {
  uint32_t first = 0, end = 0;
  int64_t iterations = 0, grain = 0;
  bool sequential = false;         // an iteration uses results of the previous one, so grain == iterations
  uint32_t entry = 0, entries = 0; // range of the operands of its steps
  struct Part {
    uint32_t entry, base; // indices of operands
    int64_t begin, stride;
    bool alternates; // the address is that of `base` or of the operand after it, see rt::Part
  };
  std::vector<Part> parts; // slices of tensors: entry's address is base's plus begin + iteration * stride bytes
  /// Operands in buffers of which each worker has a copy, and the distance between the copies in bytes.
  std::vector<std::pair<uint32_t, uint64_t>> copies;
};

/// A bound stage. Its steps point into its operand table; addresses that change from run to run (inputs, outputs, the
/// arena) are written to the entries that use them before a run.
class ShapeBinding {
public:
  /// Binds the first stage of a function that the caller may run: takes the values of symbols from the shapes of the
  /// inputs, checks every dimension, evaluates the sizes that are known, places buffers. Reads only dtype, rank and
  /// shape of the inputs. The error lists all problems.
  static Status create(const Program &program, uint32_t plan, std::span<const TensorView> inputs, const Place &place,
                       std::unique_ptr<ShapeBinding> &out);
  /// Binds a function that other functions call (a branch, a loop body) for these values of its symbols.
  static Status create(const Program &program, uint32_t plan, std::span<const int64_t> symbols, const Place &place,
                       std::unique_ptr<ShapeBinding> &out);
  /// Binds the stage after `before`. `symbols` are the values known so far; those that the steps of `before` computed
  /// come last.
  static Status create(const Program &program, const ShapeBinding &before, std::span<const int64_t> symbols,
                       std::unique_ptr<ShapeBinding> &out);

  /// Whether `inputs` have the dtypes and shapes of this binding. Does not allocate.
  bool matches(const Program &program, std::span<const TensorView> inputs) const;
  /// Whether the binding is for these sizes.
  bool matches(std::span<const int64_t> symbols) const { return std::ranges::equal(symbols, known); }

  /// Sets the address of the arena that holds the buffers of this stage. Cheap if it is the same as before.
  void setArena(std::byte *base);
  /// Buffers of earlier stages that this stage uses: setBuffer() must be called for each.
  std::span<const uint32_t> earlierBuffers() const { return earlier; }
  void setBuffer(uint32_t buffer, void *data) { patch(bufferPatches[buffer], data); }
  /// Address of a buffer of this stage.
  std::byte *buffer(uint32_t i) const { return arena + bufferOffsets[i]; }
  void setInput(uint32_t input, void *data) { patch(inputPatches[input], data); }
  void setOutput(uint32_t output, void *data) { patch(outputPatches[output], data); }

  std::span<const BoundStep> steps() const { return bound; }
  std::span<const BoundLoop> loops() const { return boundLoops; } // in the order of their steps
  /// Prepares the operands of a loop's iterations; called before the first one, when all addresses are set.
  void enter(const BoundLoop &loop);
  /// The operands of the loop's steps for one iteration on one worker, to be used instead of the table's entries from
  /// loop.entry on. Valid until the worker's next call.
  void *const *operandsOfIteration(const BoundLoop &loop, int64_t iteration, int worker);
  /// Position of a step's operands among those of the loop.
  size_t offsetInLoop(const BoundLoop &loop, const BoundStep &step) const {
    return size_t(step.operands - operands.data()) - loop.entry;
  }
  /// Number of steps that use several threads; a loop, or a concurrent group, counts as one.
  uint32_t parallelSteps() const { return parallelCount; }
  uint64_t arenaBytes() const { return arenaSize; }
  uint64_t scratchBytes() const { return scratchSize; } // per worker, a multiple of 128
  std::span<const int64_t> inputShape(uint32_t i) const { return shapes[i]; }
  /// A size that is not known yet is -1.
  std::span<const int64_t> outputShape(uint32_t i) const { return shapes[inputPatches.size() + i]; }
  uint64_t inputBytes(uint32_t i) const { return bytes[i]; }
  uint64_t outputBytes(uint32_t i) const { return bytes[inputPatches.size() + i]; }
  int64_t value(ExprId id) const { return values[id]; }

  /// On a GPU: a recording (a CUDA graph) of a run with inputs and outputs at these addresses, including copies of
  /// them; null as long as too few runs have had these addresses.
  struct Recorded {
    std::vector<void *> memory;
    int64_t runs = 0;
    std::unique_ptr<gpu::Recording> recording;
  };
  std::vector<Recorded> recorded; // most recently used first
  int64_t evictions = 0;          // number of evictions from `recorded`
  int64_t launches = -1;          // on a GPU, of a run; negative: not counted yet

  /// Values of the symbols known in this stage, in the order of Plan::symbols.
  std::span<const int64_t> symbols() const { return known; }

private:
  friend class Binder;
  uint32_t plan = 0, stage = 0;
  std::vector<int64_t> known;               // values of the first symbols
  std::vector<std::vector<int64_t>> shapes; // inputs, then outputs
  std::vector<uint64_t> bytes;              // inputs, then outputs
  std::vector<int64_t> values;              // of Plan::exprs, as far as known
  std::vector<uint64_t> bufferOffsets;      // of buffers of this stage
  std::vector<uint32_t> earlier;
  std::vector<void *> operands; // of all steps; the patches below list the entries of each tensor
  std::vector<std::vector<uint32_t>> inputPatches, outputPatches, bufferPatches;
  std::vector<int64_t> sizes; // of all steps
  std::vector<BoundStep> bound;
  std::vector<BoundLoop> boundLoops;
  std::vector<void *> loopOperands; // of the current loop, per worker
  Place place;
  uint64_t arenaSize = 0, scratchSize = 0;
  uint32_t parallelCount = 0;
  std::byte *arena = nullptr;

  void patch(const std::vector<uint32_t> &entries, void *data) {
    for (uint32_t entry : entries)
      operands[entry] = data;
  }
};

} // namespace burin::rt
