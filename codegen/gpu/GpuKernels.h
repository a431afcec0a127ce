// Kernels for GPUs: families of their own, and how the kernels of the CPU are launched where there is none yet.
#pragma once
#include "codegen/emit/PointEmitter.h"

namespace burin::codegen {

/// A kernel of the CPU's emitters, each of its tasks in one thread. Correct for every op, and slow: neighbouring
/// threads touch distant memory.
GpuLaunch taskPerThread(const LaunchShape &);

/// A kernel without reductions: neighbouring threads compute neighbouring elements, 16 bytes each where that is
/// possible.
GpuLaunch emitGpuMap(ElementEmitter &, mlir::Block &body, const passes::IterationSpace &, ArrayRef<Value> results);

/// A kernel around reductions. A warp or a block per row if the innermost dimension is reduced, else a thread per
/// column. Each level of dependent reductions is one walk over the row; a last one writes results of full size. The
/// order of additions depends on the shape alone.
GpuLaunch emitGpuRows(ElementEmitter &, mlir::Block &body, const passes::IterationSpace &, ArrayRef<Value> results);

/// A kernel around one `burin.contract`: a block computes a tile of the result from slices of both sides in shared
/// memory, each thread a part of it in registers. Products are added in the order of k, as on the CPU.
GpuLaunch emitGpuContraction(ElementEmitter &, mlir::Block &body, const passes::IterationSpace &,
                             ArrayRef<Value> results);

} // namespace burin::codegen
