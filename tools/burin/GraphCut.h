// Parts of a graph as graphs of their own.
#pragma once
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>
#include <vector>

namespace burin::cli {

struct GraphCut {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<mlir::Value> inputs; // of the whole graph: the arguments of @main
  /// Sizes that none of these shows as a dimension. Each has one more argument, an i8 vector of that length.
  std::vector<std::string> symbols;
};

/// @main computes `outputs` by `ops`, which are in program order; constants come along, what else is used becomes an
/// argument. Everything keeps its place in the source.
GraphCut cutGraph(llvm::ArrayRef<mlir::Operation *> ops, llvm::ArrayRef<mlir::Value> outputs);

/// What a graph computes with: its ops without constants and the terminator.
std::vector<mlir::Operation *> computingOps(mlir::func::FuncOp main);

mlir::func::FuncOp mainOf(mlir::ModuleOp module);

/// "relu at model.onnx:act_3"
std::string opAndPlace(mlir::Operation *op);

} // namespace burin::cli
