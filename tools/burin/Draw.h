// Pictures of graphs, drawn by graphviz.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace burin::cli {

/// @main in graphviz's language: ops, or kernels once there are some, with their source lines and the shapes between.
std::string drawDot(mlir::ModuleOp module);

/// The picture of a dot text as SVG, in `svg`. kOk, or another exit code after a message.
int renderSvg(const std::string &dot, std::string &svg);

} // namespace burin::cli
