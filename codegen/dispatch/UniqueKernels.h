// The distinct kernels of a module; structurally equal kernels are compiled once.
#pragma once
#include "codegen/dispatch/EmitKernel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <vector>

namespace burin::codegen {

struct UniqueKernels {
  struct Entry {
    ir::KernelOp op; // representative of the equal kernels
    std::string symbol;
    KernelInterface interface; // filled in by emitKernel
  };
  std::vector<Entry> kernels;
  llvm::DenseMap<mlir::Operation *, uint32_t> indexOf;

  explicit UniqueKernels(mlir::ModuleOp module);
};

} // namespace burin::codegen
