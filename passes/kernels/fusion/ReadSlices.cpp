// For GPUs alone: attention reads queries, keys and values that are slices of another value, as of one product that
// computes all three, from that value, so that no kernel has to copy them first.
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Passes.h"
#include "passes/analysis/OpFacts.h"
#include "passes/analysis/StridedView.h"
#include "passes/kernels/families/GpuFamilies.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_READSLICESPASS
#include "passes/Passes.h.inc"

namespace {

/// Whether an op is a reshape, or a transpose that keeps the last dimension.
bool isRowView(Operation *op) {
  auto transpose = dyn_cast<TransposeOp>(op);
  return transpose ? transpose.getPerm().back() + 1 == int64_t(transpose.getPerm().size()) : isView(op);
}

/// A value that a kernel copies from a slice of its only input. `ops`: the slice, reshapes and transposes on the way
/// from that input to the value, inside and outside of the kernel, the last one first.
struct CopiedSlice {
  SmallVector<Operation *> ops;
  KernelOp copy;
};

std::optional<CopiedSlice> copiedSlice(Value v) {
  CopiedSlice slice;
  auto passViews = [&] {
    for (Operation *op = v.getDefiningOp(); op && isRowView(op); op = v.getDefiningOp()) {
      slice.ops.push_back(op);
      v = op->getOperand(0);
    }
  };
  passViews();
  slice.copy = v.getDefiningOp<KernelOp>();
  if (!slice.copy || slice.copy.getInputs().size() != 1 || slice.copy->getNumResults() != 1)
    return std::nullopt;
  v = slice.copy.getBody().front().getTerminator()->getOperand(0);
  passViews();
  if (!isUnitSlice(v.getDefiningOp()))
    return std::nullopt;
  slice.ops.push_back(v.getDefiningOp());
  v = v.getDefiningOp()->getOperand(0);
  passViews();
  return isa<BlockArgument>(v) ? std::optional(slice) : std::nullopt;
}

/// Whether an argument of a kernel is read as query, keys or values alone.
bool isReadByAttention(OpOperand &use) {
  if (isa<ScaledDotProductAttentionOp>(use.getOwner()))
    return use.getOperandNumber() < 3;
  Operation *user = use.getOwner();
  const bool mayBeView = isa<TransposeOp>(user) || isView(user) || joinsRows(user) || repeatsMatrices(user);
  return mayBeView && llvm::all_of(user->getUses(), isReadByAttention);
}

/// Whether query, key and value are strided views of kernel arguments. Keys and values that are joined from several
/// tensors count only where the family of few rows computes the attention, which alone reads them in place.
bool areInPlace(ScaledDotProductAttentionOp op) {
  const bool isSplit = splitsKeys(op);
  return llvm::all_of(op->getOperands().take_front(3), [&](Value v) {
    SmallVector<RowsView> views = rowsViewsOf(v);
    return (isSplit || views.size() == 1) &&
           llvm::all_of(views, [](const RowsView &rows) { return isa<BlockArgument>(rows.view.base); });
  });
}

/// Replaces input i of a kernel, if it is a copied slice that attention alone reads, by the source of the slice, and
/// clones the slice into the body. Changes nothing if attention could not read it in place.
void readSlice(KernelOp kernel, unsigned i) {
  Block &body = kernel.getBody().front();
  std::optional<CopiedSlice> slice = copiedSlice(kernel.getInputs()[i]);
  auto attention = *body.getOps<ScaledDotProductAttentionOp>().begin();
  BlockArgument argument = body.getArgument(i);
  if (!slice || !llvm::all_of(argument.getUses(), isReadByAttention))
    return;
  Value source = slice->copy.getInputs()[0];
  auto b = OpBuilder::atBlockBegin(&body);
  BlockArgument whole = body.addArgument(source.getType(), argument.getLoc());
  SmallVector<Operation *> clones;
  Value v = whole;
  for (Operation *op : llvm::reverse(slice->ops)) {
    IRMapping map;
    map.map(op->getOperand(0), v);
    clones.push_back(b.clone(*op, map));
    v = clones.back()->getResult(0);
  }
  argument.replaceAllUsesWith(v);
  if (!areInPlace(attention)) {
    v.replaceAllUsesWith(argument);
    for (Operation *op : llvm::reverse(clones))
      op->erase();
    body.eraseArgument(whole.getArgNumber());
    return;
  }
  auto inputs = llvm::to_vector(kernel.getInputs());
  auto known = llvm::find(inputs, source);
  if (known != inputs.end() && known - inputs.begin() != int64_t(i)) {
    whole.replaceAllUsesWith(body.getArgument(unsigned(known - inputs.begin())));
    body.eraseArgument(whole.getArgNumber());
  } else {
    inputs.push_back(source);
  }
  inputs.erase(inputs.begin() + i);
  body.eraseArgument(i);
  kernel.getInputsMutable().assign(inputs);
}

/// Erases the ops that compute these values, and those that compute their operands, as long as nobody reads them.
void eraseUnread(ArrayRef<Value> values) {
  llvm::SetVector<Operation *> ops;
  for (Value v : values)
    if (Operation *op = v.getDefiningOp())
      ops.insert(op);
  while (!ops.empty()) {
    Operation *op = ops.pop_back_val();
    if (!isOpTriviallyDead(op))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *source = operand.getDefiningOp())
        ops.insert(source);
    op->erase();
  }
}

struct ReadSlicesPass : impl::ReadSlicesPassBase<ReadSlicesPass> {
  void runOnOperation() override {
    SmallVector<KernelOp> kernels;
    getOperation().walk([&](KernelOp kernel) {
      if (!kernel.getBody().front().getOps<ScaledDotProductAttentionOp>().empty())
        kernels.push_back(kernel);
    });
    for (KernelOp kernel : kernels) {
      const SmallVector<Value> before(kernel.getInputs());
      for (unsigned i = unsigned(before.size()); i-- > 0;)
        readSlice(kernel, i);
      eraseUnread(before); // copies, and views of them
    }
  }
};

} // namespace

} // namespace burin::passes
