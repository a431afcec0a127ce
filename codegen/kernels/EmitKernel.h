// One fusion group to one kernel function.
#pragma once
#include "codegen/target/Target.h"
#include "ir/dialect/Burin.h"

namespace burin::codegen {

/// What the launch plan needs to know of an emitted kernel.
struct KernelInterface {
  std::vector<Dim> sizes; // values handed in, in order
  Dim tasks = 1;          // of a GPU: blocks
  Dim scratchBytes = 0;
};

/// Emits `name` for a kernel op into `module` (llvm, scf, arith, math and vector ops). `interface` is what other
/// targets need of the same kernel, and is extended: one plan serves them all.
mlir::LogicalResult emitKernel(mlir::ModuleOp module, ir::KernelOp kernel, llvm::StringRef name, const Target &target,
                               KernelInterface &interface);

} // namespace burin::codegen
