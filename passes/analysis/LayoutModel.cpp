#include "passes/analysis/LayoutModel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/OpFacts.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

std::vector<int64_t> channelsLast(size_t rank, int channelDims) {
  std::vector<int64_t> perm{0};
  for (int64_t d = channelDims + 1; d < int64_t(rank); ++d)
    perm.push_back(d);
  for (int64_t d = 1; d <= channelDims && d < int64_t(rank); ++d)
    perm.push_back(d);
  perm.resize(rank);
  return perm;
}

std::vector<int64_t> inverse(ArrayRef<int64_t> perm) {
  std::vector<int64_t> result(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    result[perm[i]] = int64_t(i);
  return result;
}

bool feedsConstantWeights(Operation *reshape) {
  Shape from = shapeOf(reshape->getOperand(0)), to = shapeOf(reshape->getResult(0));
  if (from.size() < 3 || to.size() != 2 || from[0] != to[0] || reshape->use_empty())
    return false;
  return llvm::all_of(reshape->getUses(), [](OpOperand &use) {
    auto matmul = dyn_cast<MatmulOp>(use.getOwner());
    return matmul && use.getOperandNumber() == 0 && isConstantExpression(matmul.getRhs());
  });
}

static Dim product(const Shape &shape, size_t from, size_t to) {
  Dim result = 1;
  for (size_t d = from; d < to; ++d)
    result = result * shape[d];
  return result;
}

LayoutRule (LayoutModel::*const LayoutModel::rulesOfTable[])(Operation *) = {
#define OP_RULE(op, rule) &LayoutModel::rule,
#include "passes/analysis/LayoutRules.inc"
};

bool LayoutModel::isWindow(Operation *op) {
  std::optional<size_t> index = tableIndexOf(op);
  auto layout = op->getAttrOfType<StringAttr>("layout");
  return index && rulesOfTable[*index] == &LayoutModel::windowRule && (!layout || layout == "nchw");
}

LayoutModel::LayoutModel(Block &block) {
  for (BlockArgument argument : block.getArguments())
    channelDims[argument] = 1;
  for (Operation &op : block) {
    LayoutRule rule = ruleOf(&op);
    rule.operands.resize(op.getNumOperands(), Form::First);
    if (rule.result == Form::First && !isa<ConstantOp>(op))
      for (Value result : op.getResults())
        channelDims.try_emplace(result, 1);
    bool touched = rule.result == Form::Last || isWindow(&op);
    for (auto [operand, form] : llvm::zip(op.getOperands(), rule.operands))
      touched |= rule.result == Form::Own && form == Form::Own && fromWindow.contains(operand);
    if (touched)
      fromWindow.insert(op.getResult(0));
    rules[&op] = std::move(rule);
  }
}

std::vector<int64_t> LayoutModel::toLast(Value v) const {
  return channelsLast(cast<RankedTensorType>(v.getType()).getRank(), channelDimsOf(v));
}

/// Sets the number of channel dimensions of `v`, and of the values that it is computed from where that is not set yet.
/// Returns false if `v` already has another number.
bool LayoutModel::settle(Value v, int dims) {
  auto [it, inserted] = channelDims.try_emplace(v, dims);
  if (!inserted)
    return it->second == dims;
  auto rule = rules.find(v.getDefiningOp());
  if (rule == rules.end() || rule->second.result != Form::Own)
    return true;
  auto &forms = rule->second.operands;
  for (size_t i = 0; i < forms.size(); ++i)
    if (forms[i] == Form::Own && !settle(v.getDefiningOp()->getOperand(i), dims)) {
      rule->second = {SmallVector<Form, 3>(forms.size(), Form::First), Form::First};
      break;
    }
  return true;
}

/// Makes the result and operands of the same rank agree in their number of channel dimensions. If none of them has one,
/// nothing is set.
bool LayoutModel::settleAll(Operation *op) {
  int dims = 0;
  for (Value operand : op->getOperands())
    dims = std::max(dims, channelDims.lookup(operand));
  if (!dims)
    return true;
  size_t rank = shapeOf(op->getResult(0)).size();
  for (Value operand : op->getOperands())
    if (shapeOf(operand).size() == rank && !settle(operand, dims))
      return false;
  channelDims[op->getResult(0)] = dims;
  return true;
}

LayoutRule LayoutModel::ruleOf(Operation *op) {
  std::optional<size_t> index = tableIndexOf(op);
  return index && op->getNumResults() == 1 && !op->getNumRegions() ? (this->*rulesOfTable[*index])(op) : LayoutRule();
}

LayoutRule LayoutModel::fixedRule(Operation *) { return {}; }

LayoutRule LayoutModel::windowRule(Operation *op) {
  windows = true;
  if (!isWindow(op) || !settle(op->getOperand(0), 1))
    return {};
  channelDims[op->getResult(0)] = 1;
  return isa<ConvOp>(op) ? LayoutRule{{Form::Last, Form::Any, Form::Any}, Form::Last}
                         : LayoutRule{{Form::Own}, Form::Own};
}

static size_t rankOf(Value v) { return shapeOf(v).size(); }

/// Ops without operands.
LayoutRule LayoutModel::fillRule(Operation *op) {
  return rankOf(op->getResult(0)) < 2 ? LayoutRule() : LayoutRule{{}, Form::Own};
}

LayoutRule LayoutModel::broadcastRule(Operation *op) {
  size_t rank = rankOf(op->getResult(0));
  if (rank < 2)
    return {};
  bool sameRank = rankOf(op->getOperand(0)) == rank;
  if (sameRank && !settleAll(op))
    return {};
  return {{sameRank ? Form::Own : Form::Any}, Form::Own};
}

/// With one-dimensional indices the result keeps the dimensions of x.
LayoutRule LayoutModel::takeRule(Operation *op) {
  if (rankOf(op->getResult(0)) < 2 || rankOf(op->getOperand(1)) != 1 || !settleAll(op))
    return {};
  return {{Form::Own, Form::Any}, Form::Own};
}

/// Dimension i of the result is dimension i of all operands.
LayoutRule LayoutModel::sameRule(Operation *op) {
  if (rankOf(op->getResult(0)) < 2 || !settleAll(op))
    return {};
  return {SmallVector<Form, 3>(op->getNumOperands(), Form::Own), Form::Own};
}

/// A reduction keeps the order of the dimensions that remain. If it reduces all channels, or everything but the
/// channels, the result is the same in both layouts.
LayoutRule LayoutModel::reductionRule(Operation *op) {
  Value x = op->getOperand(0), result = op->getResult(0);
  if (shapeOf(x).size() < 2)
    return {};
  SmallVector<int64_t> axes;
  if (auto list = op->getAttrOfType<DenseI64ArrayAttr>("axes"))
    axes.assign(list.asArrayRef().begin(), list.asArrayRef().end());
  else
    axes.push_back(op->getAttrOfType<IntegerAttr>("axis").getInt());
  auto keep = op->getAttrOfType<BoolAttr>("keepdims");
  if (keep && keep.getValue()) {
    settleAll(op);
    return {{Form::Own}, Form::Own};
  }
  int dims = channelDimsOf(x), left = dims;
  if (llvm::is_contained(axes, 0)) { // statistics and gradients of channels: channels alone remain, in either form
    bool keepsChannels = llvm::none_of(axes, [&](int64_t axis) { return axis > 0 && axis <= dims; });
    bool isAll = int64_t(axes.size()) + dims == int64_t(shapeOf(x).size());
    return keepsChannels && isAll && settle(x, dims) ? LayoutRule{{Form::Own}, Form::First} : LayoutRule{};
  }
  for (int64_t axis : axes)
    left -= axis <= dims;
  if (!settle(x, dims))
    return {};
  if (left == 0)
    return {{Form::Own}, Form::First};
  channelDims[result] = left;
  return {{Form::Own}, Form::Own};
}

/// A reshape that merges neither batch nor channels with other dimensions works in both layouts.
LayoutRule LayoutModel::reshapeRule(Operation *op) {
  Value x = op->getOperand(0), result = op->getResult(0);
  Shape from = shapeOf(x), to = shapeOf(result);
  if (feedsConstantWeights(op) && settle(x, channelDimsOf(x)))
    return {{Form::Own}, Form::First};
  int dims = channelDimsOf(x);
  if (from.size() > 1 && mayRename(op) && isRenaming(op, SizeClasses(op))) {
    if (!settle(x, dims))
      return {};
    channelDims[result] = dims;
    return {{Form::Own}, Form::Own};
  }
  if (from.size() < 2 || to.size() < 2 || from[0] != to[0])
    return {};
  Dim channels = product(from, 1, size_t(dims) + 1);
  for (size_t d = 1; d < to.size(); ++d)
    if (product(to, 1, d + 1) == channels &&
        product(to, d + 1, to.size()) == product(from, size_t(dims) + 1, from.size())) {
      if (!settle(x, dims))
        return {};
      channelDims[result] = int(d);
      return {{Form::Own}, Form::Own};
    }
  return {};
}

/// A transpose between the layouts is an identity if its operand is already in the other layout. A transpose that
/// permutes only channels works in both layouts.
LayoutRule LayoutModel::transposeRule(Operation *op) {
  Value x = op->getOperand(0), result = op->getResult(0);
  ArrayRef<int64_t> perm = cast<TransposeOp>(op).getPerm();
  int dims = channelDimsOf(x);
  if (perm.size() < 3)
    return {};
  // In rank 3 one permutation leads in both directions.
  bool there = perm == ArrayRef(channelsLast(perm.size(), dims)),
       back = perm == ArrayRef(inverse(channelsLast(perm.size(), 1)));
  if (there && (!back || fromWindow.contains(x)) && settle(x, dims))
    return {{Form::Last}, Form::First};
  if (back && !fromWindow.contains(x)) {
    channelDims[result] = 1;
    return {{Form::First}, Form::Last};
  }
  for (size_t d = 0; d < perm.size(); ++d)
    if (perm[d] != int64_t(d) && (d == 0 || int(d) > dims))
      return {};
  if (!settle(x, dims))
    return {};
  channelDims[result] = dims;
  return {{Form::Own}, Form::Own};
}

} // namespace burin::passes
