// Marks scatters whose indices another op checks, or that are in range by construction. The gradient of an embedding
// adds rows at indices that the forward pass has read and checked; a part of a tensor is set at positions that are
// chosen from those of all elements. Without checks of its own the kernel cannot fail, so that it need not run before
// states are updated, and may overwrite a state.
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "passes/analysis/OpFacts.h"
#include "passes/analysis/ValueChecks.h"
#include <cstring>

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_MARKCHECKEDINDICESPASS
#include "passes/Passes.h.inc"

namespace {

/// The value whose elements `indices` repeats or reshapes.
Value sourceOf(Value indices) {
  while (Operation *op = indices.getDefiningOp()) {
    if (!repeatsOperand(op))
      break;
    indices = op->getOperand(0);
  }
  return indices;
}

struct MarkCheckedIndicesPass : impl::MarkCheckedIndicesPassBase<MarkCheckedIndicesPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (ScatterOp scatter : llvm::make_early_inc_range(function.getOps<ScatterOp>()))
        if (!scatter.getDrop() && (isChecked(scatter) || areWithin(scatter.getIndices(), sizeOf(scatter))))
          scatter.setDrop(true);
  }

private:
  static Dim sizeOf(ScatterOp scatter) { return shapeOf(scatter.getX())[scatter.getAxis()]; }

  /// Whether all elements are in [0, size): they are elements of an iota or of a constant. A take whose own indices are
  /// out of range ends the run before the scatter.
  static bool areWithin(Value indices, const Dim &size) {
    Operation *op = indices.getDefiningOp();
    while (factsOf(op).rearranges)
      op = op->getOperand(0).getDefiningOp();
    if (auto iota = dyn_cast_or_null<IotaOp>(op)) {
      const Dim count = shapeOf(iota.getResult())[iota.getAxis()];
      const std::optional<int64_t> most = upperBound(count), least = lowerBound(size);
      return dtypeOf(iota.getResult()) == DType::i64 && (count == size || (most && least && *most <= *least));
    }
    auto constant = dyn_cast_or_null<ConstantOp>(op);
    return constant && lowerBound(size) && areWithin(constant, *lowerBound(size));
  }
  static bool areWithin(ConstantOp indices, int64_t size) {
    if (dtypeOf(indices.getResult()) != DType::i64)
      return false;
    std::vector<char> storage;
    ArrayRef<char> bytes = constantBytes(indices.getValue(), storage);
    for (size_t at = 0; at < bytes.size(); at += sizeof(int64_t)) {
      int64_t index;
      std::memcpy(&index, bytes.data() + at, sizeof index);
      if (index < 0 || index >= size)
        return false;
    }
    return true;
  }

  /// Whether another op of the function, which always runs, rejects all indices that the scatter would reject.
  static bool isChecked(ScatterOp scatter) {
    Value source = sourceOf(scatter.getIndices());
    const Dim size = sizeOf(scatter);
    SmallVector<Value> shown{source};
    while (!shown.empty()) {
      Value v = shown.pop_back_val();
      for (OpOperand &use : v.getUses()) {
        Operation *user = use.getOwner();
        if (keepsAllElements(user))
          shown.push_back(user->getResult(0));
        auto checks = [&](auto op) {
          return op && use.getOperandNumber() == 1 && !op->use_empty() && shapeOf(op.getX())[op.getAxis()] == size;
        };
        if (user->getBlock() == scatter->getBlock() &&
            (checks(dyn_cast<TakeOp>(user)) || checks(dyn_cast<GatherOp>(user))))
          return true;
      }
    }
    return false;
  }
};

} // namespace

} // namespace burin::passes
