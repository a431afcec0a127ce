// Extracts parts of a graph as modules of their own.
#pragma once
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>
#include <vector>

namespace burin::cli {

struct GraphCut {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<mlir::Value> inputs; // values of the original graph that became the arguments of @main
  /// Symbolic sizes that no dimension of `inputs` shows. For each, @main has an additional i8 vector argument of that
  /// length.
  std::vector<std::string> symbols;
};

/// Returns a module whose @main computes `outputs` by `ops`, which must be in program order. Constants that they use
/// are copied; other used values become arguments. Source locations are kept.
GraphCut cutGraph(llvm::ArrayRef<mlir::Operation *> ops, llvm::ArrayRef<mlir::Value> outputs);

/// Returns the ops of a graph, without constants and the terminator.
std::vector<mlir::Operation *> computingOps(mlir::func::FuncOp main);

mlir::func::FuncOp mainOf(mlir::ModuleOp module);

/// "relu at model.onnx:act_3"
std::string opAndPlace(mlir::Operation *op);

} // namespace burin::cli
