// Imports DeformConv: a convolution that samples its input at positions given by an offset tensor.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

Values deformConv(Node &n);

} // namespace burin::onnx
