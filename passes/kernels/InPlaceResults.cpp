// A result may take over the memory of an input that nobody reads afterwards, if the kernel reads each element of that
// input only where it writes the same element of the result.
#include "ir/dialect/Burin.h"
#include "passes/Passes.h"
#include "passes/analysis/DataDependentSizes.h"
#include "passes/analysis/IterationSpace.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
namespace {

class InPlaceResults : public PassWrapper<InPlaceResults, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InPlaceResults)
  llvm::StringRef getArgument() const override { return "burin-in-place-results"; }
  llvm::StringRef getDescription() const override {
    return "Lets kernel results take over the memory of inputs that die";
  }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (KernelOp kernel : function.getOps<KernelOp>())
        visit(kernel);
  }

private:
  void visit(KernelOp kernel) {
    Block &body = kernel.getBody().front();
    auto alignment = inferIterationSpace(body);
    if (!alignment)
      return;
    SmallVector<int64_t> inPlace(kernel.getNumResults(), -1);
    llvm::DenseSet<int64_t> taken;
    for (auto [r, result] : llvm::enumerate(kernel.getResults())) {
      if (isReturned(result))
        continue;
      Value yielded = body.getTerminator()->getOperand(r);
      if (!alignment->contains(yielded))
        continue;
      for (auto [i, input] : llvm::enumerate(kernel.getInputs())) {
        BlockArgument argument = body.getArgument(i);
        if (taken.contains(i) || !alignment->contains(argument) || !samePlaces(*alignment, argument, yielded) ||
            !diesAt(input, kernel) || !readOnlyAtItsPoint(argument))
          continue;
        inPlace[r] = i;
        taken.insert(i);
        break;
      }
    }
    if (!taken.empty())
      kernel.setInPlace(inPlace);
  }

  /// Same element size, and the same element at every point.
  static bool samePlaces(const IterationSpace &alignment, Value input, Value yielded) {
    auto steps = [&](Value v) {
      SmallVector<int> dims(alignment.dims.find(v)->second);
      llvm::erase(dims, -1);
      return dims;
    };
    return byteWidth(dtypeOf(input)) == byteWidth(dtypeOf(yielded)) &&
           elements(shapeOf(input)) == elements(shapeOf(yielded)) && steps(input) == steps(yielded);
  }

  // Pointwise ops, reductions and unit reshapes read at the point; contractions and movement read anywhere.
  static bool readOnlyAtItsPoint(Value v) {
    return llvm::all_of(v.getUsers(), [](Operation *user) {
      return user->hasTrait<ir::Elementwise>() || !reducedAxes(user).empty() || isa<YieldOp>(user) ||
             (isReshape(user) && unitReshape(user) && readOnlyAtItsPoint(user->getResult(0)));
    });
  }

  static bool isReshape(Operation *op) { return isa<ReshapeOp, SqueezeOp, UnsqueezeOp>(op); }

  /// It has a place of its own: among the results, or before the states that a loop leaves.
  static bool isReturned(Value v) {
    return llvm::any_of(v.getUses(), [](OpOperand &use) {
      Operation *user = use.getOwner();
      auto scan = dyn_cast<ScanOp>(user);
      return isa<func::ReturnOp>(user) || (scan && use.getOperandNumber() < scan.getStates()) ||
             ((isReshape(user) || isa<PrefixOp>(user)) && isReturned(user->getResult(0)));
    });
  }

  /// Computed by a kernel, not returned, and `kernel` is the last to read it, once.
  static bool diesAt(Value v, KernelOp kernel) {
    Value source = storedIn(v);
    return source.getDefiningOp<KernelOp>() && !isReturned(source) && lastReader(source, kernel, 0) == 1;
  }
  // How often `kernel` reads `v` through views; -1 if anyone reads it later.
  static int lastReader(Value v, KernelOp kernel, int count) {
    for (OpOperand &use : v.getUses()) {
      Operation *user = use.getOwner();
      bool isShown = isReshape(user) || (isa<PrefixOp>(user) && use.getOperandNumber() == 0);
      if (isShown) {
        count = lastReader(user->getResult(0), kernel, count);
        if (count < 0)
          return -1;
      } else if (user == kernel) {
        ++count;
      } else if (!user->isBeforeInBlock(kernel)) {
        return -1;
      }
    }
    return count;
  }
};

} // namespace

std::unique_ptr<Pass> createInPlaceResultsPass() { return std::make_unique<InPlaceResults>(); }

} // namespace burin::passes
