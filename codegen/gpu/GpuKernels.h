// Kernels for GPUs. Their families are in passes/kernels/KernelFamilies.def:
//
// - gpu-map: no reductions. Neighbouring threads compute neighbouring elements, 16 bytes each where that is possible.
// - gpu-rows: reductions. A warp or a block per row if the innermost dimension is reduced, else a thread per column. A
//   level of dependent reductions is one walk over the row each; a last one writes results of full size. The order of
//   additions depends on the shape alone.
// - gpu-contraction: a block computes a tile of the result from slices of both sides in shared memory, each thread a
//   part of it in registers. Products are added in the order of k, as on the CPU.
// - tensor-core-contraction: the same for 16-bit floats by mma.sync. Products are added in f32, in an order that PTX
//   leaves open within 16 steps; where windows reach into the padding, zeros are multiplied.
// - thin-contraction: few rows on the left. Products are added in a fixed order that is not that of k.
// - gpu-attention, tensor-core-attention: scores of a tile of rows and keys stay in shared memory and registers.
// - gpu-running, gpu-scatter: a block per line; scatter applies updates in their order.
#pragma once
#include "codegen/emit/KernelEmitters.h"

namespace burin::codegen {

/// A kernel of the CPU's emitters, each of its tasks in one thread. Correct for every op, and slow: neighbouring
/// threads touch distant memory.
GpuLaunch taskPerThread(const LaunchShape &);

} // namespace burin::codegen
