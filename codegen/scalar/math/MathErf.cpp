// erf in f32, and gelu based on it; coefficients by MathMinimax.py.
#include "codegen/scalar/math/MathParts.h"
#include <cmath>

namespace burin::codegen {

static Scalar erfF32(Scalar x) {
  // Near 0: a + a q(a^2), error 2^-26. Elsewhere: 1 - exp(-g(a)), error 2^-29, which rounds to 1 from 3.92 on.
  static constexpr double q[] = {0x1.06eba6p-3,  -0x1.8126f4p-2, 0x1.ce1d3cp-4,
                                 -0x1.b6b806p-6, 0x1.485414p-8,  -0x1.3ed096p-11};
  static constexpr double g[] = {0x1.5cf722p-13, 0x1.20b756p0,  0x1.4621aap-1,  0x1.aa73aap-4,
                                 -0x1.6d9e1cp-6, 0x1.91d008p-9, -0x1.9fb8c8p-13};
  Scalar a = abs(x), small = fma(a, polynomial(a * a, q), a);
  Scalar exponent = -polynomial(atMost(a, 3.95), g);
  auto oneMinusExp = [&] {
    if (mayApproximate(x))
      return 1 - exp2Approximately(exponent * M_LOG2E);
    Exponential e = splitExp(exponent);
    return fma(-e.mantissa, powerOfTwo(e.exponent.bits), x.constant(1));
  };
  Scalar large = oneMinusExp();
  return copysign(select(a < 0.9, small, large), x);
}

Scalar erf(Scalar x) { return x.dtype() == DType::f32 ? erfF32(x) : callLibm("erf", {x}); }

/// gelu for GPUs, which have no table in a register: Phi(-a) is 2 to the power of a polynomial, and near 0, where 1 -
/// Phi(-a) needs it to be accurate, another polynomial. From 12.8 on the power is 0.
static Scalar geluOnGpu(Scalar x) {
  // log2(Phi(-a)) on [0, 5.9]: errors that make Phi(-a) wrong by 2^-17; on [1.2, 3] 2^-24, up to 5.9 2^-19
  static constexpr double coarse[] = {-0x1.ffff86p-1,  -0x1.26ba00p+0, -0x1.d553e4p-2,  -0x1.bbde94p-5, 0x1.1c35a6p-7,
                                      -0x1.04b7b2p-10, 0x1.3a8744p-14, -0x1.b6a5d6p-19, 0x1.0840f2p-24};
  static constexpr double fine[] = {-0x1.ffcc2cp-1,  -0x1.271fcep+0, -0x1.d2dcaep-2,  -0x1.cb8c6cp-5, 0x1.38ab2cp-7,
                                    -0x1.42956ap-10, 0x1.dd202ap-14, -0x1.d62110p-18, 0x1.111e98p-22, -0x1.186a42p-28};
  // Phi(-a) = 1/2 + a q(a^2) for a < 1.3, error 2^-29
  static constexpr double q[] = {-0x1.988454p-2,  0x1.105866p-4,  -0x1.46d68ep-7, 0x1.379b04p-10,
                                 -0x1.e8bb2cp-14, 0x1.46bfc8p-17, -0x1.3f8da6p-21};
  Scalar a = atMost(abs(x), 13), above = atLeast(x, -0.0);
  if (mayApproximate(x))
    return fma(-a, exp2Approximately(polynomial(a, coarse)), above);
  Scalar far = exp2Approximately(polynomial(a, fine)), near = fma(a, polynomial(a * a, q), x.constant(.5));
  return fma(-a, select(a < 1.3, near, far), above);
}

/// gelu(x) = max(x, 0) - a Phi(-a) with a = |x|, without cancellation: above 0 the second term is the small correction
/// to x, below 0 it is the whole result. Phi(-a) is a polynomial in the distance of a from the nearest multiple of a
/// step, and 0 from 5.89 on.
static Scalar geluF32(Scalar x) {
  if (isOnGpu(x))
    return geluOnGpu(x);
  constexpr double step = 0.40625;
  // Phi(-a): relative error 2^-32 (small a) to 2^-13 (large a), absolute error at most 2^-26
  static constexpr float phi[6][16] = {
      {0x1.000000p-1, 0x1.5e7e82p-2, 0x1.aa803cp-3, 0x1.c8944cp-4, 0x1.aaa65ap-5, 0x1.59f1f6p-6, 0x1.e49ce6p-8,
       0x1.2432ecp-9, 0x1.2e8708p-11, 0x1.0c5d4ap-13, 0x1.9744aep-16, 0x1.08007ep-18, 0x1.2415bcp-21, 0x1.138a62p-24,
       0x1.baf4c8p-28, 0},
      {-0x1.988452p-2, -0x1.7828dep-2, -0x1.25ab66p-2, -0x1.84c6cap-3, -0x1.b46176p-4, -0x1.9f4b40p-5, -0x1.4f18c8p-6,
       -0x1.ca7fe0p-8, -0x1.09f350p-9, -0x1.05961ap-11, -0x1.b44b90p-14, -0x1.347c52p-16, -0x1.71dbdcp-19,
       -0x1.77f7b4p-22, -0x1.44058ep-25, 0},
      {-0x1.13a6f2p-20, 0x1.319ea6p-4, 0x1.dd33a2p-4, 0x1.d9d0bcp-4, 0x1.62907ep-4, 0x1.a5cadap-5, 0x1.98688ep-6,
       0x1.45f706p-7, 0x1.b02662p-9, 0x1.de26cap-11, 0x1.bb0046p-13, 0x1.587dc6p-15, 0x1.c27a40p-18, 0x1.eff206p-21,
       0x1.cc2890p-24, 0},
      {0x1.106b5ep-4, 0x1.a2bba2p-5, 0x1.0a1a9ap-6, -0x1.f72170p-7, -0x1.dd4f0ep-6, -0x1.b0b59cp-6, -0x1.13f508p-6,
       -0x1.0ec8eap-7, -0x1.a7f4d0p-9, -0x1.0dc2c6p-10, -0x1.1a230ep-12, -0x1.e87e2ap-15, -0x1.5fc2dcp-17,
       -0x1.a6e2bcp-20, -0x1.a981fap-23, 0},
      {-0x1.1b1178p-13, -0x1.1e156ep-6, -0x1.714de0p-6, -0x1.dc48c4p-7, -0x1.5cdb3cp-9, 0x1.377d30p-8, 0x1.8de9a0p-8,
       0x1.144d2ap-8, 0x1.11d5f2p-9, 0x1.a1e0f0p-11, 0x1.fb7ad6p-13, 0x1.f352fap-15, 0x1.926f60p-17, 0x1.0b9dd8p-19,
       0x1.272b78p-22, 0},
      {-0x1.3a46eep-7, -0x1.910886p-8, 0x1.4ed1b8p-10, 0x1.7b493ap-8, 0x1.559910p-8, 0x1.01bac4p-9, -0x1.e47d98p-12,
       -0x1.2d3786p-10, -0x1.bde7d8p-11, -0x1.b04bbcp-12, -0x1.37713cp-13, -0x1.5e1d7cp-15, -0x1.3a9b9ep-17,
       -0x1.ca9874p-20, -0x1.1199d8p-22, 0}};
  Scalar a = atMost(abs(x), 15 * step);
  WholeNumber k = roundedProduct(a, 1 / step);
  Scalar r = fma(k.value, x.constant(-step), a), tail = lookup(k.bits, phi[5]);
  for (int i = 4; i >= 0; --i)
    tail = fma(tail, r, lookup(k.bits, phi[i]));
  Scalar above = atLeast(x, -0.0); // max(x, 0), but -0 for negative x, so that a result of zero has the sign of x
  return fma(-a, tail, above);
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
