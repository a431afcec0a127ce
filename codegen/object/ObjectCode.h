// From kernels in MLIR to a loadable image.
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

/// Translates and optimises for the target.
std::unique_ptr<llvm::Module> optimizedLLVM(mlir::ModuleOp, const Target &, llvm::LLVMContext &);

/// Assembly text of an optimised module.
std::string assembly(llvm::Module &, const Target &);

struct Image {
  std::vector<char> bytes;       // a position-independent ELF image
  std::vector<uint64_t> entries; // address of each symbol asked for
};

/// The LLVM IR of one kernel in a context of its own, which one thread at a time may use.
class KernelCode {
public:
  KernelCode();
  ~KernelCode();
  KernelCode(KernelCode &&);
  /// Takes over a module of the llvm dialect. Reports an error at it.
  mlir::LogicalResult translate(mlir::ModuleOp, const Target &);

private:
  friend std::optional<Image> compileImage(llvm::MutableArrayRef<KernelCode>, const Target &,
                                           llvm::ArrayRef<std::string>, std::string &);
  struct Code;
  std::unique_ptr<Code> code;
};

/// Compiles kernels, as many at once as there are cores, and links them. On failure returns nullopt and says why.
std::optional<Image> compileImage(llvm::MutableArrayRef<KernelCode>, const Target &,
                                  llvm::ArrayRef<std::string> symbols, std::string &error);

/// Links the functions of an optimised module.
std::optional<Image> compileImage(llvm::Module &, const Target &, llvm::ArrayRef<std::string> symbols,
                                  std::string &error);

} // namespace burin::codegen
