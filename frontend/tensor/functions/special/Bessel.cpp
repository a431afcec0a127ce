// Modified Bessel functions, and other functions of torch.special.
#include "burin/tensor/creation.h"
#include "burin/tensor/math/special.h"
#include "frontend/tensor/functions/special/Coefficients.h"
#include "frontend/tensor/functions/special/Series.h"
#include <numbers>

namespace burin {

using namespace detail;

/// exp(-|x|) times the function of order 0, or 1 divided by x and without its sign.
static Tensor scaledBessel(const Tensor &a, std::span<const double> near, std::span<const double> far) {
  return where(a <= 8.0, chebyshev(a * 0.25 - 1.0, near), chebyshev(16.0 / a - 1.0, far) / sqrt(a));
}
static Tensor scaledI0(const Tensor &x) { return scaledBessel(abs(x), kI0, kI0Large); }
static Tensor scaledI1(const Tensor &x) {
  const Tensor a = abs(x);
  const Tensor far = chebyshev(16.0 / a - 1.0, kI1Large) / sqrt(a);
  return where(a <= 8.0, x / (a + 1.0) * chebyshev(a * 0.25 - 1.0, kI1), where(x < 0.0, -far, far));
}
/// exp(|x|) y, which overflows only if the result does.
static Tensor unscaled(const Tensor &x, const Tensor &y) {
  const Tensor half = exp(abs(x) * 0.5);
  return half * y * half;
}
/// y / x; at 0 the limit 1/2.
static Tensor perX(const Tensor &x, const Tensor &y) {
  const Tensor isZero = x == 0.0;
  return where(isZero, 0.5, y / where(isZero, 1.0, x));
}

Tensor i0(const Tensor &x, Location where) {
  return computed(
      x, where, [](const Tensor &x) { return burin::where(is_inf(x), abs(x), unscaled(x, scaledI0(x))); },
      [](const Tensor &x, const Tensor &) { return special::i1(x); });
}
Tensor special::i1(const Tensor &x, Location where) {
  return computed(
      x, where, [](const Tensor &x) { return burin::where(is_inf(x), x, unscaled(x, scaledI1(x))); },
      [](const Tensor &x, const Tensor &y) { return i0(x) - perX(x, y); });
}
Tensor special::i0e(const Tensor &x, Location where) {
  return computed(x, where, scaledI0, [](const Tensor &x, const Tensor &y) { return special::i1e(x) - sign(x) * y; });
}
Tensor special::i1e(const Tensor &x, Location where) {
  return computed(x, where, scaledI1,
                  [](const Tensor &x, const Tensor &y) { return special::i0e(x) - sign(x) * y - perX(x, y); });
}

// ---- products with logarithms

// Where x is 0 and the logarithm is not finite, another y makes it 0, also in gradients.
Tensor xlogy(const Tensor &x, const Tensor &y, Location where) {
  LocationScope scope(inScope(where));
  return x * log(burin::where((x == 0) & ((y <= 0) | is_inf(y)), 1, y));
}
Tensor xlog1py(const Tensor &x, const Tensor &y, Location where) {
  LocationScope scope(inScope(where));
  return x * log1p(burin::where((x == 0) & ((y <= -1) | is_inf(y)), 0, y));
}
Tensor logit(const Tensor &x, std::optional<double> eps, Location where) {
  LocationScope scope(inScope(where));
  auto function = [](const Tensor &x) {
    // Around 1/2, where the logarithm is near 0, by the exact difference of the quotient from 1.
    const Tensor rest = 1.0 - x, isMiddle = (x >= 0.25) & (x <= 0.75);
    return burin::where(isMiddle, log1p((x * 2.0 - 1.0) / rest), log(x / rest));
  };
  const Tensor given = eps ? clamp(x.to(resultType(x)), *eps, 1 - *eps) : x;
  return computed(given, where, function, [](const Tensor &x, const Tensor &) { return 1.0 / (x * (1.0 - x)); });
}
Tensor sinc(const Tensor &given, Location where) {
  LocationScope scope(inScope(where));
  const Tensor x = working(given), isZero = x == 0.0;
  const Tensor divisor = burin::where(isZero, 1.0, x * std::numbers::pi);
  return burin::where(isZero, 1.0, sinPi(x) / divisor).to(resultType(given));
}

} // namespace burin
