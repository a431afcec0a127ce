// Functions that call libm for every element type, and compositions of other functions.
#include "codegen/scalar/math/Math.h"

namespace burin::codegen {

#define BURIN_LIBM(name)                                                                                               \
  Scalar name(Scalar x) { return callLibm(#name, {x}); }
BURIN_LIBM(tan)
BURIN_LIBM(asin)
BURIN_LIBM(acos)
BURIN_LIBM(atan)
BURIN_LIBM(sinh)
BURIN_LIBM(cosh)
BURIN_LIBM(asinh)
BURIN_LIBM(acosh)
BURIN_LIBM(atanh)
#undef BURIN_LIBM

Scalar atan2(Scalar y, Scalar x) { return callLibm("atan2", {y, x}); }

Scalar softplus(Scalar x, double beta, double threshold) {
  Scalar z = x * beta;
  // log(1 + exp(z)) without overflow for any threshold.
  Scalar smooth = select(z > 0, z, z.constant(0)) + log1p(exp(-abs(z)));
  return select(z > threshold, x, smooth / beta);
}

} // namespace burin::codegen
