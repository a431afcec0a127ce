// Checks indices at the start of functions that set states. States are committed after the last step that can fail, and
// those that are set before it need a second buffer. So an op late in the function, such as one that picks the last
// word of a prompt, would cost a copy of every cache; its indices, however, are often known from the start.
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/OpFacts.h"
#include "passes/analysis/ValueChecks.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_CHECKINDICESEARLYPASS
#include "passes/Passes.h.inc"

namespace {

constexpr size_t kMaxOps = 32; // that compute the indices

/// Whether the op takes little time and does not fail, so that it may run before all others.
bool isCheap(Operation *op) {
  switch (factsOf(op).fusion) {
  case FusionKind::Free:
  case FusionKind::View:
  case FusionKind::Pointwise:
  case FusionKind::Movement:
    return !mayFindError(op);
  default:
    return isa<ConstantOp>(op);
  }
}

/// The ops that compute the value from arguments, if they are few and cheap.
std::optional<SmallVector<Operation *>> earlyOpsOf(Value v) {
  llvm::SetVector<Operation *> open;
  if (Operation *op = v.getDefiningOp())
    open.insert(op);
  for (size_t i = 0; i < open.size(); ++i) {
    if (open.size() > kMaxOps || !isCheap(open[i]))
      return std::nullopt;
    for (Value operand : open[i]->getOperands())
      if (Operation *op = operand.getDefiningOp())
        open.insert(op);
  }
  return open.takeVector();
}

struct CheckIndicesEarlyPass : impl::CheckIndicesEarlyPassBase<CheckIndicesEarlyPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!setsStates(function))
        continue;
      front = &function.front().front();
      for (Operation &op : llvm::make_early_inc_range(function.getOps()))
        if (isa<TakeOp, GatherOp, ScatterOp>(op) && mayFindError(&op) && !earlyOpsOf(op.getOperand(0)))
          checkEarly(&op);
    }
  }

private:
  static bool setsStates(func::FuncOp function) {
    return llvm::any_of(llvm::seq(function.getNumResults()),
                        [&](unsigned i) { return function.getResultAttr(i, kStateAttr); });
  }

  /// Replaces the indices, if they are known early, by those that a take of 0, 1, 2, … returns. Its error is that of
  /// the op.
  void checkEarly(Operation *op) {
    SmallVector<Operation *> repeats; // between the indices to check and the operand, the last one first
    Value indices = op->getOperand(1);
    for (Operation *by = indices.getDefiningOp(); by && keepsAllElements(by); by = indices.getDefiningOp()) {
      repeats.push_back(by);
      indices = by->getOperand(0);
    }
    auto early = earlyOpsOf(indices);
    if (!early)
      return;
    // All move to the front, as the op may be the last one of the function.
    llvm::sort(*early, [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
    for (Operation *by : *early)
      if (by == front)
        front = front->getNextNode();
      else if (front->isBeforeInBlock(by))
        by->moveBefore(front);
    const Shape x = shapeOf(op->getOperand(0));
    const size_t axis = size_t(op->getAttrOfType<IntegerAttr>("axis").getInt());
    OpBuilder b(front);
    GraphBuilder g(b, op->getLoc());
    Value checked = g.op<TakeOp>({g.iota({x[axis]}, 0, dtypeOf(indices)), indices}, {{"axis", int64_t(0)}});
    checked.getDefiningOp()->setAttr(kErrorAttr, b.getStringAttr(errorOf(op)));
    IRMapping map;
    map.map(indices, checked);
    for (Operation *by : llvm::reverse(repeats))
      b.clone(*by, map);
    op->setOperand(1, map.lookup(op->getOperand(1)));
    if (auto scatter = dyn_cast<ScatterOp>(op))
      scatter.setDrop(true);
    else
      op->setAttr(kCheckedAttr, b.getUnitAttr());
  }

  Operation *front = nullptr; // the first op behind those that check indices
};

} // namespace

} // namespace burin::passes
