#include "passes/kernels/fusion/FusionKind.h"
#include "ir/dialect/Contract.h"
#include "passes/TargetIndependent.h"
#include "passes/analysis/StridedView.h"
#include "passes/analysis/cost/KernelCost.h"
#include "passes/kernels/families/GpuFamilies.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

/// Whether neighbours along the last dimension of a view stay neighbours in memory.
static bool keepsPairs(Value view) {
  auto transpose = view.getDefiningOp<TransposeOp>();
  return !transpose || transpose.getPerm().back() + 1 == int64_t(transpose.getPerm().size());
}

/// Whether a product of pairs whose left side is a transpose joins the pairs from two loads each. It does so once per
/// panel, while a copy of the left side costs its reads and writes once.
static bool joinsPairs(ContractOp op) {
  constexpr int64_t kMostJoins = 2; // in the time of a copy
  return typicalSize(ceildiv(shapeOf(op.getResult()).back(), kPanelBytes / int64_t(sizeof(float)))) <= kMostJoins;
}

/// Whether a convolution whose image is a transpose reads the image with strides. It does so once per tap and panel:
/// with many channels, whose cache lines exceed L1, that takes up to 1.4 times as long as with a copy on a Granite
/// Rapids.
static bool readsFewChannels(ContractOp op) {
  constexpr int64_t kManyChannels = 64;
  const bool hasTaps = llvm::any_of(op.getKernel(), [](int64_t taps) { return taps > 1; });
  return !hasTaps || typicalSize(shapeOf(op.getLhs()).back()) < kManyChannels;
}

/// Whether a product reads this operand with strides, if it is a transpose or another view.
static bool readsWithStrides(ContractOp op, OpOperand &use) {
  if (use.getOperandNumber() != 0 || op.getBatch() > 1)
    return false;
  return keepsPairs(use.get()) || (isOfPairs(op) ? joinsPairs(op) : readsFewChannels(op));
}

/// Whether attention, or its gradient, reads the operand with strides: queries, keys, values, and their gradient.
static bool isRowsOfAttention(OpOperand &use) {
  return (isa<ScaledDotProductAttentionOp>(use.getOwner()) && use.getOperandNumber() < 3) ||
         (isa<AttentionGradientOp>(use.getOwner()) && use.getOperandNumber() < 4);
}

/// Whether attention alone reads a value, perhaps with sizes of 1 added and matrices repeated.
static bool isReadByAttention(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<ScaledDotProductAttentionOp, AttentionGradientOp>(user))
    return isRowsOfAttention(use);
  return (addsUnits(user) || repeatsMatrices(user)) && !user->use_empty() &&
         llvm::all_of(user->getUses(), isReadByAttention);
}

/// Whether the user of a value, perhaps through other views, is attention or a product that reads it with strides.
static bool isReadWithStrides(OpOperand &use) {
  Operation *user = use.getOwner();
  if (auto contract = dyn_cast<ContractOp>(user))
    return readsWithStrides(contract, use);
  if (isa<ScaledDotProductAttentionOp, AttentionGradientOp>(user))
    return isRowsOfAttention(use);
  if (addsUnits(user))
    return isReadByAttention(use);
  bool mayBeView = isa<TransposeOp>(user) || isPrefixSlice(user) || keepsStrides(user);
  return mayBeView && !user->use_empty() && llvm::all_of(user->getUses(), isReadWithStrides);
}

/// Whether attention with few rows alone reads a value, as its keys or values.
static bool isReadInParts(OpOperand &use) {
  if (auto attention = dyn_cast<ScaledDotProductAttentionOp>(use.getOwner()))
    return (use.getOperandNumber() == 1 || use.getOperandNumber() == 2) && splitsKeys(attention);
  Operation *user = use.getOwner();
  return keepsMatrices(user) && !user->use_empty() && llvm::all_of(user->getUses(), isReadInParts);
}

bool FusionTargets::isStridedView(Operation *op) const {
  if (!op)
    return false;
  if (joinsRows(op))
    return gpusAlone && llvm::all_of(op->getUses(), isReadInParts);
  if (repeatsMatrices(op))
    return llvm::all_of(op->getUses(), isReadByAttention);
  if (keepsStrides(op) || addsUnits(op))
    return isStridedView(op->getOperand(0).getDefiningOp());
  if (isa<TransposeOp>(op) && onGpus && !keepsPairs(op->getResult(0)))
    return false;
  return (isa<TransposeOp>(op) || isPrefixSlice(op)) && llvm::all_of(op->getUses(), isReadWithStrides);
}

Kind FusionTargets::kindOf(Operation *op) const { return isStridedView(op) ? Kind::View : factsOf(op).fusion; }

Operation *FusionTargets::mainOp(ArrayRef<Operation *> ops) const {
  for (Kind kind : {Kind::Contract, Kind::Row, Kind::Window, Kind::Sequential})
    for (Operation *op : ops)
      if (kindOf(op) == kind)
        return op;
  return ops.back();
}

bool isEarlyCheck(Operation *op) { return op->hasAttr(kErrorAttr); }

using OpPredicate = llvm::function_ref<bool(Operation *)>;

/// Whether one group has an op of the first kind, and the other one of the second kind.
static bool haveBoth(ArrayRef<Operation *> a, ArrayRef<Operation *> b, OpPredicate first, OpPredicate second) {
  return (llvm::any_of(a, first) && llvm::any_of(b, second)) || (llvm::any_of(b, first) && llvm::any_of(a, second));
}

static bool keepOrderOfSums(ArrayRef<Operation *> a, ArrayRef<Operation *> b) {
  auto sums = [](Operation *op) { return rowAxes(op).size() > 1 && !op->hasAttr(kMemoryOrder); };
  return haveBoth(a, b, sums, llvm::IsaPred<TransposeOp>);
}

/// Whether the consumer sums over several dimensions of a transpose that others read, too. It is stored anyway, and
/// sums read it faster in its order than the transpose reads its operand; they have few tasks, perhaps one.
static bool sumStoredTranspose(ArrayRef<Operation *> producer, ArrayRef<Operation *> consumer) {
  auto isOther = [&](Operation *user) {
    return !llvm::is_contained(producer, user) && !llvm::is_contained(consumer, user);
  };
  return llvm::any_of(consumer, [](Operation *op) { return rowAxes(op).size() > 1; }) &&
         llvm::any_of(producer,
                      [&](Operation *op) { return isa<TransposeOp>(op) && llvm::any_of(op->getUsers(), isOther); });
}

/// Whether the op adds along one row that consists of several dimensions: the last ones, perhaps but for sizes of 1.
static bool addsAlongSeveral(Operation *op) {
  const SmallVector<int64_t> axes = rowAxes(op);
  if (axes.size() < 2 || !isFloat(dtypeOf(op->getOperand(0))) || isa<ReduceMaxOp, ReduceMinOp>(op))
    return false;
  const Shape shape = shapeOf(op->getOperand(0));
  int64_t count = 0;
  for (int64_t d = int64_t(shape.size()); d-- > 0;) {
    const bool isReduced = llvm::is_contained(axes, d);
    if (!isReduced && lowerBound(shape[d]).value_or(0) > 1)
      break;
    count += isReduced && shape[d] != Dim(1);
  }
  return count > 1;
}

/// Whether one group adds along a row of several dimensions and the other moves elements. A kernel of both would not
/// merge these dimensions, and add along the last one only. A graph of fixed sizes has no such movement if it is the
/// identity, as a slice from 0 to the end, and adds along the whole row; symbolic sizes must give the same bits.
static bool movementSplitsRows(ArrayRef<Operation *> a, ArrayRef<Operation *> b) {
  auto moves = [](Operation *op) { return factsOf(op).fusion == Kind::Movement && !isa<TransposeOp>(op); };
  return haveBoth(a, b, addsAlongSeveral, moves);
}

bool mustStayApart(ArrayRef<Operation *> producer, ArrayRef<Operation *> consumer) {
  return keepOrderOfSums(producer, consumer) || sumStoredTranspose(producer, consumer) ||
         movementSplitsRows(producer, consumer);
}

std::string kernelName(ArrayRef<Operation *> ops) {
  std::string name;
  size_t shown = 0;
  for (Operation *op : ops) {
    if (shown++ == 4) {
      name += "+...";
      break;
    }
    name += (name.empty() ? "" : "+") + op->getName().stripDialect().str();
  }
  return name;
}

Value fillFor(ConstantOp constant, OpBuilder &b) {
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!dense || !dense.isSplat())
    return {};
  DType type = dtypeOf(constant.getResult());
  double value;
  if (isFloat(type))
    value = dense.getSplatValue<APFloat>().convertToDouble();
  else {
    APInt bits = dense.getSplatValue<APInt>();
    int64_t n = type == DType::u8 || type == DType::boolean ? int64_t(bits.getZExtValue()) : bits.getSExtValue();
    value = double(n);
    if (int64_t(value) != n)
      return {};
  }
  return create<FullOp>(b, constant.getLoc(), {},
                        {{"shape", shapeOf(constant.getResult())}, {"value", value}, {"dtype", type}});
}

} // namespace burin::passes
