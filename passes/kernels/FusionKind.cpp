#include "passes/kernels/FusionKind.h"
#include "passes/analysis/IterationSpace.h"

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

Kind intrinsicKind(Operation *op) {
  if (op->hasTrait<ir::Elementwise>())
    return Kind::Pointwise;
  if (!rowAxes(op).empty())
    return Kind::Row;
  if (isa<ReshapeOp, SqueezeOp, UnsqueezeOp>(op) || isStridedView(op))
    return Kind::View;
  if (isa<BroadcastToOp, FullOp, IotaOp>(op))
    return Kind::Free;
  if (isa<ContractOp>(op))
    return Kind::Contract;
  if (isa<MaxPoolOp, AvgPoolOp, AdaptiveAvgPoolOp, ConvOp, ScaledDotProductAttentionOp, Bf16TermsOp>(op))
    return Kind::Window;
  if (isSequential(op))
    return Kind::Sequential;
  return opInfo(op) && !isa<PrefixOp>(op) ? Kind::Movement
                                          : Kind::None; // prefix is the runtime's: it waits for a count
}

} // namespace burin::passes
