// Ops that kernels compute again instead of reading their results from memory.
#pragma once
#include "passes/kernels/fusion/FusionKind.h"
#include "llvm/ADT/DenseMap.h"

namespace burin::passes {

/// The ops of each kernel-to-be. `groupOf` has the ops that kernels compute, `kindOf` tells their roles; `add` and
/// `remove` change both the groups and `groupOf`.
struct OpGroups {
  const llvm::DenseMap<mlir::Operation *, size_t> &groupOf;
  llvm::function_ref<Kind(mlir::Operation *)> kindOf;
  llvm::function_ref<void(mlir::Operation *, size_t group)> add;
  llvm::function_ref<void(mlir::Operation *)> remove;
};

/// Copies light ops, those of one instruction per element (OpFacts::oneInstruction), to the groups that use their
/// results, where that saves a value in memory: c - mean of a batch norm, which its gradient needs again, is computed
/// twice from c, which is stored anyway. Results keep their bits.
void repeatOps(mlir::Block &block, OpGroups groups);

} // namespace burin::passes
