#include "passes/analysis/GraphBuilder.h"

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

void copyByKernel(OpOperand &operand) {
  Value from = operand.get();
  OpBuilder b(operand.getOwner());
  auto kernel =
      ir::KernelOp::create(b, from.getLoc(), TypeRange{from.getType()}, ValueRange{from}, b.getStringAttr("copy"),
                           /*in_place=*/DenseI64ArrayAttr());
  Block &body = kernel.getBody().emplaceBlock();
  body.addArgument(from.getType(), from.getLoc());
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  ir::YieldOp::create(inner, from.getLoc(), body.getArguments());
  operand.set(kernel.getResult(0));
}

} // namespace burin::passes
