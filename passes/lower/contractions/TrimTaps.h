// Taps of convolutions that only see padding.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// Removes taps that only see padding: half of the bytes of the filters in deep networks with small images.
void trimTaps(ir::ConvOp);

} // namespace burin::passes
