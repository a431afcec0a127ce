// Marks scatters whose indices another op checks. The gradient of an embedding adds rows at indices that the forward
// pass has read and checked. Without checks of its own its kernel cannot fail, so that it need not run before states
// are updated.
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_MARKCHECKEDINDICESPASS
#include "passes/Passes.h.inc"

namespace {

/// The value whose elements `indices` repeats or reshapes.
Value sourceOf(Value indices) {
  while (Operation *op = indices.getDefiningOp()) {
    if (!isa<BroadcastToOp, ReshapeOp, SqueezeOp, UnsqueezeOp>(op))
      break;
    indices = op->getOperand(0);
  }
  return indices;
}

struct MarkCheckedIndicesPass : impl::MarkCheckedIndicesPassBase<MarkCheckedIndicesPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (ScatterOp scatter : llvm::make_early_inc_range(function.getOps<ScatterOp>()))
        if (!scatter.getDrop() && isChecked(scatter))
          scatter.setDrop(true);
  }

private:
  /// Whether another op of the function, which always runs, rejects all indices that the scatter would reject.
  static bool isChecked(ScatterOp scatter) {
    Value source = sourceOf(scatter.getIndices());
    const Dim size = shapeOf(scatter.getX())[scatter.getAxis()];
    SmallVector<Value> shown{source};
    while (!shown.empty()) {
      Value v = shown.pop_back_val();
      for (OpOperand &use : v.getUses()) {
        Operation *user = use.getOwner();
        if (isa<ReshapeOp, SqueezeOp, UnsqueezeOp>(user) ||
            (isa<BroadcastToOp>(user) && isNotEmpty(user->getResult(0))))
          shown.push_back(user->getResult(0));
        auto checks = [&](auto op) {
          return op && use.getOperandNumber() == 1 && !op->use_empty() && shapeOf(op.getX())[op.getAxis()] == size;
        };
        if (user->getBlock() == scatter->getBlock() &&
            (checks(dyn_cast<TakeOp>(user)) || checks(dyn_cast<GatherOp>(user))))
          return true;
      }
    }
    return false;
  }

  static bool isNotEmpty(Value v) { return lowerBound(elements(shapeOf(v))).value_or(0) > 0; }
};

} // namespace

} // namespace burin::passes
