// Marks the states of loops of which only the last value is read: the iterations then share one buffer or two instead
// of keeping all versions.
#include "ir/dialect/Carried.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "passes/analysis/Loops.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_CARRYSTATESPASS
#include "passes/Passes.h.inc"

namespace {

class CarryStatesPass : public impl::CarryStatesPassBase<CarryStatesPass> {
  void runOnOperation() override {
    for (ScanOp scan : scansWithOwnBody(getOperation()))
      carry(scan);
  }

  static void carry(ScanOp scan) {
    SmallVector<int64_t> carried;
    for (unsigned i = 0; i < scan.getStates(); ++i)
      if (isOnlyLastRead(scan, i))
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
