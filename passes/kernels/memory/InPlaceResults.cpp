// In-place results: a result uses the buffer of an input that dies, if the kernel reads each element of that input only
// where it writes the same element of the result. The new value of a state overwrites the old one if, in addition,
// nothing can fail after the write starts: a run that fails leaves states unchanged. A carried state of a loop is
// overwritten if all other readers can run before; otherwise it alternates between two buffers.
#include "ir/dialect/Carried.h"
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/OpFacts.h"
#include "passes/analysis/ValueChecks.h"
#include "passes/analysis/cost/BufferReuse.h"
#include "passes/analysis/cost/DataDependentSizes.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_INPLACERESULTSPASS
#include "passes/Passes.h.inc"

namespace {

class InPlaceResultsPass : public impl::InPlaceResultsPassBase<InPlaceResultsPass> {
public:
  void runOnOperation() override {
    getOperation().walk([](ScanOp scan) {
      for (unsigned i = 0; i < scan.getStates(); ++i)
        if (isCarried(scan, i))
          updateCarried(cast<func::FuncOp>(scan.body()).front(), i);
    });
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        if (auto state = function.getResultAttrOfType<FlatSymbolRefAttr>(i, kStateAttr))
          updateState(function, state, i);
      for (KernelOp kernel : function.getOps<KernelOp>())
        visit(kernel);
    }
  }

private:
  void visit(KernelOp kernel) {
    for (OpResult result : kernel.getResults()) {
      if (isReturned(result) || inPlaceOf(kernel)[result.getResultNumber()] >= 0)
        continue;
      for (unsigned i = 0; i < kernel.getInputs().size(); ++i)
        if (mayReuseBuffer(kernel, result, i) && diesAt(kernel.getInputs()[i], kernel)) {
          bufferReuse(kernel, result, i);
          break;
        }
    }
  }

  static SmallVector<int64_t> inPlaceOf(KernelOp kernel) {
    if (auto known = kernel.getInPlace())
      return SmallVector<int64_t>(*known);
    return SmallVector<int64_t>(kernel.getNumResults(), -1);
  }
  static void bufferReuse(KernelOp kernel, OpResult result, unsigned input) {
    SmallVector<int64_t> inPlace = inPlaceOf(kernel);
    inPlace[result.getResultNumber()] = input;
    kernel.setInPlace(inPlace);
  }

  static bool mayReuseBuffer(KernelOp kernel, OpResult result, unsigned input) {
    return !llvm::is_contained(inPlaceOf(kernel), int64_t(input)) &&
           passes::mayReuseBuffer(kernel, result.getResultNumber(), input);
  }

  // ---- states
  /// Lets the kernels that compute result `i` of a loop's body from argument `i` write it over the argument.
  static void updateCarried(Block &body, unsigned i) {
    if (!overwrites(body, i, i))
      overwrite(storedIn(body.getTerminator()->getOperand(i)), body.getArgument(i));
  }

  /// Lets a kernel write `after` over `before`, or over a value that is written over `before` and dies there.
  static bool overwrite(Value after, BlockArgument before) {
    auto kernel = after.getDefiningOp<KernelOp>();
    if (!kernel || kernel->getBlock() != before.getOwner() ||
        overwrittenInput(kernel, cast<OpResult>(after).getResultNumber()) >= 0)
      return false;
    for (unsigned i = 0; i < kernel.getInputs().size(); ++i) {
      Value input = storedIn(kernel.getInputs()[i]);
      if (!mayReuseBuffer(kernel, cast<OpResult>(after), i))
        continue;
      if (input == before ? lastReader(before, kernel, 0, /*isLast=*/false) == 1 &&
                                moveBehind(kernel, [&](Operation *op) { return reads(op, before); })
                          : diesAt(input, kernel) && overwrite(input, before)) {
        bufferReuse(kernel, cast<OpResult>(after), i);
        return true;
      }
    }
    return false;
  }

  /// Result `i` of the function is the new value of a state.
  static void updateState(func::FuncOp function, FlatSymbolRefAttr state, unsigned i) {
    Block &block = function.getBody().front();
    Value after = storedIn(block.getTerminator()->getOperand(i));
    auto kernel = after.getDefiningOp<KernelOp>();
    BlockArgument before;
    for (BlockArgument argument : block.getArguments())
      if (function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), kStateAttr) == state)
        before = argument;
    if (!kernel || kernel->getBlock() != &block || !before || !haveSameBytes(before, after) || isReturned(before) ||
        isReturnedElsewhere(after, i))
      return;
    for (unsigned input = 0; input < kernel.getInputs().size(); ++input)
      if (storedIn(kernel.getInputs()[input]) == before && mayReuseBuffer(kernel, cast<OpResult>(after), input)) {
        if (moveBehindReaders(kernel, before))
          bufferReuse(kernel, cast<OpResult>(after), input);
        return;
      }
  }

  static bool haveSameBytes(Value x, Value y) {
    return dtypeOf(x) == dtypeOf(y) && elements(shapeOf(x)) == elements(shapeOf(y));
  }

  static bool isReturnedElsewhere(Value v, unsigned index) {
    Operation *terminator = v.getParentBlock()->getTerminator();
    for (OpOperand &operand : terminator->getOpOperands())
      if (operand.getOperandNumber() != index && storedIn(operand.get()) == v)
        return true;
    return false;
  }

  /// Moves the kernel after all other readers of `before` and all steps that can fail. Returns false if that is
  /// impossible because its results are needed earlier or because it can fail itself.
  static bool moveBehindReaders(KernelOp kernel, Value before) {
    return checksOf(kernel).empty() && lastReader(before, kernel, 0, /*isLast=*/false) == 1 &&
           moveBehind(kernel, [&](Operation *op) { return canFail(op) || reads(op, before); });
  }

  /// Moves the kernel after all other ops that `isEarlier` names. Returns false if one of these, or an op before them,
  /// uses its results or overwrites what it reads.
  static bool moveBehind(KernelOp kernel, llvm::function_ref<bool(Operation *)> isEarlier) {
    Operation *last = nullptr;
    for (Operation &op : kernel->getBlock()->without_terminator())
      if (&op != kernel && isEarlier(&op))
        last = &op;
    if (!last || last->isBeforeInBlock(kernel))
      return true;
    for (Value result : kernel.getResults())
      if (isUsedUpTo(result, last))
        return false;
    for (Operation *op = kernel->getNextNode(); op != last->getNextNode(); op = op->getNextNode())
      if (auto other = dyn_cast<KernelOp>(op))
        for (unsigned i = 0; i < other.getNumResults(); ++i)
          if (int64_t input = overwrittenInput(other, i);
              input >= 0 && reads(kernel, storedIn(other.getInputs()[unsigned(input)])))
            return false;
    kernel->moveAfter(last);
    return true;
  }

  static bool reads(Operation *op, Value v) {
    return llvm::any_of(op->getOperands(), [&](Value operand) { return storedIn(operand) == v; });
  }

  /// Whether `last`, or an op before it, uses `v`, perhaps through views.
  static bool isUsedUpTo(Value v, Operation *last) {
    return llvm::any_of(v.getUsers(), [&](Operation *user) {
      return user == last || user->isBeforeInBlock(last) || (isView(user) && isUsedUpTo(user->getResult(0), last));
    });
  }

  static bool isView(Operation *op) { return isReshape(op) || isa<PrefixOp>(op); }
  static bool isReshape(Operation *op) { return passes::isView(op); }

  /// Whether `v` has a fixed buffer: it is a result of the function, or the initial state of a loop.
  static bool isReturned(Value v) {
    return llvm::any_of(v.getUses(), [](OpOperand &use) {
      Operation *user = use.getOwner();
      auto scan = dyn_cast<ScanOp>(user);
      return isa<func::ReturnOp>(user) || (scan && use.getOperandNumber() < scan.getStates()) ||
             (isView(user) && isReturned(user->getResult(0)));
    });
  }

  /// Whether a kernel computed `v`, it is not returned, and `kernel` is its last reader and reads it once.
  static bool diesAt(Value v, KernelOp kernel) {
    Value source = storedIn(v);
    return source.getDefiningOp<KernelOp>() && !isReturned(source) && lastReader(source, kernel, 0) == 1;
  }
  // Number of times that `kernel` reads `v`, also through views; -1 if `isLast` and another op reads it later.
  static int lastReader(Value v, KernelOp kernel, int count, bool isLast = true) {
    for (OpOperand &use : v.getUses()) {
      Operation *user = use.getOwner();
      bool isShown = isReshape(user) || (isa<PrefixOp>(user) && use.getOperandNumber() == 0);
      if (isShown) {
        count = lastReader(user->getResult(0), kernel, count, isLast);
        if (count < 0)
          return -1;
      } else if (user == kernel) {
        ++count;
      } else if (isLast && !user->isBeforeInBlock(kernel)) {
        return -1;
      }
    }
    return count;
  }
};

} // namespace

} // namespace burin::passes
