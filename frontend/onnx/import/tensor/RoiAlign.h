// Pooling over regions of an image that are data, as detectors do behind their proposals.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

Values roiAlign(Node &n);

} // namespace burin::onnx
