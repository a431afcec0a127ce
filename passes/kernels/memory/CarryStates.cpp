// Marks the states of loops to which each iteration adds something, and of which only the last value is read: the
// iterations then update one buffer instead of keeping all versions. Such states are the gradients of tensors that all
// iterations use.
#include "ir/dialect/Carried.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "passes/analysis/Loops.h"
#include "passes/analysis/OpFacts.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_CARRYSTATESPASS
#include "passes/Passes.h.inc"

namespace {

class CarryStatesPass : public impl::CarryStatesPassBase<CarryStatesPass> {
  void runOnOperation() override {
    for (ScanOp scan : scansWithOwnBody(getOperation()))
      if (hasKernelsOnly(scan))
        carry(scan);
  }

  /// Whether the steps of the body will be kernels, one after the other.
  static bool hasKernelsOnly(ScanOp scan) {
    return !scan.body()
                ->walk([](Operation *op) { return isOwnStep(op) ? WalkResult::interrupt() : WalkResult::advance(); })
                .wasInterrupted();
  }

  static void carry(ScanOp scan) {
    SmallVector<int64_t> carried;
    for (unsigned i = 0; i < scan.getStates(); ++i)
      if (isSum(scan, i) && isOnlyLastRead(scan, i))
        carried.push_back(i);
    if (carried.empty())
      return;
    scan->setAttr(kCarriedAttr, DenseI64ArrayAttr::get(scan.getContext(), carried));
    for (int64_t i : carried) {
      Value result = scan.getResult(unsigned(i));
      result.setType(scan.getInputs()[unsigned(i)].getType());
      for (Operation *user : llvm::make_early_inc_range(result.getUsers())) {
        user->getResult(0).replaceAllUsesWith(result);
        user->erase();
      }
    }
  }

  /// Whether the body adds something to the state, and reads it for nothing else.
  static bool isSum(ScanOp scan, unsigned state) {
    Block &body = cast<func::FuncOp>(scan.body()).front();
    Value after = ownValue(body.getTerminator()->getOperand(state));
    auto add = after.hasOneUse() ? after.getDefiningOp<AddOp>() : AddOp();
    if (!add)
      return false;
    for (Value operand : add->getOperands())
      if (operand.hasOneUse() && ownValue(operand) == body.getArgument(state))
        return body.getArgument(state).hasOneUse();
    return false;
  }

  /// Looks through reshapes without other users.
  static Value ownValue(Value v) {
    while (v.hasOneUse() && v.getDefiningOp() && isView(v.getDefiningOp()))
      v = v.getDefiningOp()->getOperand(0);
    return v;
  }

  static bool isOnlyLastRead(ScanOp scan, unsigned state) {
    const Type last = scan.getInputs()[state].getType();
    return llvm::all_of(scan.getResult(state).getUsers(), [&](Operation *user) {
      auto slice = dyn_cast<SliceOp>(user);
      std::optional<Attr> starts = slice ? fromMlir(slice.getStarts(), AttrKind::Shape) : std::nullopt;
      return starts && slice.getResult().getType() == last && std::get<Shape>(*starts).front() == scan.partCount();
    });
  }
};

} // namespace

} // namespace burin::passes
