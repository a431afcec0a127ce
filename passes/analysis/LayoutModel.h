// Layout rules: which ops can work on channels-last values, and in what form their operands and results are then.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// Layout of an operand or result. A value [N, C…, spatial…] has two forms: First, as in the graph, and Last, [N,
/// spatial…, C…]. C is several dimensions where channels are split into groups. Own is the form that is assigned to the
/// op as a whole; Any stands for operands without a layout.
enum class Form { First, Last, Own, Any };

struct LayoutRule {
  llvm::SmallVector<Form, 3> operands;
  Form result = Form::First;
  bool isFlexible() const { return result == Form::Own || llvm::is_contained(operands, Form::Own); }
};

/// The rules of the ops of a block.
class LayoutModel {
public:
  explicit LayoutModel(mlir::Block &);

  /// Whether the block has convolutions or pooling; without them no layout is assigned.
  bool hasWindows() const { return windows; }
  const LayoutRule &rule(mlir::Operation *op) const { return rules.find(op)->second; }
  /// Dimension i of the last form of `v` is dimension perm[i] of the first.
  std::vector<int64_t> toLast(mlir::Value v) const;
  /// A convolution or pooling in nchw layout.
  static bool isWindow(mlir::Operation *);

private:
  LayoutRule ruleOf(mlir::Operation *op);
  // Rules that op definitions name as `layout`; they may set numbers of channel dimensions.
  LayoutRule fixedRule(mlir::Operation *op);
  LayoutRule windowRule(mlir::Operation *op);
  LayoutRule reductionRule(mlir::Operation *op);
  LayoutRule reshapeRule(mlir::Operation *op);
  LayoutRule transposeRule(mlir::Operation *op);
  LayoutRule fillRule(mlir::Operation *op);
  LayoutRule broadcastRule(mlir::Operation *op);
  LayoutRule takeRule(mlir::Operation *op);
  LayoutRule sameRule(mlir::Operation *op);
  static LayoutRule (LayoutModel::*const rulesOfTable[])(mlir::Operation *);
  bool settle(mlir::Value v, int channelDims);
  bool settleAll(mlir::Operation *op);
  int channelDimsOf(mlir::Value v) const { return std::max(1, channelDims.lookup(v)); }

  bool windows = false;
  llvm::DenseMap<mlir::Operation *, LayoutRule> rules;
  llvm::DenseMap<mlir::Value, int> channelDims; // values without an entry are undecided
  llvm::DenseSet<mlir::Value> fromWindow;       // computed from the result of a convolution or pooling
};

/// The permutation that moves dimensions 1 to `channelDims` behind all others.
std::vector<int64_t> channelsLast(size_t rank, int channelDims);
std::vector<int64_t> inverse(llvm::ArrayRef<int64_t> perm);
/// Whether the users of a reshape are products with constant weights: they accept its elements in any order.
bool feedsConstantWeights(mlir::Operation *reshape);

} // namespace burin::passes
