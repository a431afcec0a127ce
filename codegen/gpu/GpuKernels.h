// Kernels for GPUs. Their families are in passes/kernels/families/KernelFamilies.def. A slice has all elements of
// a tensor along the dimension that an op reduces, sorts or scans, at one position of the others:
//
// - gpu-map: no reductions. Adjacent threads compute adjacent elements, in vectors of 16 bytes where possible.
// - gpu-transpose, gpu-transposed-reads: a block moves a tile through shared memory, so that both sides are accessed in
//   order.
// - gpu-window: max_pool and depthwise convolution. A thread computes adjacent positions.
// - gpu-rows: reductions. A warp or a block per slice if the innermost dimension is reduced, else a grid of threads for
//   adjacent columns. Each level of dependent reductions is one pass over the slice; a last pass writes results of full
//   size. Long slices are cut into parts, whose blocks are launched in a group per pass. The order of additions depends
//   on the shape alone.
// - gpu-contraction: a block computes a tile of the result from slices of both operands in shared memory, each thread a
//   part of it in registers. Products are added in the order of k, as on the CPU.
// - tensor-core-contraction: the same for 16-bit floats by mma.sync. Products are added in f32, in an order that PTX
//   leaves open within 16 steps; elements of padding are multiplied as zeros.
// - byte-contraction: the same for 8-bit integers and floats.
// - rounded-contraction: the same for f32, rounded to tf32 or split into terms of bf16, with targets that say so.
// - warpgroup-contraction: large products of 16-bit floats and of bytes by wgmma, on compute capability 9.0.
// - thin-contraction: few rows on the left. Products are added in a fixed order, which is not that of k.
// - split-attention: few query rows. A block computes them for a part of the keys; a second group of blocks joins the
//   parts.
// - gpu-attention, tensor-core-attention, warpgroup-attention: scores of a tile of rows and keys stay in shared memory
//   and registers.
// - gpu-attention-gradient, tensor-core-attention-gradient: a group of blocks for queries, and one for keys and values.
// - gpu-running, gpu-sort: a block per slice.
// - gpu-suppression: non-maximum suppression, a block per class.
// - gpu-scatter: a thread per part of a slice; it applies updates in order.
#pragma once
#include "codegen/emit/KernelEmitters.h"

namespace burin::codegen {

/// Launches a kernel of a CPU emitter, one task per thread. Correct for every op but slow, because adjacent threads
/// access distant memory.
GpuLaunch taskPerThread(const LaunchShape &);

/// Rows and columns per block of emitFmaContraction(), a form of gpu-contraction for f32 with many results.
inline constexpr int64_t kFmaTile = 128;
GpuLaunch emitFmaContraction(const KernelEmission &);

} // namespace burin::codegen
