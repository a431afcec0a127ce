#include "passes/kernels/FusionKind.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

bool isStridedView(Operation *op) {
  return isa_and_nonnull<TransposeOp>(op) && llvm::all_of(op->getUses(), [](OpOperand &use) {
           auto contract = dyn_cast<ContractOp>(use.getOwner());
           return contract ? use.getOperandNumber() == 0 && contract.getBatch() <= 1
                           : isa<ScaledDotProductAttentionOp>(use.getOwner()) && use.getOperandNumber() < 3;
         });
}

Kind intrinsicKind(Operation *op) { return isStridedView(op) ? Kind::View : factsOf(op).fusion; }

std::string kernelName(ArrayRef<Operation *> ops) {
  std::string name;
  size_t shown = 0;
  for (Operation *op : ops) {
    if (shown++ == 4) {
      name += "+...";
      break;
    }
    name += (name.empty() ? "" : "+") + op->getName().stripDialect().str();
  }
  return name;
}

} // namespace burin::passes
