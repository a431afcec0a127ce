// sin and cos in f32: x = k pi/2 + r with r in [-pi/4, pi/4], subtracted in three steps (Cody and Waite), a minimax
// polynomial for each function of r, selected by the quadrant k mod 4; coefficients by MathMinimax.py.
#include "codegen/scalar/math/MathParts.h"

namespace burin::codegen {

// pi/2 as the sum of three f32. Up to the bound below, k times the first part is exact in an fma, and the error of the
// three-part sum stays below the accuracy of the polynomials.
static constexpr double piHalf[] = {0x1.921fb6p0, -0x1.777a5cp-25, -0x1.ee59dap-50};
static constexpr double reductionBound = 0x1p17;

/// sin(a + shift pi/2) for a >= 0.
static Scalar sinShifted(Scalar a, int shift) {
  static constexpr double s[] = {-0x1.555544p-3, 0x1.1106c6p-7, -0x1.991c58p-13};          // error 2^-28
  static constexpr double c[] = {-0x1p-1, 0x1.55554ap-5, -0x1.6c0c1cp-10, 0x1.99e1d8p-16}; // error 2^-33
  WholeNumber k = roundedProduct(a, 0x1.45f306p-1);
  Scalar r = a;
  for (double part : piHalf)
    r = fma(k.value, a.constant(-part), r);
  Scalar t = r * r;
  Scalar sine = fma(r * t, polynomial(t, s), r), cosine = fma(t, polynomial(t, c), t.constant(1));
  Scalar quadrant = shift ? k.bits + shift : k.bits;
  Scalar value = select((quadrant & quadrant.constant(1)) == 0, sine, cosine);
  Scalar sign = shiftLeft(quadrant & quadrant.constant(2), 30);
  return (value.bitcast(DType::i32) ^ sign).bitcast(DType::f32);
}

static Scalar sinF32(Scalar x) {
  Scalar a = abs(x);
  Scalar signOfX = x.bitcast(DType::i32) & x.bitcast(DType::i32).constant(INT32_MIN);
  Scalar fast = (sinShifted(a, 0).bitcast(DType::i32) ^ signOfX).bitcast(DType::f32);
  return exceptWhere(a > reductionBound, fast, "sin", {x});
}

static Scalar cosF32(Scalar x) {
  Scalar a = abs(x);
  return exceptWhere(a > reductionBound, sinShifted(a, 1), "cos", {x});
}

Scalar sin(Scalar x) { return x.dtype() == DType::f32 ? sinF32(x) : callLibm("sin", {x}); }
Scalar cos(Scalar x) { return x.dtype() == DType::f32 ? cosF32(x) : callLibm("cos", {x}); }

} // namespace burin::codegen
