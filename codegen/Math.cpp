#include "codegen/Math.h"
#include <cmath>

namespace burin::codegen {

#define BURIN_LIBM(name)                                                                                               \
  Scalar name(Scalar x) { return callLibm(#name, {x}); }
BURIN_LIBM(exp)
BURIN_LIBM(expm1)
BURIN_LIBM(log)
BURIN_LIBM(log1p)
BURIN_LIBM(sin)
BURIN_LIBM(cos)
BURIN_LIBM(tan)
BURIN_LIBM(asin)
BURIN_LIBM(acos)
BURIN_LIBM(atan)
BURIN_LIBM(sinh)
BURIN_LIBM(cosh)
BURIN_LIBM(tanh)
BURIN_LIBM(asinh)
BURIN_LIBM(acosh)
BURIN_LIBM(atanh)
BURIN_LIBM(erf)
#undef BURIN_LIBM

Scalar atan2(Scalar y, Scalar x) { return callLibm("atan2", {y, x}); }

// From exp(-|x|), which never overflows: below 0 the result is as small as exp(x), denormals included.
Scalar sigmoid(Scalar x) {
  Scalar e = exp(-abs(x));
  return select(x < 0, e, x.constant(1)) / (1 + e);
}

Scalar gelu(Scalar x, bool tanhForm) {
  Scalar phi =
      tanhForm ? 0.5 * (1 + tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) : 0.5 * (1 + erf(x * M_SQRT1_2));
  // Far below 0, phi is 0; the clamp keeps -inf from making it NaN.
  return select(x < -40, x.constant(-40), x) * phi;
}

Scalar softplus(Scalar x, double beta, double threshold) {
  Scalar z = x * beta;
  // log(1 + exp(z)) without overflow for any threshold.
  Scalar smooth = select(z > 0, z, z.constant(0)) + log1p(exp(-abs(z)));
  return select(z > threshold, x, smooth / beta);
}

} // namespace burin::codegen
