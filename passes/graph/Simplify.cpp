// Idiom recognition: replaces formulas by the op that they compute.
//
// Formulas are matched as formulas of real numbers: factors in any order, constants within the precision of their type.
// Intermediate values must have no other users, or the op would repeat their work.
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
    populateSharedHeads(set);
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
