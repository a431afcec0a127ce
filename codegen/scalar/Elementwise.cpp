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
  return loweringOf(*ir::opInfo(op)).lower(operands, ir::attrsOf(op)).to(result).value();
}

} // namespace burin::codegen
