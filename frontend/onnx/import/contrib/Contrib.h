// What the ops of the domain com.microsoft share.
#pragma once
#include "frontend/onnx/import/neural/Heads.h"

namespace burin::onnx {

/// The first output of the node as if it were of a standard op, whose inputs and attributes it has.
Tensor standard(Node &n, std::string_view op);

} // namespace burin::onnx
