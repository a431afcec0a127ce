#include "passes/GraphBuilder.h"

using namespace mlir;

namespace burin::passes {

bool isConstantExpression(Value v) {
  llvm::SmallPtrSet<Operation *, 16> seen;
  SmallVector<Value> rest{v};
  while (!rest.empty()) {
    Operation *op = rest.pop_back_val().getDefiningOp();
    if (!op || (!isa<ir::ConstantOp>(op) && (!ir::opInfo(op) || op->getNumRegions())))
      return false;
    if (seen.insert(op).second)
      llvm::append_range(rest, op->getOperands());
  }
  return true;
}

} // namespace burin::passes
