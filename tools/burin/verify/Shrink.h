// Reduces a graph while a predicate stays true.
#pragma once
#include "burin/dim.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tools/burin/verify/GraphRun.h"

namespace burin::cli {

/// Removes ops, outputs and constants and reduces sizes as long as `fails` returns true. The results of a removed op
/// become inputs, and symbolic sizes become the numbers in `sizes`. The method is delta debugging: the result is
/// 1-minimal, that is, no single op can be removed from it.
mlir::OwningOpRef<mlir::ModuleOp> shrink(mlir::OwningOpRef<mlir::ModuleOp> graph, const Sizes &sizes,
                                         llvm::function_ref<bool(mlir::ModuleOp)> fails);

/// Returns the graph with the sizes that the callback gives, which must not exceed the old ones, or null if the ops do
/// not accept them. Constants keep their first elements.
mlir::OwningOpRef<mlir::ModuleOp> resized(mlir::ModuleOp graph, llvm::function_ref<Dim(const Dim &)> change);

} // namespace burin::cli
