// Lowering of kernels in MLIR to the code of a GPU.
#pragma once
#include "codegen/target/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include <memory>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace burin::codegen {

/// Translates kernels in the llvm dialect for a GPU and optimises them. On failure returns null and sets `error`;
/// kernels that call C library functions without a definition are refused by name.
std::unique_ptr<llvm::Module> optimizedGpuLLVM(mlir::ModuleOp, const Target &, llvm::LLVMContext &, std::string &error);

} // namespace burin::codegen
