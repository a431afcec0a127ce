// Properties of ops that fusion depends on.
#pragma once
#include "passes/analysis/OpFacts.h"

namespace burin::passes {

using Kind = FusionKind;

/// Properties of ops that depend on how kernels of the targets read memory.
struct FusionTargets {
  /// Whether a target is a GPU: its kernels read several neighbours along the last dimension at once, so views keep
  /// that dimension.
  bool onGpus = false;
  /// Whether all targets are GPUs, whose attention with few rows joins keys and values while it reads them.
  bool gpusAlone = false;

  /// The role of an op in kernels in its context: transposes and slices that kernels read with strides are views.
  Kind kindOf(mlir::Operation *op) const;
  /// Whether an op is a transpose, or a slice from the first element on, that only attention and left operands of
  /// products read, perhaps through other such views, or repeats matrices for attention: their kernels use its strides.
  /// For GPUs alone also whether it joins keys or values of attention with few rows.
  bool isStridedView(mlir::Operation *op) const;
  /// The op whose source location stands for a kernel of these ops.
  mlir::Operation *mainOp(llvm::ArrayRef<mlir::Operation *> ops) const;
};

/// Whether the op checks indices for another one, before states are set: its kernel must not wait for that of the
/// other.
bool isEarlyCheck(mlir::Operation *);
/// Whether the two groups must not be one kernel because one of them moves elements and the other reduces several
/// dimensions: if that must keep the order of its operand, which the kernel would change, or if a transpose is stored
/// anyway.
bool mustStayApart(llvm::ArrayRef<mlir::Operation *> producer, llvm::ArrayRef<mlir::Operation *> consumer);
/// Name of a kernel, from its first ops: "contract+add+relu".
std::string kernelName(llvm::ArrayRef<mlir::Operation *> ops);
/// A fill that replaces a constant with equal elements, which needs no memory; null for other constants.
mlir::Value fillFor(ir::ConstantOp, mlir::OpBuilder &);

} // namespace burin::passes
