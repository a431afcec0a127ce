#include "codegen/plan/StepCost.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

/// An account may leave out what is too large an expression of sizes.
template <class F> static std::optional<Dim> ifExpressible(F &&expression) try {
  return expression();
} catch (const Error &) {
  return std::nullopt;
}

Dim byteSize(Value v) { return elements(shapeOf(v)) * Dim(int64_t(byteWidth(dtypeOf(v)))); }

Dim bytesRead(BlockArgument operand, Value source) {
  Dim bytes = 0;
  for (OpOperand &use : operand.getUses()) {
    if (!isa<TakeOp, GatherOp>(use.getOwner()) || use.getOperandNumber() != 0)
      return byteSize(source);
    bytes = bytes + byteSize(use.getOwner()->getResult(0));
  }
  return ifExpressible([&] { return min(bytes, byteSize(source)); }).value_or(byteSize(source));
}

static Dim flopsOf(Operation &op) {
  Dim work = elements(shapeOf(op.getResult(0)));
  if (auto contract = dyn_cast<ContractOp>(op)) {
    Shape packed = shapeOf(contract.getRhs());
    Dim depth = contract.getTerms() ? shapeOf(contract.getLhs()).back() : packed[packed.size() - 2];
    work = work * depth * Dim(2);
  } else if (auto attention = dyn_cast<ScaledDotProductAttentionOp>(op)) {
    Shape scores = shapeOf(attention.getQuery()), value = shapeOf(attention.getValue());
    work = elements(Shape(scores.begin(), scores.end() - 1)) * value[value.size() - 2] *
           (scores.back() + value.back()) * Dim(2);
  } else if (auto conv = dyn_cast<ConvOp>(op)) {
    Shape taps = shapeOf(conv.getWeight()); // [kernel…, C/groups, O]
    for (size_t i = 0; i + 1 < taps.size(); ++i)
      work = work * taps[i];
    work = work * Dim(2);
  } else if (isa<TakeOp, GatherOp>(op)) { // moves what it takes
  } else if (op.getNumOperands() && !op.hasTrait<ir::Elementwise>()) {
    work = max(work, elements(shapeOf(op.getOperand(0))));
  }
  return work;
}

Dim flopsOf(KernelOp kernel) {
  Dim total = 0;
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (std::optional<Dim> sum = ifExpressible([&] { return total + flopsOf(op); }))
      total = *sum;
  return total;
}

} // namespace burin::codegen
