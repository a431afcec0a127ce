// Lowering of kernels in MLIR to a loadable image.
#pragma once
#include "codegen/target/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <optional>
#include <string>
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

/// What it takes to compile one kernel: CPU time in seconds, and instructions of LLVM IR, which are its lines.
struct KernelCost {
  double emission = 0, passes = 0, code = 0; // MLIR, up to LLVM IR; LLVM's passes over it; machine code
  unsigned emitted = 0, optimized = 0;       // instructions before and after LLVM's passes
  double seconds() const { return emission + passes + code; }
};
/// CPU time of this thread in seconds.
double threadSeconds();

/// Compiles kernels to machine code on the other cores while the caller still makes further ones.
class KernelCompiler {
public:
  explicit KernelCompiler(const Target &);
  ~KernelCompiler(); // waits for its threads; what is not compiled yet is dropped
  KernelCompiler(const KernelCompiler &) = delete;
  KernelCompiler &operator=(const KernelCompiler &) = delete;
  /// Translates a module of the llvm dialect to LLVM IR, here, and has that compiled. `begun` is the threadSeconds() at
  /// which the emission of the kernel has begun. Reports errors at the module.
  mlir::LogicalResult add(mlir::ModuleOp, double begun);
  /// Compiles what is left and links the code in the order of add(). On failure returns nullopt and sets `error`.
  std::optional<Image> link(llvm::ArrayRef<std::string> symbols, std::string &error);
  /// Of the kernels in the order of add(), after link().
  llvm::ArrayRef<KernelCost> costs() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// Compiles and links the functions of an optimised module. Generates code quickly, without further optimisation.
std::optional<Image> compileImage(llvm::Module &, const Target &, llvm::ArrayRef<std::string> symbols,
                                  std::string &error);

} // namespace burin::codegen
