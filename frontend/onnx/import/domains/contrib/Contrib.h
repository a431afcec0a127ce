// Helpers of the ops of the domain com.microsoft.
#pragma once
#include "frontend/onnx/import/neural/Heads.h"

namespace burin::onnx {

/// The first output of the standard op `op` with the inputs and attributes of this node.
Tensor standard(Node &n, std::string_view op);

} // namespace burin::onnx
