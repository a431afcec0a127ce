// Hoists loop-invariant ops out of `burin.scan`: for example, the packing of a weight that is an input of the graph.
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Loops.h"
#include "passes/analysis/OpFacts.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_LOOPINVARIANTCODEMOTIONPASS
#include "passes/Passes.h.inc"

namespace {

class Hoister {
public:
  explicit Hoister(ScanOp scan) : scan(scan), block(cast<func::FuncOp>(scan.body()).front()), builder(scan) {}

  void run() {
    for (unsigned i = scan.firstWhole(); i < scan.getInputs().size(); ++i)
      outside.map(block.getArgument(i), scan.getInputs()[i]);
    for (Operation &op : llvm::make_early_inc_range(block.without_terminator()))
      if (isInvariant(&op) && !staysInside(&op))
        hoist(&op);
    dropUnused();
  }

private:
  static bool staysInside(Operation *op) { return isa<ConstantOp>(op) || isFree(op); }
  bool isInvariant(Value v) {
    Operation *op = v.getDefiningOp();
    return outside.contains(v) || (op && staysInside(op) && isInvariant(op));
  }
  bool isInvariant(Operation *op) {
    return isa<ConstantOp>(op) || (opInfo(op) && !op->getNumRegions() && isMemoryEffectFree(op) && !newSizeOf(op) &&
                                   llvm::all_of(op->getOperands(), [&](Value v) { return isInvariant(v); }));
  }

  Operation *cloneOutside(Operation *op) {
    for (Value operand : op->getOperands())
      if (!outside.contains(operand))
        cloneOutside(operand.getDefiningOp());
    return builder.clone(*op, outside);
  }

  void hoist(Operation *op) {
    Operation *clone = cloneOutside(op);
    for (auto [result, known] : llvm::zip(op->getResults(), clone->getResults())) {
      BlockArgument argument = block.addArgument(result.getType(), result.getLoc());
      scan.getInputsMutable().append(known);
      outside.map(argument, known);
      result.replaceAllUsesWith(argument);
    }
    op->erase();
  }

  void dropUnused() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
    for (unsigned i = scan.getInputs().size(); i-- > scan.firstWhole();)
      if (block.getArgument(i).use_empty()) {
        block.eraseArgument(i);
        scan.getInputsMutable().erase(i);
      }
    auto function = cast<func::FuncOp>(block.getParentOp());
    function.setFunctionType(builder.getFunctionType(block.getArgumentTypes(), function.getResultTypes()));
  }

  ScanOp scan;
  Block &block;
  OpBuilder builder;
  IRMapping outside; // loop-invariant values of the body, and their values before the loop
};

struct LoopInvariantCodeMotionPass : impl::LoopInvariantCodeMotionPassBase<LoopInvariantCodeMotionPass> {
  void runOnOperation() override {
    for (ScanOp scan : scansWithOwnBody(getOperation()))
      Hoister(scan).run();
  }
};

} // namespace

} // namespace burin::passes
