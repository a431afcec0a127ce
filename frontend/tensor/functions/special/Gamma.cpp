// The logarithm of the gamma function and its derivatives.
#include "burin/tensor/creation.h"
#include "burin/tensor/math/special.h"
#include "frontend/tensor/functions/special/Coefficients.h"
#include "frontend/tensor/functions/special/Series.h"
#include <cmath>
#include <limits>
#include <numbers>

namespace burin {

using namespace detail;

static constexpr double kPi = std::numbers::pi, kInfinity = std::numeric_limits<double>::infinity();

/// lgamma(a), or where `isNext`, lgamma(1 + a), for a >= 0.
static Tensor logGamma(const Tensor &a, const Tensor &isNext) {
  // Up to 3.5 by that at 2 + d in [1.5, 3.5], which is that at a plus the logarithm of `factor`. d is exact, as the
  // result is nearly proportional to it around 0.
  const Tensor isLow = a < 0.5, isMiddle = a < 1.5;
  const Tensor d = burin::where(isLow, a, burin::where(isMiddle, a - 1.0, a - 2.0));
  const Tensor factor = burin::where(isNext, burin::where(isLow, 1.0 + a, burin::where(isMiddle, 1.0, 1.0 / a)),
                                     burin::where(isLow, a * (1.0 + a), burin::where(isMiddle, a, 1.0)));
  const Tensor near = d * chebyshev(d - 0.5, kLogGamma) - log(factor);
  const Tensor logarithm = log(a), scale = 3.5 / a;
  constexpr double kConstant = 0.41893853320467274178; // log(2 pi) / 2 - 1 / 2
  const Tensor far = (a - 0.5) * (logarithm - 1.0) + kConstant + chebyshev(scale * scale * 2.0 - 1.0, kStirling) / a;
  return burin::where(a < 3.5, near, burin::where(isNext, far + logarithm, far));
}

Tensor lgamma(const Tensor &x, Location where) {
  auto function = [](const Tensor &x) {
    const Tensor a = abs(x), isNegative = x < 0.0, value = logGamma(a, isNegative);
    // gamma(-a) gamma(1 + a) = -pi / sin(pi a)
    const Tensor reflected = log(kPi / abs(sinPi(a))) - value;
    return burin::where(is_inf(x), kInfinity, burin::where(isNegative, reflected, value));
  };
  return computed(x, where, function, [](const Tensor &x, const Tensor &) { return digamma(x); });
}

/// digamma(1 + a) for a in [0, 1], digamma(a) for larger ones.
static Tensor digammaFromOne(const Tensor &a) {
  const Tensor isLow = a < 1.0, y = burin::where(isLow, a + 1.0, a);
  const Tensor near = (y - double(kDigammaRoot) - kDigammaRootRest) * chebyshev(y * 2.0 - 3.0, kDigamma);
  const Tensor scale = 2.0 / y, rest = chebyshev(scale * scale * 2.0 - 1.0, kDigammaRest);
  return burin::where(y <= 2.0, near, log(y) - (rest / y + 0.5) / y);
}

/// cot(pi x), for the relative error also near its zeros at 1/2.
static Tensor cotPi(const Tensor &x) {
  const Tensor r = distanceToInteger(x);
  return sin((0.5 - abs(r)) * kPi) / sin(r * kPi);
}

Tensor digamma(const Tensor &x, Location where) {
  auto function = [](const Tensor &x) {
    const Tensor a = abs(x), inverse = 1.0 / a, value = digammaFromOne(a), isLow = a < 1.0;
    const Tensor positive = burin::where(isLow, value - inverse, value);
    // digamma(-a) = digamma(1 + a) + pi cot(pi a)
    const Tensor negative = burin::where(isLow, value, value + inverse) + cotPi(a) * kPi;
    const Tensor atPole = burin::where(x == 0.0, -1.0 / x, std::numeric_limits<double>::quiet_NaN());
    return burin::where((x <= 0.0) & (round(a) == a), atPole, burin::where(x < 0.0, negative, positive));
  };
  return computed(x, where, function, [](const Tensor &x, const Tensor &) { return polygamma(1, x); });
}

/// x to a power n >= 1.
static Tensor powerOf(const Tensor &x, int64_t n) {
  Tensor result, square = x;
  for (; n > 0; n >>= 1) {
    if (n & 1)
      result = result.defined() ? result * square : square;
    if (n > 1)
      square = square * square;
  }
  return result;
}

/// The sum of (a + k)^-s for k = 0, 1, …, for a > 0, by the Euler-Maclaurin formula.
static Tensor zeta(int64_t s, const Tensor &a) {
  constexpr int kDirect = 10;
  // The Bernoulli numbers B2, B4, …, divided by the factorials of 2, 4, …
  constexpr double kBernoulli[] = {1.0 / 12,          -1.0 / 720,
                                   1.0 / 30240,       -1.0 / 1209600,
                                   1.0 / 47900160,    -691.0 / 1307674368000,
                                   1.0 / 74724249600, -3617.0 / 10670622842880000};
  Tensor sum;
  for (int k = 0; k < kDirect; ++k) {
    Tensor term = powerOf(1.0 / (a + double(k)), s);
    sum = sum.defined() ? sum + term : term;
  }
  const Tensor inverse = 1.0 / (a + double(kDirect)), square = inverse * inverse;
  Tensor rest = inverse * 0.0;
  for (int j = int(std::size(kBernoulli)); j-- > 0;) {
    double product = 1; // s (s + 1) … (s + 2j)
    for (int i = 0; i <= 2 * j; ++i)
      product *= double(s + i);
    rest = rest * square + kBernoulli[j] * product;
  }
  return sum + powerOf(inverse, s - 1) * (1.0 / double(s - 1) + inverse * (rest * inverse + 0.5));
}

/// The coefficients of the n-th derivative of cot(x) as a polynomial of cot(x).
static std::vector<double> cotangentDerivative(int64_t n) {
  std::vector<double> p{0, 1};
  for (; n > 0; --n) { // the derivative of a power c^k is -k c^(k - 1) (1 + c^2)
    std::vector<double> next(p.size() + 1, 0);
    for (size_t k = 1; k < p.size(); ++k) {
      next[k - 1] -= double(k) * p[k];
      next[k + 1] -= double(k) * p[k];
    }
    p = std::move(next);
  }
  return p;
}

Tensor polygamma(int64_t n, const Tensor &x, Location where) {
  if (n < 0)
    throw Error(inScope(where), "polygamma", "n = " + std::to_string(n) + " must not be negative");
  if (n == 0)
    return digamma(x, where);
  auto function = [n](const Tensor &x) {
    const Tensor a = abs(x), isNegative = x < 0.0;
    const Tensor sum = zeta(n + 1, burin::where(isNegative, a + 1.0, a)) * std::tgamma(double(n) + 1);
    // By the n-th derivative of digamma(1 - x) - digamma(x) = pi cot(pi x).
    const Tensor slope = polynomial(cotPi(x), cotangentDerivative(n)) * std::pow(kPi, n + 1);
    return burin::where(isNegative, -sum - slope, n % 2 ? sum : -sum);
  };
  return computed(x, where, function, [n](const Tensor &x, const Tensor &) { return polygamma(n + 1, x); });
}

Tensor mvlgamma(const Tensor &x, int64_t p, Location where) {
  LocationScope scope(inScope(where));
  if (p < 1)
    throw Error(inScope(where), "mvlgamma", "the dimension p = " + std::to_string(p) + " must be at least 1");
  Tensor sum = lgamma(x);
  for (int64_t j = 1; j < p; ++j)
    sum = sum + lgamma(x - double(j) / 2);
  return sum + double(p * (p - 1)) / 4 * std::log(kPi);
}

} // namespace burin
