// erf in f32, and gelu on it; coefficients by MathMinimax.py.
#include "codegen/MathParts.h"
#include <cmath>

namespace burin::codegen {

static Scalar erfF32(Scalar x) {
  // Near 0, a + a q(a^2), error 2^-26; else 1 - exp(-g(a)), error 2^-29, which is 1 from 3.92 on.
  static constexpr double q[] = {0x1.06eba6p-3,  -0x1.8126f4p-2, 0x1.ce1d3cp-4,
                                 -0x1.b6b806p-6, 0x1.485414p-8,  -0x1.3ed096p-11};
  static constexpr double g[] = {0x1.5cf722p-13, 0x1.20b756p0,  0x1.4621aap-1,  0x1.aa73aap-4,
                                 -0x1.6d9e1cp-6, 0x1.91d008p-9, -0x1.9fb8c8p-13};
  Scalar a = abs(x), small = fma(a, polynomial(a * a, q), a);
  Exponential e = splitExp(-polynomial(atMost(a, 3.95), g));
  Scalar large = fma(-e.mantissa, powerOfTwo(e.exponent), x.constant(1));
  return copysign(select(a < 0.9, small, large), x);
}

Scalar erf(Scalar x) { return x.dtype() == DType::f32 ? erfF32(x) : callLibm("erf", {x}); }

Scalar gelu(Scalar x, bool tanhForm) {
  Scalar phi =
      tanhForm ? 0.5 * (1 + tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) : 0.5 * (1 + erf(x * M_SQRT1_2));
  // Far below 0, phi is 0; the bound keeps -inf from making it NaN.
  return atLeast(x, -40) * phi;
}

} // namespace burin::codegen
