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
  Scalar large = fma(-e.mantissa, powerOfTwo(e.exponent.bits), x.constant(1));
  return copysign(select(a < 0.9, small, large), x);
}

Scalar erf(Scalar x) { return x.dtype() == DType::f32 ? erfF32(x) : callLibm("erf", {x}); }

/// Above 0 what is missing from x, below 0 all there is: a Phi(-a) with a = |x|. Nothing cancels.
static Scalar geluF32(Scalar x) {
  // erfc(a / sqrt(2)) = 2^-(a q(a)), error 2^-25.9; 2^-r = 1 + r p(r) for |r| <= 1/2, error 2^-28
  static constexpr double q[] = {0x1.26aed4p+0,  0x1.d63ac4p-2,  0x1.ae0a30p-5,   -0x1.cecdb8p-8,
                                 0x1.1c9100p-13, 0x1.878c0ap-13, -0x1.4b438ep-15, 0x1.7dc522p-19};
  static constexpr double p[] = {-0x1.62e430p-1, 0x1.ebfbdcp-3,   -0x1.c6af7ap-5,
                                 0x1.3b2dd2p-7,  -0x1.5f0948p-10, 0x1.417a70p-13};
  // Phi(-a) = 2^(k - r) with k = round(-a q(a)) - 1, which the low bits of a sum are, see roundedProduct.
  constexpr double shift = 0x1.8p23 - 1;
  Scalar a = abs(x), exponent = atMost(a * polynomialInHalves(a, q), 124);
  Scalar shifted = shift - exponent, r = exponent + (shifted - shift);
  Scalar mantissa = fma(polynomialInHalves(r, p), r, x.constant(1));
  Scalar phi = (mantissa.bitcast(DType::i32) + shiftLeft(shifted.bitcast(DType::i32), 23)).bitcast(DType::f32);
  Scalar above = atLeast(x, -0.0); // what is no tail; below 0 it is -0, as 0 - 0 would be +0
  return select(a <= 14, fma(-a, phi, above), above);
}

Scalar gelu(Scalar x, bool tanhForm) {
  if (!tanhForm && x.dtype() == DType::f32)
    return geluF32(x);
  Scalar phi =
      tanhForm ? 0.5 * (1 + tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) : 0.5 * (1 + erf(x * M_SQRT1_2));
  // Far below 0, phi is 0; the bound keeps -inf from making it NaN.
  return atLeast(x, -40) * phi;
}

} // namespace burin::codegen
