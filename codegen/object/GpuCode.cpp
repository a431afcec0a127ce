#include "codegen/object/GpuCode.h"
#include "codegen/object/ObjectCode.h"
#include "codegen/scalar/Math.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace burin::codegen {
namespace {

/// Names of functions that the kernels call and that a GPU does not have.
std::string missingFunctions(ModuleOp module) {
  llvm::SetVector<StringRef> names;
  module.walk([&](LLVM::CallOp call) {
    auto function = call.getCallee() ? module.lookupSymbol<LLVM::LLVMFuncOp>(*call.getCallee()) : LLVM::LLVMFuncOp();
    if (function && function.isExternal() && isLibmFunction(*call.getCallee()))
      names.insert(*call.getCallee());
  });
  return llvm::join(names, ", ");
}

} // namespace

std::unique_ptr<llvm::Module> optimizedGpuLLVM(ModuleOp module, const Target &target, llvm::LLVMContext &context,
                                               std::string &error) {
  if (std::string missing = missingFunctions(module); !missing.empty()) {
    error = "kernels for " + std::string(target.name) + " cannot call " + missing + ": a GPU has no C library";
    return nullptr;
  }
  // NVPTX has no instruction for them in LLVM 22; they change no result.
  module.walk([](LLVM::Prefetch prefetch) { prefetch.erase(); });
  auto code = optimizedLLVM(module, target, context);
  if (!code)
    error = std::string("LLVM has no code generator for ") + target.name;
  return code;
}

} // namespace burin::codegen
