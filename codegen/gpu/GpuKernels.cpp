#include "codegen/gpu/GpuKernels.h"

namespace burin::codegen {

constexpr int64_t kThreads = 32, kMostBlocks = 1024; // bounds scratch memory; threads loop over further tasks
constexpr int64_t kScratchAlign = 64;

GpuLaunch taskPerThread(const LaunchShape &shape) {
  return {.blocks = min(ceildiv(shape.tasks, kThreads), kMostBlocks),
          .threads = kThreads,
          .tasksOfThreads = shape.tasks,
          .scratchOfThread = ceildiv(shape.scratchBytes, kScratchAlign) * Dim(kScratchAlign)};
}

} // namespace burin::codegen
