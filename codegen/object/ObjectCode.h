// From kernels in MLIR to a loadable image.
#pragma once
#include "codegen/target/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
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
/// Compiles the functions of a module in the llvm dialect, each on its own and as many at once as there are cores, and
/// links them. Takes them out of the module. On failure returns nullopt and says why.
std::optional<Image> compileImage(mlir::ModuleOp, const Target &, llvm::ArrayRef<std::string> symbols,
                                  std::string &error);

/// Links the functions of an optimised module.
std::optional<Image> compileImage(llvm::Module &, const Target &, llvm::ArrayRef<std::string> symbols,
                                  std::string &error);

} // namespace burin::codegen
