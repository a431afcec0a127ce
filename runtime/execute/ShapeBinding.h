// A stage of a plan with all its sizes known: what one set of input shapes, and of the sizes computed so far, makes of
// an artifact. Most artifacts have a single stage.
#pragma once
#include "runtime/code/Loader.h"
#include "runtime/format/ArenaPlacement.h"
#include "runtime/gpu/Gpu.h"
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace burin::rt {

/// Where a tensor is: as burin_device of the C interface.
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

/// The index of the loop within whose turns a buffer lives, or kNoLoop.
uint32_t loopOf(const Plan &plan, const ArenaBuffer &buffer);
/// The steps of all loops.
std::vector<LiveRange> loopRanges(const Plan &plan);

/// "f32[2, 3]"
std::string tensorText(DType dtype, std::span<const int64_t> shape);

/// Where plans run.
struct Place {
  int workers = 1;                 // threads that are in a loop at once
  std::byte *gpuWeights = nullptr; // set: on a GPU that has the weights there
  /// How many steps, each on scratch memory of its own, can run side by side.
  int lanes() const { return gpuWeights ? gpu::Gpu::kLanes : workers; }
  bool isGpu() const { return gpuWeights; }
};

/// A step ready to run: `kernel(operands, sizes, scratch, lo, hi)` over [0, tasks) in chunks of `grain`;
/// grain == tasks means on the calling thread. On a GPU tasks are blocks. A step that runs functions has no kernel; its
/// sizes are their symbols.
struct BoundStep {
  KernelFunction kernel; // on a GPU null
  bool isKernel;
  void *const *operands;
  const int64_t *sizes;
  int64_t tasks, grain;
  uint32_t index;        // in Plan::steps
  uint32_t together = 1; // how many from this one on run side by side, each on one thread
};

/// A loop ready to run: steps [first, end), once per turn. Threads take `grain` turns at a time; grain == turns means
/// one turn after the other.
struct BoundLoop {
  uint32_t first = 0, end = 0;
  int64_t turns = 0, grain = 0;
  bool sequential = false;
  uint32_t entry = 0, entries = 0; // the operands of its steps
  struct Part {
    uint32_t entry, base;  // operand `entry` is operand `base` …
    int64_t begin, stride; // … plus begin + turn * stride bytes
  };
  std::vector<Part> parts;
  std::vector<std::pair<uint32_t, uint64_t>> copies; // operand, bytes from one worker's copy to the next
};

class ShapeBinding {
public:
  /// The first stage of a public function. Reads the symbols off the shapes, checks every dimension, computes all sizes
  /// that are known, places the buffers. Only dtype, rank and shape of the inputs are read. All problems are reported
  /// at once.
  static Status create(const Program &program, uint32_t plan, std::span<const TensorView> inputs, const Place &place,
                       std::unique_ptr<ShapeBinding> &out);
  /// A private function for these values of its symbols.
  static Status create(const Program &program, uint32_t plan, std::span<const int64_t> symbols, const Place &place,
                       std::unique_ptr<ShapeBinding> &out);
  /// The stage after `before`, where the sizes it computed have the values at the end of `symbols`.
  static Status create(const Program &program, const ShapeBinding &before, std::span<const int64_t> symbols,
                       std::unique_ptr<ShapeBinding> &out);

  /// Whether `inputs` have the dtypes and shapes this was made for. No allocation.
  bool matches(const Program &program, std::span<const TensorView> inputs) const;
  /// Whether it was made for these sizes.
  bool matches(std::span<const int64_t> symbols) const { return std::ranges::equal(symbols, known); }

  /// Points the operands of its own buffers into this arena, unless they are there already.
  void setArena(std::byte *base);
  /// Buffers of earlier stages that are used in this one.
  std::span<const uint32_t> earlierBuffers() const { return earlier; }
  void setBuffer(uint32_t buffer, void *data) { patch(bufferPatches[buffer], data); }
  /// Where a buffer of this stage is.
  std::byte *buffer(uint32_t i) const { return arena + bufferOffsets[i]; }
  void setInput(uint32_t input, void *data) { patch(inputPatches[input], data); }
  void setOutput(uint32_t output, void *data) { patch(outputPatches[output], data); }

  std::span<const BoundStep> steps() const { return bound; }
  std::span<const BoundLoop> loops() const { return boundLoops; } // in order of their steps
  /// Before the turns of a loop, once all operands are set.
  void enter(const BoundLoop &loop);
  /// The operands of the loop's steps for one turn by one worker, instead of those from loop.entry on.
  void *const *operandsOfTurn(const BoundLoop &loop, int64_t turn, int worker);
  /// Where the operands of a step of the loop are among them.
  size_t offsetInLoop(const BoundLoop &loop, const BoundStep &step) const {
    return size_t(step.operands - operands.data()) - loop.entry;
  }
  /// Those worth more than one thread; a loop counts as one, and so do steps side by side.
  uint32_t parallelSteps() const { return parallelCount; }
  uint64_t arenaBytes() const { return arenaSize; }
  uint64_t scratchBytes() const { return scratchSize; } // per worker, a multiple of 128
  std::span<const int64_t> inputShape(uint32_t i) const { return shapes[i]; }
  /// A size that is not known yet is -1.
  std::span<const int64_t> outputShape(uint32_t i) const { return shapes[inputPatches.size() + i]; }
  uint64_t inputBytes(uint32_t i) const { return bytes[i]; }
  uint64_t outputBytes(uint32_t i) const { return bytes[inputPatches.size() + i]; }
  int64_t value(ExprId id) const { return values[id]; }

  /// On a GPU: runs that used this memory of inputs and outputs, and all work of one from copying the inputs on; null
  /// if that is not recorded.
  struct Recorded {
    std::vector<void *> memory;
    int64_t runs = 0;
    std::unique_ptr<gpu::Recording> recording;
  };
  std::vector<Recorded> recorded; // used last first
  int64_t evictions = 0;          // how often there was no room for another one

  std::span<const int64_t> symbols() const { return known; }

private:
  friend class Binder;
  uint32_t plan = 0, stage = 0;
  std::vector<int64_t> known;               // values of the first symbols
  std::vector<std::vector<int64_t>> shapes; // inputs, then outputs
  std::vector<uint64_t> bytes;              // inputs, then outputs
  std::vector<int64_t> values;              // of Plan::exprs, as far as they are known
  std::vector<uint64_t> bufferOffsets;      // of this stage's buffers
  std::vector<uint32_t> earlier;
  std::vector<void *> operands; // of all steps; below: which entry holds what
  std::vector<std::vector<uint32_t>> inputPatches, outputPatches, bufferPatches;
  std::vector<int64_t> sizes; // of all steps
  std::vector<BoundStep> bound;
  std::vector<BoundLoop> boundLoops;
  std::vector<void *> loopOperands; // of the loop that runs, per worker
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
