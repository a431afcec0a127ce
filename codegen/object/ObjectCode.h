// Lowering of kernels in MLIR to a loadable image.
#pragma once
#include "codegen/target/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace burin::codegen {

/// Lowers a module of scf, arith, math, vector and llvm ops to the llvm dialect.
mlir::LogicalResult lowerToLLVMDialect(mlir::ModuleOp);

/// Translates to LLVM IR and optimises for the target.
std::unique_ptr<llvm::Module> optimizedLLVM(mlir::ModuleOp, const Target &, llvm::LLVMContext &);

/// Assembly text of an optimised module.
std::string assembly(llvm::Module &, const Target &);

struct Image {
  std::vector<char> bytes;       // a position-independent ELF image
  std::vector<uint64_t> entries; // address of each requested symbol
};

/// The LLVM IR of one kernel with its own context; one thread at a time may use it.
class KernelCode {
public:
  KernelCode();
  ~KernelCode();
  KernelCode(KernelCode &&);
  /// Translates a module of the llvm dialect, which is consumed. Reports errors at the module.
  mlir::LogicalResult translate(mlir::ModuleOp, const Target &);

private:
  friend std::optional<Image> compileImage(llvm::MutableArrayRef<KernelCode>, const Target &,
                                           llvm::ArrayRef<std::string>, std::string &);
  struct Code;
  std::unique_ptr<Code> code;
};

/// Compiles kernels in parallel and links them. On failure returns nullopt and sets `error`.
std::optional<Image> compileImage(llvm::MutableArrayRef<KernelCode>, const Target &,
                                  llvm::ArrayRef<std::string> symbols, std::string &error);

/// Compiles and links the functions of an optimised module.
std::optional<Image> compileImage(llvm::Module &, const Target &, llvm::ArrayRef<std::string> symbols,
                                  std::string &error);

} // namespace burin::codegen
