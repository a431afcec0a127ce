// log and log1p in f32: x = 2^e m with m in [sqrt(1/2), sqrt(2)), log(x) = e ln 2 + log1p(m - 1), the latter a minimax
// polynomial; coefficients by MathMinimax.py.
#include "codegen/scalar/math/MathParts.h"
#include <cmath>

namespace burin::codegen {

static constexpr double ln2 = 0x1.62e43p-1; // ln 2 rounded to f32; the rounding error is 1/32 of its last place
static constexpr double sqrtHalfBits = 0x3f3504f3;

/// log(1 + r) = r + r^2 q(r) for 1 + r in [sqrt(1/2), sqrt(2)), error 2^-28.
static Scalar log1pReduced(Scalar r) {
  static constexpr double q[] = {-0x1.fffff8p-2, 0x1.55555p-2,   -0x1.00043p-2, 0x1.99a3dap-3, -0x1.5425f4p-3,
                                 0x1.2274f6p-3,  -0x1.0f4642p-3, 0x1.0830dp-3,  -0x1.37a6f6p-4};
  return fma(r * r, polynomial(r, q), r);
}

/// `result` for positive finite arguments; -inf at `pole`, NaN below it, and infinities and NaN as they are.
static Scalar withSpecials(Scalar result, Scalar x, double pole) {
  result = select(x < INFINITY, result, x); // inf and NaN
  return select(x <= pole, select(x == pole, x.constant(-INFINITY), x.constant(NAN)), result);
}

/// log(x) + more * ln 2 for a positive, finite x that is not subnormal.
static Scalar logOfPositive(Scalar x, Scalar more) {
  Scalar bits = x.bitcast(DType::i32) - sqrtHalfBits;
  Scalar exponent = shiftRight(bits, 23);
  Scalar m = ((bits & bits.constant(0x7fffff)) + sqrtHalfBits).bitcast(DType::f32);
  return fma(exponent.to(DType::f32) + more, x.constant(ln2), log1pReduced(m - 1));
}

static Scalar logF32(Scalar x) {
  Scalar isDenormal = x < 0x1p-126;
  Scalar normal = select(isDenormal, x * 0x1p23, x);
  return withSpecials(logOfPositive(normal, select(isDenormal, x.constant(-23), x.constant(0))), x, 0);
}

static Scalar log1pF32(Scalar x) {
  Scalar bits = (1 + x).bitcast(DType::i32) - sqrtHalfBits;
  Scalar exponent = shiftRight(bits, 23);
  // m - 1 = (1 + x) / 2^e - 1 = x / 2^e + (1 / 2^e - 1), rounded once. Scaled by 4, because 2^-128 is denormal.
  Scalar scale = powerOfTwo(2 - exponent);
  Scalar r = 0.25 * fma(x, scale, scale - 4);
  Scalar result = fma(exponent.to(DType::f32), x.constant(ln2), log1pReduced(r));
  return withSpecials(select(x == 0, x, result), x, -1); // keeps the sign of -0
}

Scalar log(Scalar x) { return x.dtype() == DType::f32 ? logF32(x) : callLibm("log", {x}); }
Scalar logOfNormal(Scalar x) { return x.dtype() == DType::f32 ? logOfPositive(x, x.constant(0)) : log(x); }
Scalar log1p(Scalar x) { return x.dtype() == DType::f32 ? log1pF32(x) : callLibm("log1p", {x}); }

} // namespace burin::codegen
