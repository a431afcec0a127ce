// Verifiers of the pipeline's stages; they run in builds with assertions.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "passes/analysis/OpFacts.h"
#include "passes/analysis/SlidingWindow.h"
#include "passes/kernels/families/KernelFamily.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_VERIFYGRAPHPASS
#define GEN_PASS_DEF_VERIFYLOWEREDPASS
#define GEN_PASS_DEF_VERIFYKERNELSPASS
#include "passes/Passes.h.inc"

namespace {

/// Ops that the launch plan runs, without a kernel: constants, steps of their own, and data-dependent sizes.
bool isPlanned(Operation *op) { return isa<ConstantOp, PrefixOp>(op) || isOwnStep(op); }

/// Calls `check` for each op of each function except its return; it returns what is wrong with the op, or an empty
/// string.
LogicalResult verifyOps(ModuleOp module, llvm::function_ref<StringRef(Operation *)> check) {
  bool isGood = true;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      for (Operation &op : function.getBody().front().without_terminator())
        if (StringRef problem = check(&op); !problem.empty()) {
          op.emitOpError(problem);
          isGood = false;
        }
  return success(isGood);
}

struct VerifyGraphPass : impl::VerifyGraphPassBase<VerifyGraphPass> {
  void runOnOperation() override {
    auto check = [](Operation *op) -> StringRef {
      if (isa<KernelOp>(op))
        return "is in a graph that has not been fused yet";
      bool isSupported = isPlanned(op) || isa<MatmulOp>(op) || factsOf(op).fusion != FusionKind::None;
      return isSupported ? "" : "is left by the graph passes, but no later pass supports it";
    };
    if (failed(verifyOps(getOperation(), check)))
      signalPassFailure();
  }
};

struct VerifyLoweredPass : impl::VerifyLoweredPassBase<VerifyLoweredPass> {
  void runOnOperation() override {
    auto check = [](Operation *op) -> StringRef {
      if (!isPlanned(op) && factsOf(op).fusion == FusionKind::None)
        return "is left by the lowering passes, but no kernel computes it";
      if (isa<ConvOp>(op) && !windowOf(op))
        return "is left by the lowering passes, but kernels compute only depthwise, channels-last convolutions";
      return "";
    };
    if (failed(verifyOps(getOperation(), check)))
      signalPassFailure();
  }
};

struct VerifyKernelsPass : impl::VerifyKernelsPassBase<VerifyKernelsPass> {
  void runOnOperation() override {
    auto check = [](Operation *op) -> StringRef {
      if (auto kernel = dyn_cast<KernelOp>(op))
        return isKernelBody(kernel.getBody().front()) ? "" : "has ops that do not share an iteration space";
      return isPlanned(op) || isView(op)
                 ? ""
                 : "is outside of kernels after fusion, but neither a view nor a step of the launch plan";
    };
    if (failed(verifyOps(getOperation(), check)))
      signalPassFailure();
  }
};

} // namespace

} // namespace burin::passes
