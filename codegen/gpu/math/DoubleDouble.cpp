#include "codegen/gpu/math/DoubleDouble.h"
#include <cmath>

namespace burin::codegen {

using Pair = DoubleDouble;

DoubleDouble DoubleDouble::ratio(Scalar like, double n, double d) {
  double hi = n / d;
  return constant(like, hi, std::fma(-hi, d, n) / d);
}

/// Sum of x and y, for |x| >= |y| or x = 0.
static Pair ordered(Scalar x, Scalar y) {
  Scalar s = x + y;
  return {s, y - (s - x)};
}
Pair sum(Scalar x, Scalar y) {
  Scalar s = x + y, part = s - x;
  return {s, (x - (s - part)) + (y - part)};
}
Pair product(Scalar x, Scalar y) {
  Scalar p = x * y;
  return {p, fma(x, y, -p)};
}

Pair operator+(Pair x, Pair y) {
  Pair high = sum(x.hi, y.hi), low = sum(x.lo, y.lo);
  Pair s = ordered(high.hi, high.lo + low.hi);
  return ordered(s.hi, s.lo + low.lo);
}
Pair operator-(Pair x) { return {-x.hi, -x.lo}; }
Pair operator-(Pair x, Pair y) { return x + -y; }
Pair operator*(Pair x, Pair y) {
  Pair p = product(x.hi, y.hi);
  return ordered(p.hi, fma(x.lo, y.hi, fma(x.hi, y.lo, p.lo)));
}
Pair operator/(Pair x, Pair y) {
  Scalar first = x.hi / y.hi;
  Pair rest = x - y * Pair(first);
  Scalar second = rest.hi / y.hi;
  rest = rest - y * Pair(second);
  return Pair(ordered(first, second)) + Pair(rest.hi / y.hi);
}
Pair sqrt(Pair x) {
  Scalar root = sqrt(x.hi);
  Pair rest = x - product(root, root);
  Scalar more = rest.hi / (root + root);
  return ordered(root, select(root == 0, root, more));
}
Pair select(Scalar condition, Pair x, Pair y) { return {select(condition, x.hi, y.hi), select(condition, x.lo, y.lo)}; }
Pair scaled(Pair x, Scalar power) { return {x.hi * power, x.lo * power}; }

Whole nearestInteger(Scalar x) {
  constexpr double shift = 0x1.8p52; // adding it rounds to an integer
  Scalar shifted = x + shift;
  return {shifted - shift, shiftRight(shiftLeft(shifted.bitcast(DType::i64), 13), 13)};
}
Scalar powerOfTwoF64(Scalar k) { return shiftLeft(k + 1023, 52).bitcast(DType::f64); }
Scalar timesPowerOfTwoF64(Scalar x, Scalar k) {
  Scalar part = shiftRight(k, 1), half = powerOfTwoF64(part);
  return x * half * powerOfTwoF64(k - part);
}

static Pair ln2(Scalar like) { return Pair::constant(like, 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56); }
Pair piHalf(Scalar like) { return Pair::constant(like, 0x1.921fb54442d18p0, 0x1.1a62633145c07p-54); }

/// The Taylor series sum of c(n) x^n: terms from `pairs` on, whose rounding errors do not matter, in f64, the first
/// ones as pairs.
template <class Coefficient> static Pair series(Pair x, int pairs, int last, Coefficient c) {
  Scalar tail = x.hi.constant(c(last));
  for (int n = last - 1; n >= pairs; --n)
    tail = fma(tail, x.hi, x.hi.constant(c(n)));
  Pair total = tail;
  for (int n = pairs - 1; n >= 0; --n) {
    double d = std::round(1 / c(n));
    total = total * x + Pair::ratio(x.hi, 1, d);
  }
  return total;
}

static double factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

ExpParts expParts(Pair x) {
  Whole k = nearestInteger(x.hi * 0x1.71547652b82fep0);
  Pair r = x - ln2(x.hi) * Pair(k.value) - Pair(k.value * 0x1.7b57a079a1934p-111);
  // (exp(r) - 1) / r
  Pair q = series(r, 5, 17, [](int n) { return 1 / factorial(n + 1); });
  return {k.bits, q * r};
}

Pair expm1(Pair x) {
  ExpParts e = expParts(x);
  Scalar half = powerOfTwoF64(e.k - 1); // not 2^k: 2^1024 overflows
  Pair halved = scaled(e.m, half) + (Pair(half) + Pair(x.hi.constant(-0.5)));
  return scaled(halved, x.hi.constant(2));
}

Pair log(Pair x) {
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)); log(m) = 2 atanh(s), s = (m - 1) / (m + 1).
  Scalar bits = x.hi.bitcast(DType::i64), sqrtHalf = x.hi.constant(M_SQRT1_2).bitcast(DType::i64);
  Scalar e = shiftRight(bits - sqrtHalf, 52);
  Scalar part = shiftRight(-e, 1); // two factors, because 2^-e may not be a normal number
  Pair m = scaled(scaled(x, powerOfTwoF64(part)), powerOfTwoF64(-e - part));
  Pair one = x.hi.constant(1), s = (m - one) / (m + one), t = s * s;
  Pair q = series(t, 3, 15, [](int n) { return 1. / (2 * n + 1); });
  Scalar number = e.to(DType::f64);
  return ln2(x.hi) * Pair(number) + scaled(s * q, x.hi.constant(2));
}

SinCos sinCosReduced(Pair x) {
  Pair t = -(x * x);
  Pair sine = series(t, 4, 12, [](int n) { return 1 / factorial(2 * n + 1); });
  Pair cosine = series(t, 4, 12, [](int n) { return 1 / factorial(2 * n); });
  return {sine * x, cosine};
}

Pair atan2Positive(Pair y, Pair x) {
  Scalar isSteep = y.hi > x.hi;
  Pair ratio = select(isSteep, x, y) / select(isSteep, y, x); // at most 1
  // An approximation by halving the angle twice, then a correction by the exact deviation of its direction.
  Scalar rough = ratio.hi;
  for (int i = 0; i < 2; ++i)
    rough = rough / (sqrt(fma(rough, rough, rough.constant(1))) + 1);
  Scalar t = rough * rough, q = t.constant(-1. / 15);
  for (int n = 13; n > 0; n -= 2)
    q = fma(q, t, t.constant((n / 2 % 2 ? -1. : 1.) / n));
  Scalar angle = 4 * rough * q;
  SinCos at = sinCosReduced(angle);
  Pair off = (ratio * at.cos - at.sin) / (at.cos + ratio * at.sin);
  Pair result = Pair(angle) + off;
  return select(isSteep, piHalf(y.hi) - result, result);
}

} // namespace burin::codegen
