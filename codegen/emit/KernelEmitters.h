// What every kernel family's emitter takes and returns. One emitter per row of passes/kernels/KernelFamilies.def.
#pragma once
#include "codegen/emit/PointEmitter.h"
#include "passes/TargetIndependent.h"

namespace burin::codegen {

/// A kernel whose code is being made.
struct KernelEmission {
  ElementEmitter &e;
  mlir::Block &body;
  const passes::IterationSpace *space; // null where the ops share none: in sequential kernels
  ArrayRef<Value> results;             // where each yielded value goes
};

/// How threads of a CPU share a kernel.
struct LaunchShape {
  Dim tasks;
  Dim scratchBytes;          // per worker
  std::string schedule = {}; // what the emitter decided, as text for people; empty where it does not say
};

using LaunchOnAny = LaunchShape;
using LaunchOnCpu = LaunchShape;
using LaunchOnGpu = GpuLaunch;
#define KERNEL_FAMILY(id, name, device, accepts, emit) LaunchOn##device emit(const KernelEmission &);
#include "passes/kernels/KernelFamilies.def"

} // namespace burin::codegen
