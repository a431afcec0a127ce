// Marks reductions over several dimensions: they may be in one kernel with transposes, and then reduce in the order of
// memory. Disabling the pass gives sums the order of eager code, see docs/numerics.md.
#include "passes/Passes.h"
#include "passes/analysis/IterationSpace.h"

using namespace mlir;

namespace burin::passes {
#define GEN_PASS_DEF_MARKREORDEREDSUMSPASS
#include "passes/Passes.h.inc"

namespace {

struct MarkReorderedSumsPass : impl::MarkReorderedSumsPassBase<MarkReorderedSumsPass> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (rowAxes(op).size() > 1)
        op->setAttr(kMemoryOrder, UnitAttr::get(op->getContext()));
    });
  }
};

} // namespace

} // namespace burin::passes
