// Makes a graph as small as it can be while something stays true of it.
#pragma once
#include "burin/dim.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tools/burin/GraphRun.h"

namespace burin::cli {

/// Leaves out ops, outputs and constants, and makes sizes smaller, as long as `fails`. What a removed op computed
/// becomes an input, and symbolic sizes the numbers in `sizes`. Delta debugging: the result has no op that can be left
/// out alone.
mlir::OwningOpRef<mlir::ModuleOp> shrink(mlir::OwningOpRef<mlir::ModuleOp> graph, const Sizes &sizes,
                                         llvm::function_ref<bool(mlir::ModuleOp)> fails);

/// The graph with other sizes, which are not larger; null if ops then do not fit together. Constants keep their first
/// elements.
mlir::OwningOpRef<mlir::ModuleOp> resized(mlir::ModuleOp graph, llvm::function_ref<Dim(const Dim &)> change);

} // namespace burin::cli
