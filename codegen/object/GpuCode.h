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

/// Works around a bug of ptxas (CUDA 13.0, seen on an H200): it computes p - x, where p is a result of mul.hi.u32
/// widened to 64 bits, as one multiply-add with -x. The carry is missing if the lower half of x is 0, so the upper half
/// of the difference is 2^32 - 1. Returns PTX with -(x - p) instead, which ptxas does not combine.
std::string keepCarries(llvm::StringRef ptx);

/// The PTX, declared as version 8.4 (CUDA 12.4) if it multiplies i8 by u8 with wgmma, which no earlier version knows.
/// Otherwise unchanged, version 8.0 as the targets ask for (Target.cpp).
std::string withNeededVersion(std::string ptx);

} // namespace burin::codegen
