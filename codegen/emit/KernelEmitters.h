// Interface of the emitters of kernel families, one per row of passes/kernels/families/KernelFamilies.def.
#pragma once
#include "codegen/emit/element/PointEmitter.h"
#include "passes/TargetIndependent.h"

namespace burin::codegen {

/// A kernel to emit.
struct KernelEmission {
  ElementEmitter &e;
  mlir::Block &body;
  const passes::IterationSpace *space; // null in sequential kernels
  ArrayRef<Value> results;             // memory of each yielded value
};

/// The split of a kernel among CPU threads.
struct LaunchShape {
  Dim tasks;
  Dim scratchBytes;          // per worker
  std::string schedule = {}; // choices of the emitter, as text; may be empty
};

using LaunchOnAny = LaunchShape;
using LaunchOnCpu = LaunchShape;
using LaunchOnGpu = GpuLaunch;
using LaunchOnHopper = GpuLaunch;
using LaunchOnRoundingGpu = GpuLaunch;
#define KERNEL_FAMILY(id, name, device, accepts, emit) LaunchOn##device emit(const KernelEmission &);
#include "passes/kernels/families/KernelFamilies.def"

} // namespace burin::codegen
