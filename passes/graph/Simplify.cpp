// Formulas written out by hand, or by an exporter, become the op they spell.
//
// They are read as formulas of real numbers: factors in any order, constants as near as their type can tell. What a
// formula computes on the way must not be used elsewhere, or the op would repeat that work.
#include "passes/graph/Simplify.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/Passes.h"

using namespace mlir;

namespace burin::passes {
#define GEN_PASS_DEF_SIMPLIFYPASS
#include "passes/Passes.h.inc"

namespace {

struct SimplifyPass : impl::SimplifyPassBase<SimplifyPass> {
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

} // namespace burin::passes
