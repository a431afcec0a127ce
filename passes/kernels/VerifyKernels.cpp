// Checks what fusion promises code generation.
#include "passes/Passes.h"
#include "passes/analysis/IterationSpace.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
namespace {

struct VerifyKernels : PassWrapper<VerifyKernels, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyKernels)
  StringRef getArgument() const override { return "burin-verify-kernels"; }
  StringRef getDescription() const override { return "Fails if no code can be generated for the body of a kernel"; }
  void runOnOperation() override {
    getOperation().walk([&](KernelOp kernel) {
      if (isKernelBody(kernel.getBody().front()))
        return;
      kernel.emitError("the ops of this kernel do not share an iteration space");
      signalPassFailure();
    });
  }
};

} // namespace

std::unique_ptr<Pass> createVerifyKernelsPass() { return std::make_unique<VerifyKernels>(); }

} // namespace burin::passes
