// Numbers of twice the precision of f64, as unevaluated sums of two, and the elementary functions of them that those of
// a GPU are made of. Dekker, "A floating-point technique for extending the available precision", 1971; Knuth, The Art
// of Computer Programming, volume 2, 4.2.2. Results have relative errors of about 2^-64, so that what is rounded to f64
// is nearly always the nearest one.
#pragma once
#include "codegen/scalar/Scalar.h"

namespace burin::codegen {

struct DoubleDouble {
  Scalar hi, lo; // |lo| is at most half a unit in the last place of hi

  DoubleDouble(Scalar hi, Scalar lo) : hi(hi), lo(lo) {}
  DoubleDouble(Scalar x) : hi(x), lo(x.constant(0)) {}
  Scalar rounded() const { return hi + lo; }
  /// n / d, beside a computation.
  static DoubleDouble ratio(Scalar like, double n, double d);
  static DoubleDouble constant(Scalar like, double hi, double lo) { return {like.constant(hi), like.constant(lo)}; }
};

/// Of any two numbers.
DoubleDouble sum(Scalar, Scalar);
DoubleDouble product(Scalar, Scalar);
DoubleDouble operator+(DoubleDouble, DoubleDouble);
DoubleDouble operator-(DoubleDouble);
DoubleDouble operator-(DoubleDouble, DoubleDouble);
DoubleDouble operator*(DoubleDouble, DoubleDouble);
DoubleDouble operator/(DoubleDouble, DoubleDouble);
DoubleDouble sqrt(DoubleDouble);
DoubleDouble select(Scalar condition, DoubleDouble, DoubleDouble);
/// Times a power of 2, exactly.
DoubleDouble scaled(DoubleDouble, Scalar power);

/// An integer, |k| < 2^50, as a number and as an i64.
struct Whole {
  Scalar value, bits;
};
Whole nearestInteger(Scalar);
/// 2^k of an i64 in [-1022, 1023].
Scalar powerOfTwoF64(Scalar k);
/// x * 2^k of an i64, |k| < 2200, rounded once where that is a normal number.
Scalar timesPowerOfTwoF64(Scalar x, Scalar k);

/// exp(x) = 2^k (1 + m), k whole, for |x| < 800.
struct ExpParts {
  Scalar k;
  DoubleDouble m;
};
ExpParts expParts(DoubleDouble x);
DoubleDouble expm1(DoubleDouble x); // |x| < 700
/// Of positive normal numbers.
DoubleDouble log(DoubleDouble x);
/// For |x| <= pi / 4.
struct SinCos {
  DoubleDouble sin, cos;
};
SinCos sinCosReduced(DoubleDouble x);
/// Of y / x, both not negative and not both 0.
DoubleDouble atan2Positive(DoubleDouble y, DoubleDouble x);
DoubleDouble piHalf(Scalar like);

} // namespace burin::codegen
