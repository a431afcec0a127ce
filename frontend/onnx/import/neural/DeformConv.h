// DeformConv: a convolution whose windows read at positions that are data.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

Values deformConv(Node &n);

} // namespace burin::onnx
