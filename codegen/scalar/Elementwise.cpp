#include "codegen/scalar/Elementwise.h"
#include "codegen/scalar/math/Math.h"
#include "ir/dialect/Burin.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace burin::codegen {

namespace {
#include "codegen/scalar/ElementwiseLowering.inc"
} // namespace

static bool isNarrowFloat(DType type) { return isFloat(type) && byteWidth(type) == 2; }

static const ScalarLowering &loweringOf(const ir::OpInfo &info) {
  auto found = llvm::find_if(scalarLowerings, [&](const ScalarLowering &l) { return StringRef(l.op) == info.name; });
  assert(found != std::end(scalarLowerings) && "not an elementwise op");
  return *found;
}

/// Whether v is the distance of the elements of a row from the largest one, as in softmax: at most 0, or NaN.
static bool isDistanceToLargest(Value v) {
  auto distance = v.getDefiningOp<ir::SubOp>();
  Value largest = distance ? distance->getOperand(1) : Value();
  while (largest && isa_and_nonnull<ir::BroadcastToOp, ir::ReshapeOp>(largest.getDefiningOp()))
    largest = largest.getDefiningOp()->getOperand(0);
  Operation *op = largest ? largest.getDefiningOp() : nullptr;
  return isa_and_nonnull<ir::ReduceMaxOp, ir::ReduceMaxNumOp>(op) && op->getOperand(0) == distance->getOperand(0);
}

Value emitElementwise(OpBuilder &builder, mlir::Location loc, Operation *op, ValueRange lanes) {
  SmallVector<Scalar> operands;
  for (auto [operand, lane] : llvm::zip_equal(op->getOperands(), lanes))
    operands.emplace_back(builder, loc, lane, ir::dtypeOf(operand));
  DType result = ir::dtypeOf(op->getResult(0));
  if (isa<ir::CastOp>(op))
    return operands.front().to(result).value();
  for (Scalar &operand : operands)
    if (isNarrowFloat(operand.dtype()))
      operand = isNarrowFloat(result) ? operand.to(DType::f32).for16Bits() : operand.to(DType::f32);
  if (isa<ir::ExpOp>(op) && isDistanceToLargest(op->getOperand(0)))
    return expOfNonPositive(operands.front()).to(result).value();
  return loweringOf(*ir::opInfo(op)).lower(operands, ir::attrsOf(op)).to(result).value();
}

} // namespace burin::codegen
