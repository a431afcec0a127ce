#include "passes/analysis/cost/TakeOver.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/OpFacts.h"

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

// Whether all users read `v` at the current point: pointwise ops, reductions and unit reshapes do; contractions and
// movement read elsewhere.
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
  if (auto scatter = yielded.getDefiningOp<ScatterOp>()) // the scatter kernel updates x in place
    return scatter.getX() == argument && argument.hasOneUse();
  if (byteWidth(dtypeOf(argument)) != byteWidth(dtypeOf(yielded)) ||
      elements(shapeOf(argument)) != elements(shapeOf(yielded)))
    return false;
  auto alignment = inferIterationSpace(body);
  return alignment && alignment->contains(yielded) && alignment->contains(argument) &&
         samePlaces(*alignment, argument, yielded) && readOnlyAtItsPoint(argument);
}

} // namespace burin::passes
