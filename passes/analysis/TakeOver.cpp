#include "passes/analysis/TakeOver.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/OpFacts.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

/// Same element size, and the same element at every point.
static bool samePlaces(const IterationSpace &alignment, Value input, Value yielded) {
  auto steps = [&](Value v) {
    SmallVector<int> dims(alignment.dims.find(v)->second);
    llvm::erase(dims, -1);
    return dims;
  };
  return steps(input) == steps(yielded);
}

// Pointwise ops, reductions and unit reshapes read at the point; contractions and movement read anywhere.
static bool readOnlyAtItsPoint(Value v) {
  return llvm::all_of(v.getUsers(), [](Operation *user) {
    return user->hasTrait<ir::Elementwise>() || !reducedAxes(user).empty() || isa<YieldOp>(user) ||
           (isView(user) && unitReshape(user) && readOnlyAtItsPoint(user->getResult(0)));
  });
}

bool mayTakeOver(KernelOp kernel, unsigned result, unsigned input) {
  Block &body = kernel.getBody().front();
  BlockArgument argument = body.getArgument(input);
  Value yielded = body.getTerminator()->getOperand(result);
  if (auto scatter = yielded.getDefiningOp<ScatterOp>()) // its kernel has a rule for that
    return scatter.getX() == argument && argument.hasOneUse();
  if (byteWidth(dtypeOf(argument)) != byteWidth(dtypeOf(yielded)) ||
      elements(shapeOf(argument)) != elements(shapeOf(yielded)))
    return false;
  auto alignment = inferIterationSpace(body);
  return alignment && alignment->contains(yielded) && alignment->contains(argument) &&
         samePlaces(*alignment, argument, yielded) && readOnlyAtItsPoint(argument);
}

} // namespace burin::passes
