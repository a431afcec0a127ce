// Pooling over computed regions of an image, as in object detectors.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

Values roiAlign(Node &n);

} // namespace burin::onnx
