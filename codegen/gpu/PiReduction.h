// Arguments of sine and cosine, of any size.
#pragma once
#include "codegen/gpu/DoubleDouble.h"

namespace burin::codegen {

/// x = (4 n + quadrant) pi / 2 + rest for some whole n; |rest| is at most pi / 4 and a little.
struct PiReduced {
  Scalar quadrant; // an i64 whose lowest two bits count
  DoubleDouble rest;
};
PiReduced reducedByPiHalf(Scalar x);

} // namespace burin::codegen
