// Reverse-mode differentiation of what a trace has recorded.
#pragma once
#include "frontend/trace/Trace.h"
#include "mlir/IR/IRMapping.h"

namespace burin {

/// From some values back to others.
class Trace::Backward {
public:
  /// Null values among `xs` stand for what the graph does not use. An x that depends on another one is a way to that.
  Backward(Trace &trace, llvm::ArrayRef<mlir::Value> ys, llvm::ArrayRef<mlir::Value> xs);

  /// Takes the gradients of ys; those of xs are in gradientOf() then.
  void run(llvm::ArrayRef<mlir::Value> ys, llvm::ArrayRef<Tensor> gradients);
  /// Undefined if it is zero.
  Tensor gradientOf(mlir::Value x) const { return gradients.lookup(x); }

private:
  Trace &trace;
  llvm::DenseSet<mlir::Value> varying; // floats that depend on xs
  std::vector<mlir::Operation *> path; // those that give the varying ones, in order
  llvm::DenseMap<mlir::Value, Tensor> gradients;

  llvm::DenseMap<const Region *, mlir::IRMapping> again; // what regions have become, see Trace::remat

  void add(mlir::Value value, const Tensor &gradient);
  Tensor gradientOrZeros(mlir::Value value) const;
  void differentiate(mlir::Operation *op);
  /// The value as the rule of `op` reads it: computed again if the op is of a region.
  mlir::Value computedAgain(mlir::Operation *op, mlir::Value value);
  mlir::IRMapping computeAgain(const Region &region);
  void differentiateLoop(ir::ScanOp loop);
  void differentiateBranches(ir::IfOp branches);
  void differentiateCustom(mlir::Operation *op, const Custom &custom);
  /// What the results of an op depend on.
  llvm::SmallVector<mlir::Value> dependencies(mlir::Operation *op) const;
};

} // namespace burin
