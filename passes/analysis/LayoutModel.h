// Which ops can work on channels-last values, and how.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// A value [N, C…, spatial…] has two forms: first, as it is in the graph, and last, [N, spatial…, C…]. C is one
/// dimension, or several where channels are split into groups.
/// What an op takes or gives: one of the forms, `Own` for the form that is chosen for the op as a whole, or something
/// that no layout matters to.
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

  /// Convolutions and pooling exist: there is something to gain.
  bool hasWindows() const { return windows; }
  const LayoutRule &rule(mlir::Operation *op) const { return rules.find(op)->second; }
  /// Dimension i of the last form of `v` is dimension perm[i] of the first.
  std::vector<int64_t> toLast(mlir::Value v) const;
  /// A convolution or pooling in nchw layout.
  static bool isWindow(mlir::Operation *);

private:
  LayoutRule ruleOf(mlir::Operation *op);
  // The rules that op definitions name as `layout`; they may settle numbers of channel dimensions.
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
  llvm::DenseMap<mlir::Value, int> channelDims; // those that are settled
  llvm::DenseSet<mlir::Value> fromWindow;       // computed from the result of a convolution or pooling
};

/// The permutation that brings dimensions 1 to `channelDims` behind all others.
std::vector<int64_t> channelsLast(size_t rank, int channelDims);
std::vector<int64_t> inverse(llvm::ArrayRef<int64_t> perm);
/// A reshape whose users are products with constant weights: they can take its elements in any order.
bool feedsConstantWeights(mlir::Operation *reshape);

} // namespace burin::passes
