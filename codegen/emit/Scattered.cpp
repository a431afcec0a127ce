#include "codegen/emit/Scattered.h"
#include "codegen/scalar/base/Scalar.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

bool updatesInPlace(ScatterOp op) {
  // A scatter is a kernel of its own, with one result: the first entry of `in_place` is the input that it overwrites.
  auto kernel = cast<KernelOp>(op->getParentOp());
  auto argument = dyn_cast<BlockArgument>(op.getX());
  return argument && kernel.getInPlace() && kernel.getInPlace()->front() == argument.getArgNumber();
}

Value combineUpdate(KernelBuilder &k, llvm::StringRef reduction, Value element, Value update, DType type) {
  DType wide = type == DType::f16 || type == DType::bf16 ? DType::f32 : type;
  Scalar a = Scalar(k.b, k.loc, element, type).to(wide), b = Scalar(k.b, k.loc, update, type).to(wide);
  Scalar both = reduction == "add" ? a + b : reduction == "mul" ? a * b : reduction == "min" ? min(a, b) : max(a, b);
  return both.to(type).value();
}

} // namespace burin::codegen
