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

/// Whether a contraction is one for tensor cores: of 16-bit floats, without columns apart from the panels.
bool usesTensorCores(ir::ContractOp);
/// The kernel around such a contraction. Products are added in f32, in an order that PTX leaves open within 16 steps;
/// where windows reach into the padding, zeros are multiplied.
GpuLaunch emitTensorCoreContraction(ElementEmitter &, ir::ContractOp, mlir::Block &body, const passes::IterationSpace &,
                                    ArrayRef<Value> results);

/// A kernel around one `burin.contract`: a block computes a tile of the result from slices of both sides in shared
/// memory, each thread a part of it in registers. Products are added in the order of k, as on the CPU.
GpuLaunch emitGpuContraction(ElementEmitter &, mlir::Block &body, const passes::IterationSpace &,
                             ArrayRef<Value> results);

/// Whether a contraction has so few rows that reading the right side is all that counts.
bool isThin(ir::ContractOp);
/// The kernel around such a contraction. Products are added in a fixed order that is not that of k.
GpuLaunch emitThinContraction(ElementEmitter &, ir::ContractOp, mlir::Block &body, const passes::IterationSpace &,
                              ArrayRef<Value> results);

/// A kernel that is one cumsum or cumprod along the innermost dimension, in a fixed order that is not that of the
/// elements; nothing, and no code, for others and for short lines.
std::optional<GpuLaunch> emitGpuRunning(ElementEmitter &, mlir::Operation *root, Value result);
/// A kernel that is one argsort.
GpuLaunch emitGpuSort(ElementEmitter &, ir::ArgsortOp, Value result);
/// A kernel that is one scatter, updates in their order.
GpuLaunch emitGpuScatter(ElementEmitter &, ir::ScatterOp, Value result);

/// Whether an attention is one for tensor cores: of 16-bit floats, of known depth and width, up to 384 together.
bool usesTensorCores(ir::ScaledDotProductAttentionOp);
GpuLaunch emitTensorCoreAttention(ElementEmitter &, ir::ScaledDotProductAttentionOp, mlir::Block &body,
                                  const passes::IterationSpace &, ArrayRef<Value> results);

/// A kernel around one attention, of any element type, with up to 256 columns of values; nothing, and no code, where
/// more are possible.
std::optional<GpuLaunch> emitGpuAttention(ElementEmitter &, mlir::Block &body, const passes::IterationSpace &,
                                          ArrayRef<Value> results);

} // namespace burin::codegen
