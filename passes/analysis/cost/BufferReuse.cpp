#include "passes/analysis/cost/BufferReuse.h"
#include "ir/dialect/Carried.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/OpFacts.h"
#include "passes/analysis/cost/DataDependentSizes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

/// Whether both values have their elements at the same points of the space.
static bool samePlaces(const IterationSpace &alignment, Value input, Value yielded) {
  auto steps = [&](Value v) {
    SmallVector<int> dims(alignment.dims.find(v)->second);
    llvm::erase(dims, -1);
    return dims;
  };
  return steps(input) == steps(yielded);
}

/// Whether the kernel reads `v` only at the current point, also to compute other values: pointwise ops, reductions and
/// unit reshapes do. Contractions and movement read elsewhere; broadcasts read again at later points.
static bool readOnlyAtItsPoint(Value v) {
  llvm::SetVector<Value> computed;
  computed.insert(v);
  for (size_t i = 0; i < computed.size(); ++i)
    for (Operation *user : Value(computed[i]).getUsers()) {
      if (!reducedAxes(user).empty() || isa<YieldOp>(user))
        continue;
      if (!user->hasTrait<ir::Elementwise>() && !(isView(user) && unitReshape(user)))
        return false;
      computed.insert(user->getResult(0));
    }
  return true;
}

bool mayReuseBuffer(KernelOp kernel, unsigned result, unsigned input) {
  Block &body = kernel.getBody().front();
  BlockArgument argument = body.getArgument(input);
  Value yielded = body.getTerminator()->getOperand(result);
  if (auto scatter = yielded.getDefiningOp<ScatterOp>()) // the scatter kernel updates x in place
    return scatter.getX() == argument && argument.hasOneUse();
  if (byteWidth(dtypeOf(argument)) != byteWidth(dtypeOf(yielded)) ||
      elements(shapeOf(argument)) != elements(shapeOf(yielded)))
    return false;
  auto alignment = inferIterationSpace(body);
  return alignment && alignment->contains(yielded) && alignment->contains(argument) &&
         samePlaces(*alignment, argument, yielded) && readOnlyAtItsPoint(argument);
}

int64_t overwrittenInput(Operation *op, unsigned result) {
  if (auto kernel = dyn_cast<KernelOp>(op))
    return kernel.getInPlace() ? (*kernel.getInPlace())[result] : -1;
  auto inPlace = op->getAttrOfType<DenseI64ArrayAttr>(kInPlaceAttr);
  return inPlace ? inPlace[result] : -1;
}

bool overwrites(Block &block, unsigned result, unsigned argument) {
  Value at = storedIn(block.getTerminator()->getOperand(result));
  for (Operation *op = at.getDefiningOp(); op; op = at.getDefiningOp()) {
    const int64_t input = overwrittenInput(op, cast<OpResult>(at).getResultNumber());
    if (input < 0)
      return false;
    at = storedIn(op->getOperand(unsigned(input)));
  }
  return at == block.getArgument(argument);
}

bool alternates(ScanOp scan, unsigned state) {
  return isCarried(scan, state) && !overwrites(cast<func::FuncOp>(scan.body()).front(), state, state);
}

bool isUpdatedInPlace(WhileOp loop, unsigned carried) {
  return overwrites(cast<func::FuncOp>(loop.bodyFunction()).front(), carried, carried);
}

bool isInitialInPlace(OpOperand &operand) {
  const unsigned i = operand.getOperandNumber();
  if (auto scan = dyn_cast<ScanOp>(operand.getOwner()))
    return i < scan.getStates();
  auto loop = dyn_cast<WhileOp>(operand.getOwner());
  return loop && i < loop.getCarried() && isUpdatedInPlace(loop, i);
}

OpOperand *initialInPlace(Value v) {
  if (!v.getDefiningOp<KernelOp>() || !v.hasOneUse())
    return nullptr;
  OpOperand &use = *v.use_begin();
  return isInitialInPlace(use) ? &use : nullptr;
}

bool isIdentity(KernelOp kernel) {
  Block &body = kernel.getBody().front();
  if (kernel.getInputs().size() != 1)
    return false;
  for (auto [i, yielded] : llvm::enumerate(body.getTerminator()->getOperands())) {
    const int64_t input = overwrittenInput(kernel, unsigned(i));
    if (input < 0 || yielded != body.getArgument(unsigned(input)))
      return false;
  }
  return true;
}

} // namespace burin::passes
