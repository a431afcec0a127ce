// Argument reduction of sine and cosine for arguments of any size.
#pragma once
#include "codegen/gpu/math/DoubleDouble.h"

namespace burin::codegen {

/// x = (4 n + quadrant) pi / 2 + rest for an integer n; |rest| is at most slightly larger than pi / 4.
struct PiReduced {
  Scalar quadrant; // i64; only the lowest two bits are significant
  DoubleDouble rest;
};
PiReduced reducedByPiHalf(Scalar x);

} // namespace burin::codegen
