// Reading graphs: .burin (MLIR bytecode) and .mlir (text).
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>

namespace burin::cli {

/// A context with everything graphs need; problems go to stderr, one short message each.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// nullptr after a message on stderr.
mlir::OwningOpRef<mlir::ModuleOp> readGraph(mlir::MLIRContext &context, const std::string &path);

} // namespace burin::cli
