// Draws graphs with graphviz.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace burin::cli {

/// Returns @main in the DOT language: its kernels, or its ops if kernels are not formed yet, with source lines, and the
/// shapes of the values on the edges.
std::string drawDot(mlir::ModuleOp module);

/// Renders DOT text as SVG into `svg`. Returns kOk, or another exit code after a message.
int renderSvg(const std::string &dot, std::string &svg);

} // namespace burin::cli
