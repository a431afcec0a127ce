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

/// PTX in which no 64-bit difference starts from a result of mul.hi.u32. ptxas (CUDA 13.0, seen on an H200) computes
/// such a difference as one multiply-add with the negated subtrahend, whose carry is missing if the lower half of the
/// subtrahend is 0: the upper half of the difference is then 2^32 - 1. The negated difference has no such form.
std::string keepCarries(llvm::StringRef ptx);

/// PTX of version 8.4 if it has a wgmma of i8 and u8, which no earlier version knows (CUDA 12.4); else as it is.
std::string withNeededVersion(std::string ptx);

} // namespace burin::codegen
