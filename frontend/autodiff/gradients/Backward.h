// Reverse-mode differentiation of a trace.
#pragma once
#include "frontend/trace/Trace.h"
#include "mlir/IR/IRMapping.h"

namespace burin {

/// Propagates gradients from some values to others.
class Trace::Backward {
public:
  /// Null values among `xs` are not used by the graph. If one x depends on another one, gradients flow through it.
  Backward(Trace &trace, llvm::ArrayRef<mlir::Value> ys, llvm::ArrayRef<mlir::Value> xs);

  /// Propagates the gradients of ys; gradientOf() then returns those of xs.
  void run(llvm::ArrayRef<mlir::Value> ys, llvm::ArrayRef<Tensor> gradients);
  /// Undefined if it is zero.
  Tensor gradientOf(mlir::Value x) const { return gradients.lookup(x); }

private:
  Trace &trace;
  llvm::DenseSet<mlir::Value> varying; // floats that depend on xs
  std::vector<mlir::Operation *> path; // ops with varying results, in order
  llvm::DenseMap<mlir::Value, Tensor> gradients;

  llvm::DenseMap<const Region *, mlir::IRMapping> again; // recomputed values of regions, see Trace::remat

  void add(mlir::Value value, const Tensor &gradient);
  Tensor gradientOrZeros(mlir::Value value) const;
  void differentiate(mlir::Operation *op);
  /// Gradient of a matrix that is broadcast over the batch of a matrix product: one product over the rows of all batch
  /// elements instead of a batch of products and their sum. Undefined if the gradient of `copies` is no such product.
  Tensor gradientOfShared(ir::BroadcastToOp copies) const;
  /// The value as the rule of `op` reads it: computed again if the op is of a region.
  mlir::Value computedAgain(mlir::Operation *op, mlir::Value value);
  mlir::IRMapping computeAgain(const Region &region);
  void differentiateLoop(ir::ScanOp loop);
  void differentiateBranches(ir::IfOp branches);
  void differentiateCustom(mlir::Operation *op, const Custom &custom);
  /// The values that the results of an op depend on.
  llvm::SmallVector<mlir::Value> dependencies(mlir::Operation *op) const;
};

} // namespace burin
