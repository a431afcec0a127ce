// Double-double arithmetic: unevaluated sums of two f64, and the elementary functions of them that the GPU's math
// functions are built from. Dekker, "A floating-point technique for extending the available precision", 1971; Knuth,
// The Art of Computer Programming, volume 2, 4.2.2. Relative errors are about 2^-64, so that rounding to f64 nearly
// always gives the correctly rounded result.
#pragma once
#include "codegen/scalar/base/Scalar.h"

namespace burin::codegen {

struct DoubleDouble {
  Scalar hi, lo; // |lo| is at most half a unit in the last place of hi

  DoubleDouble(Scalar hi, Scalar lo) : hi(hi), lo(lo) {}
  DoubleDouble(Scalar x) : hi(x), lo(x.constant(0)) {}
  Scalar rounded() const { return hi + lo; }
  /// The constant n / d.
  static DoubleDouble ratio(Scalar like, double n, double d);
  static DoubleDouble constant(Scalar like, double hi, double lo) { return {like.constant(hi), like.constant(lo)}; }
};

/// The exact sum and product of two f64.
DoubleDouble sum(Scalar, Scalar);
DoubleDouble product(Scalar, Scalar);
DoubleDouble operator+(DoubleDouble, DoubleDouble);
DoubleDouble operator-(DoubleDouble);
DoubleDouble operator-(DoubleDouble, DoubleDouble);
DoubleDouble operator*(DoubleDouble, DoubleDouble);
DoubleDouble operator/(DoubleDouble, DoubleDouble);
DoubleDouble sqrt(DoubleDouble);
DoubleDouble select(Scalar condition, DoubleDouble, DoubleDouble);
/// Multiplies by a power of 2, exactly.
DoubleDouble scaled(DoubleDouble, Scalar power);

/// An integer, |k| < 2^50, as f64 and as i64.
struct Whole {
  Scalar value, bits;
};
Whole nearestInteger(Scalar);
/// 2^k for an i64 in [-1022, 1023].
Scalar powerOfTwoF64(Scalar k);
/// x * 2^k for an i64, |k| < 2200; rounded once if the result is a normal number.
Scalar timesPowerOfTwoF64(Scalar x, Scalar k);

/// exp(x) = 2^k (1 + m) with an integer k, for |x| < 800.
struct ExpParts {
  Scalar k;
  DoubleDouble m;
};
ExpParts expParts(DoubleDouble x);
DoubleDouble expm1(DoubleDouble x); // |x| < 700
/// Logarithm of positive normal numbers.
DoubleDouble log(DoubleDouble x);
/// Sine and cosine for |x| <= pi / 4.
struct SinCos {
  DoubleDouble sin, cos;
};
SinCos sinCosReduced(DoubleDouble x);
/// Angle of (x, y); both non-negative and not both 0.
DoubleDouble atan2Positive(DoubleDouble y, DoubleDouble x);
DoubleDouble piHalf(Scalar like);

} // namespace burin::codegen
