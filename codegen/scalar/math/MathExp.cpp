// exp and its relatives in f32. exp(x) = 2^k exp(r) with k = round(x / ln 2), r = x - k ln 2 taken from x in two steps
// (Cody and Waite), and a minimax polynomial for exp(r); coefficients by MathMinimax.py.
#include "codegen/scalar/math/MathParts.h"
#include <cmath>

namespace burin::codegen {

static constexpr double log2e = 0x1.715476p0;
static constexpr double ln2High = 0x1.62e43p-1, ln2Low = -0x1.05c61p-29; // as f32; k * ln2High is exact in an fma
// exp(r) = 1 + r + r^2 q(r) for |r| <= ln(2) / 2, error 2^-28
static constexpr double expQ[] = {0x1.fffffcp-2, 0x1.555492p-3, 0x1.5558acp-5, 0x1.12397ap-7, 0x1.6a5136p-10};

/// x = k ln 2 + r.
struct Reduced {
  WholeNumber k;
  Scalar r;
};
static Reduced reduced(Scalar x) {
  WholeNumber k = roundedProduct(x, log2e);
  Scalar r = fma(k.value, x.constant(-ln2High), x);
  return {k, fma(k.value, x.constant(-ln2Low), r)};
}

Exponential splitExp(Scalar x) {
  auto [k, r] = reduced(x);
  Scalar mantissa = fma(fma(polynomial(r, expQ), r, r.constant(1)), r, r.constant(1));
  return {mantissa, k};
}

static Scalar joined(Exponential e) { return timesPowerOfTwo(e.mantissa, e.exponent); }

/// exp(x) for results that are rounded to 16 bits. A square, because the approximation has no subnormal results.
static Scalar expFor16Bits(Scalar x) {
  Scalar root = exp2Approximately(x * (log2e / 2));
  return root * root;
}

static Scalar expF32(Scalar x) {
  if (mayApproximate(x))
    return expFor16Bits(x);
  return joined(splitExp(atMost(atLeast(x, -105), 89)));
}

/// Without an upper bound of x, one factor scales the mantissa: powers of two from 2^-152 to 1 are 2^-64 times normal
/// numbers. 2^-64 is a factor of the coefficients. The bits are those of exp.
static Scalar expOfNonPositiveF32(Scalar x) {
  constexpr int bias = 64;
  const double scale = std::ldexp(1.0, -bias);
  auto [k, r] = reduced(atLeast(x, -105));
  llvm::SmallVector<double> q;
  for (double c : expQ)
    q.push_back(c * scale);
  Scalar mantissa = fma(fma(polynomial(r, q), r, r.constant(scale)), r, r.constant(scale));
  return mantissa * powerOfTwo(k.bits + bias);
}

static Scalar expm1F32(Scalar x) {
  auto [k, r] = reduced(atMost(atLeast(x, -18), 89));
  Scalar p = fma(polynomial(r, expQ) * r, r, r); // exp(r) - 1
  // 2^k (p + 1) - 1, halved because 2^128 is no f32.
  Scalar halfScale = powerOfTwo(k.bits - 1);
  Scalar result = 2 * fma(p, halfScale, halfScale - 0.5);
  return select(abs(x) < 0x1p-25, x, result);
}

/// exp(-|x|), with |x| clamped to 125; it is below all f32 from 105 on.
static Exponential expOfMinus(Scalar x) { return splitExp(atLeast(-abs(x), -125)); }

static Scalar sigmoidF32(Scalar x, Scalar e) {
  // sigmoid is e / (1 + e) below 0 and 1 / (1 + e) above. Both are written n - n e / (1 + e), where the rounding errors
  // of the sum and the quotient only affect a small correction.
  Scalar n = select(x < 0, e, x.constant(1));
  return fma(-n, quotient(e, e + 1), n);
}

/// x sigmoid(x). Below -80 that is x exp(x). exp(x) may be denormal, with few digits, where the product is not, so x is
/// multiplied by its mantissa. Below -200 the result is -0, and NaN for -infinity.
static Scalar siluF32(Scalar x) {
  if (mayApproximate(x))
    return x * sigmoidF32(x, expFor16Bits(-abs(x)));
  Exponential e = expOfMinus(x);
  Scalar small = timesPowerOfTwo(x * e.mantissa, e.exponent);
  return select((x < -80) & (x > -200), small, x * sigmoidF32(x, joined(e)));
}

static Scalar tanhF32(Scalar x) {
  Scalar a = abs(x);
  // Near 0: a + a t q(t) with t = a^2, error 2^-28.
  static constexpr double q[] = {-0x1.55553ep-2, 0x1.1109bep-3, -0x1.b89abap-5, 0x1.54c3c2p-6, -0x1.828776p-8};
  Scalar t = a * a, small = fma(a * t, polynomial(t, q), a);
  // Elsewhere: 1 - 2 / (exp(2 a) + 1), which rounds to 1 from 9.02 on.
  auto onePlusExp = [&] {
    if (mayApproximate(x))
      return 1 + exp2Approximately(2 * log2e * atMost(a, 10));
    Exponential e = splitExp(2 * atMost(a, 10));
    return fma(e.mantissa, powerOfTwo(e.exponent.bits), x.constant(1));
  };
  Scalar large = 1 - quotient(x.constant(2), onePlusExp());
  return copysign(select(a < 0.6, small, large), x);
}

static bool isF32(Scalar x) { return x.dtype() == DType::f32; }
Scalar exp(Scalar x) { return isF32(x) ? expF32(x) : callLibm("exp", {x}); }
Scalar expOfNonPositive(Scalar x) {
  return isF32(x) && isOnGpu(x) && !mayApproximate(x) ? expOfNonPositiveF32(x) : exp(x);
}
Scalar expm1(Scalar x) { return isF32(x) ? expm1F32(x) : callLibm("expm1", {x}); }
Scalar tanh(Scalar x) { return isF32(x) ? tanhF32(x) : callLibm("tanh", {x}); }

Scalar sigmoid(Scalar x) {
  if (isF32(x))
    return sigmoidF32(x, mayApproximate(x) ? expFor16Bits(-abs(x)) : joined(expOfMinus(x)));
  Scalar e = exp(-abs(x)); // in (0, 1]: no overflow, and full relative accuracy for negative x
  return select(x < 0, e, x.constant(1)) / (1 + e);
}

Scalar silu(Scalar x) { return isF32(x) ? siluF32(x) : x * sigmoid(x); }

} // namespace burin::codegen
