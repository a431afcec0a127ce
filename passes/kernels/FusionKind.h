// What fusion asks of an op.
#pragma once
#include "passes/analysis/OpFacts.h"

namespace burin::passes {

using Kind = FusionKind;

/// The part of an op in kernels, where it stands: transposes that kernels step through are views.
Kind intrinsicKind(mlir::Operation *op);
/// A transpose that only attention and left sides of products read: their kernels step through memory as it lies.
bool isStridedView(mlir::Operation *op);
/// "contract+add+relu": the first ops.
std::string kernelName(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace burin::passes
