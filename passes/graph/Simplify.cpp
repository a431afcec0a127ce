// Formulas written out by hand, or by an exporter, become the op they spell.
//
// They are read as formulas of real numbers: factors in any order, constants as near as their type can tell. What a
// formula computes on the way must not be used elsewhere, or the op would repeat that work.
#include "passes/graph/Simplify.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/Passes.h"

using namespace mlir;

namespace burin::passes {
namespace {

struct SimplifyPass : PassWrapper<SimplifyPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SimplifyPass)
  StringRef getArgument() const override { return "burin-simplify"; }
  StringRef getDescription() const override {
    return R"(Formulas become the op they spell: silu, hardswish, gelu, softmax, layer_norm, rms_norm, attention.
  %0 = burin.sigmoid %x; %y = burin.mul %x, %0
  =>
  %y = burin.silu %x)";
  }
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    populateActivationFormulas(set);
    populateRowFormulas(set);
    patterns = std::move(set);
    return success();
  }
  void runOnOperation() override {
    if (failed(applyPatternsGreedily(getOperation(), patterns)))
      signalPassFailure();
  }
  FrozenRewritePatternSet patterns;
};

} // namespace

std::unique_ptr<Pass> createSimplifyPass() { return std::make_unique<SimplifyPass>(); }

} // namespace burin::passes
