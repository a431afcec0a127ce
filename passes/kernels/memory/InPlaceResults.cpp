// In-place results: a result uses the buffer of an input that dies, if the kernel reads each element of that input only
// where it writes the same element of the result. The new value of a state overwrites the old one if, in addition,
// nothing can fail after the write starts: a run that fails leaves states unchanged. A carried state of a loop is
// overwritten if all other readers can run before; otherwise it alternates between two buffers. Likewise a carried
// value of a `while`, and a value that both branches of an `if` return, overwritten or as it is.
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
    forgetAll();
    getOperation().walk([&](Operation *op) {
      if (auto scan = dyn_cast<ScanOp>(op))
        for (unsigned i = 0; i < scan.getStates(); ++i)
          if (isCarried(scan, i))
            updateCarried(cast<func::FuncOp>(scan.body()).front(), i);
      if (auto loop = dyn_cast<WhileOp>(op); loop && isOwn(loop.bodyFunction()))
        for (unsigned i = 0; i < loop.getCarried(); ++i) {
          updateCarried(cast<func::FuncOp>(loop.bodyFunction()).front(), i);
          OpOperand &initial = loop->getOpOperand(i);
          if (isInitialInPlace(initial) && !initialInPlace(initial.get()))
            copyByKernel(initial);
        }
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
  llvm::DenseMap<Operation *, int> uses; // of functions, by ops that run them
  bool hasHostSteps = false;             // the host runs steps, or reads sizes
  /// Ops whose in-place results were decided, and their attributes before.
  SmallVector<std::pair<Operation *, Attribute>> decided;

  /// Earlier decisions may be wrong for the order of kernels now.
  void forgetAll() {
    uses.clear();
    decided.clear();
    hasHostSteps = false;
    getOperation().walk([&](Operation *op) {
      if (auto kernel = dyn_cast<KernelOp>(op))
        kernel.removeInPlaceAttr();
      op->removeDiscardableAttr(kInPlaceAttr);
      for (Operation *function : appliedFunctions(op))
        ++uses[function];
      hasHostSteps |= isa<HostCallOp, PrefixOp>(op);
    });
  }
  bool isOwn(Operation *function) const { return uses.lookup(function) == 1; }

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

  static SmallVector<int64_t> inPlaceOf(Operation *op) {
    SmallVector<int64_t> inPlace;
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      inPlace.push_back(overwrittenInput(op, i));
    return inPlace;
  }
  void bufferReuse(Operation *op, OpResult result, unsigned input) {
    SmallVector<int64_t> inPlace = inPlaceOf(op);
    inPlace[result.getResultNumber()] = input;
    auto attribute = DenseI64ArrayAttr::get(op->getContext(), inPlace);
    auto kernel = dyn_cast<KernelOp>(op);
    decided.push_back({op, kernel ? kernel.getInPlaceAttr() : op->getDiscardableAttr(kInPlaceAttr)});
    setInPlace(op, attribute);
  }
  static void setInPlace(Operation *op, Attribute inPlace) {
    if (auto kernel = dyn_cast<KernelOp>(op))
      inPlace ? kernel.setInPlaceAttr(cast<DenseI64ArrayAttr>(inPlace)) : (void)kernel.removeInPlaceAttr();
    else
      inPlace ? op->setDiscardableAttr(kInPlaceAttr, inPlace) : (void)op->removeDiscardableAttr(kInPlaceAttr);
  }

  static bool mayReuseBuffer(KernelOp kernel, OpResult result, unsigned input) {
    return !llvm::is_contained(inPlaceOf(kernel), int64_t(input)) &&
           passes::mayReuseBuffer(kernel, result.getResultNumber(), input);
  }

  // ---- states
  /// Lets the steps that compute result `i` of a loop's body from argument `i` write it over the argument.
  void updateCarried(Block &body, unsigned i) {
    if (!overwrites(body, i, i))
      overwrite(storedIn(body.getTerminator()->getOperand(i)), body.getArgument(i), /*isState=*/false);
  }

  /// Result `i` of the function is the new value of a state.
  void updateState(func::FuncOp function, FlatSymbolRefAttr state, unsigned i) {
    Block &block = function.getBody().front();
    Value after = storedIn(block.getTerminator()->getOperand(i));
    for (BlockArgument before : block.getArguments())
      if (function.getArgAttrOfType<FlatSymbolRefAttr>(before.getArgNumber(), kStateAttr) == state &&
          haveSameBytes(before, after) && !isReturned(before) && !isReturnedElsewhere(after, i))
        overwrite(after, before, /*isState=*/true);
  }

  /// Lets a step write `after` over `before`, or over a value that is written over `before` and dies there. Nothing may
  /// fail once a state has been overwritten.
  bool overwrite(Value after, BlockArgument before, bool isState) {
    Operation *op = after.getDefiningOp();
    if (!op || op->getBlock() != before.getOwner())
      return false;
    const auto result = cast<OpResult>(after);
    if (overwrittenInput(op, result.getResultNumber()) >= 0)
      return false;
    if (auto branches = dyn_cast<IfOp>(op))
      return overwriteInBranches(branches, result, before, isState);
    auto kernel = dyn_cast<KernelOp>(op);
    for (unsigned i = 0; kernel && i < kernel.getInputs().size(); ++i) {
      Value input = storedIn(kernel.getInputs()[i]);
      if (!mayReuseBuffer(kernel, result, i))
        continue;
      if (input == before ? mayOverwrite(kernel, before, isState)
                          : diesAt(input, kernel) && overwrite(input, before, isState)) {
        bufferReuse(kernel, result, i);
        return true;
      }
    }
    return false;
  }

  /// Moves an op that reads `before` once after its other readers and, for a state, after all steps that can fail.
  /// Returns false if that is impossible because results of the op are needed earlier, it has effects in an order, or
  /// it can fail: a kernel while it writes, branches after another state has been overwritten.
  static bool mayOverwrite(Operation *op, Value before, bool isState) {
    const bool isKernel = isa<KernelOp>(op);
    if ((isState && canFail(op) && (isKernel || followsUpdate(op))) || (!isKernel && !isMemoryEffectFree(op)))
      return false;
    return lastReader(before, op, 0, /*isLast=*/false) == 1 &&
           moveBehind(op, [&](Operation *other) { return (isState && canFail(other)) || reads(other, before); });
  }

  /// Whether another op overwrites an argument, so that nothing that can fail may be moved behind it.
  static bool followsUpdate(Operation *op) {
    return llvm::any_of(op->getBlock()->without_terminator(), [&](Operation &other) {
      return &other != op && llvm::any_of(inPlaceOf(&other), [&](int64_t input) {
        return input >= 0 && isa<BlockArgument>(storedIn(other.getOperand(unsigned(input))));
      });
    });
  }

  /// Both functions overwrite the same argument with the result, or return it as it is. A function that may fail does
  /// so before it overwrites a state.
  bool overwriteInBranches(IfOp op, OpResult result, BlockArgument before, bool isState) {
    if (!isOwn(op.branch(true)) || !isOwn(op.branch(false)) || (isState && hasHostSteps && canFail(op)))
      return false;
    auto operand = llvm::find_if(op->getOpOperands().drop_front(),
                                 [&](OpOperand &operand) { return storedIn(operand.get()) == before; });
    if (operand == op->getOpOperands().end() || !haveSameBytes(before, result) || !mayOverwrite(op, before, isState))
      return false;
    const unsigned index = operand->getOperandNumber();
    const size_t known = decided.size();
    for (bool condition : {true, false}) {
      Block &block = cast<func::FuncOp>(op.branch(condition)).front();
      Value after = storedIn(block.getTerminator()->getOperand(result.getResultNumber()));
      BlockArgument argument = block.getArgument(index - 1);
      if (!keep(after, argument) && !overwrite(after, argument, isState)) {
        while (decided.size() > known) {
          auto [other, attribute] = decided.pop_back_val();
          setInPlace(other, attribute);
        }
        return false;
      }
    }
    bufferReuse(op, result, index);
    return true;
  }

  /// If `after` is a copy of `before`, the copy becomes the value itself.
  bool keep(Value after, Value before) {
    auto kernel = after.getDefiningOp<KernelOp>();
    if (!kernel || kernel.getNumResults() != 1 || kernel.getInputs().size() != 1 ||
        storedIn(kernel.getInputs().front()) != before ||
        kernel.getBody().front().getTerminator()->getOperand(0) != kernel.getBody().getArgument(0))
      return false;
    bufferReuse(kernel, kernel->getResult(0), 0);
    return true;
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

  /// Moves the op after all other ops that `isEarlier` names. Returns false if one of these, or an op before them, uses
  /// its results or overwrites what it reads.
  static bool moveBehind(Operation *op, llvm::function_ref<bool(Operation *)> isEarlier) {
    Operation *last = nullptr;
    for (Operation &other : op->getBlock()->without_terminator())
      if (&other != op && isEarlier(&other))
        last = &other;
    if (!last || last->isBeforeInBlock(op))
      return true;
    for (Value result : op->getResults())
      if (isUsedUpTo(result, last))
        return false;
    for (Operation *other = op->getNextNode(); other != last->getNextNode(); other = other->getNextNode())
      for (int64_t input : inPlaceOf(other))
        if (input >= 0 && reads(op, storedIn(other->getOperand(unsigned(input)))))
          return false;
    op->moveAfter(last);
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
      return isa<func::ReturnOp>(user) || isInitialInPlace(use) || (isView(user) && isReturned(user->getResult(0)));
    });
  }

  /// Whether a kernel computed `v`, it is not returned, and `kernel` is its last reader and reads it once.
  static bool diesAt(Value v, Operation *kernel) {
    Value source = storedIn(v);
    return source.getDefiningOp<KernelOp>() && !isReturned(source) && lastReader(source, kernel, 0) == 1;
  }
  // Number of times that `kernel` reads `v`, also through views; -1 if `isLast` and another op reads it later.
  static int lastReader(Value v, Operation *kernel, int count, bool isLast = true) {
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
