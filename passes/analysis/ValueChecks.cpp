#include "passes/analysis/ValueChecks.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/OpFacts.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

bool mayFindError(Operation *op) {
  auto scatter = dyn_cast<ScatterOp>(op);
  return (isa<TakeOp, GatherOp, CheckOp>(op) && !op->hasAttr(kCheckedAttr)) || (scatter && !scatter.getDrop());
}

llvm::SmallVector<Operation *> checksOf(KernelOp kernel) {
  llvm::SmallVector<Operation *> checks;
  kernel->walk([&](Operation *op) {
    if (mayFindError(op))
      checks.push_back(op);
  });
  return checks;
}

bool keepsAllElements(Operation *op) {
  return repeatsOperand(op) && (isView(op) || lowerBound(elements(shapeOf(op->getResult(0)))).value_or(0) > 0);
}

std::string errorOf(Operation *op) {
  if (auto check = dyn_cast<CheckOp>(op))
    return check.getMessage().str();
  if (auto other = op->getAttrOfType<StringAttr>(kErrorAttr))
    return other.str();
  auto axis = op->getAttrOfType<IntegerAttr>("axis");
  return "an index of " + std::string(opInfo(op)->name) + " is out of range along axis " +
         std::to_string(axis ? axis.getInt() : 0);
}

bool canFail(Operation *op) {
  if (isa<PrefixOp, HostCallOp>(op)) // the size that it computes may exceed its bound
    return true;
  if (auto kernel = dyn_cast<KernelOp>(op))
    return !checksOf(kernel).empty();
  return llvm::any_of(appliedFunctions(op), [](Operation *function) {
    return function
        ->walk([](Operation *inner) {
          return inner->getParentOp() && isa<func::FuncOp>(inner->getParentOp()) && canFail(inner)
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  });
}

} // namespace burin::passes
