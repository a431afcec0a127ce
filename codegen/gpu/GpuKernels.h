// Kernels for GPUs: families of their own, and how the kernels of the CPU are launched where there is none yet.
#pragma once
#include "codegen/emit/PointEmitter.h"

namespace burin::codegen {

/// A kernel of the CPU's emitters, each of its tasks in one thread. Correct for every op, and slow: neighbouring
/// threads touch distant memory.
GpuLaunch taskPerThread(const LaunchShape &);

} // namespace burin::codegen
