// The error function, and the normal distribution with its inverse.
#include "burin/tensor/creation.h"
#include "burin/tensor/math/special.h"
#include "frontend/tensor/functions/special/Coefficients.h"
#include "frontend/tensor/functions/special/Series.h"
#include <limits>
#include <numbers>

namespace burin {

using namespace detail;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kTwoPerSqrtPi = 2 * std::numbers::inv_sqrtpi, kSqrtHalf = std::numbers::sqrt2 / 2;
static constexpr double kInverseSqrtTwoPi = kSqrtHalf * std::numbers::inv_sqrtpi;

/// exp(scale x²) with the relative error of exp, although that of x² grows with x: the square is that of x with few
/// digits, which is exact, and the difference from it.
static Tensor expOfSquare(const Tensor &x, double scale) {
  const Tensor limited = clamp(x, -40.0, 40.0); // 0 or infinite beyond
  const Tensor few = limited.to(x.dtype() == DType::f64 ? DType::f32 : DType::bf16).to(x.dtype());
  return exp(few * few * scale) * exp((limited - few) * (limited + few) * scale);
}

/// exp(x²) erfc(x) for x >= 0.
static Tensor scaledErfc(const Tensor &x) { return chebyshev(1.0 - 7.5 / (x + 3.75), kScaledErfc) / (x * 2.0 + 1.0); }

Tensor erfc(const Tensor &x, Location where) {
  auto function = [](const Tensor &x) {
    const Tensor tail = expOfSquare(x, -1) * scaledErfc(abs(x));
    return burin::where(x < 0.0, 2.0 - tail, tail);
  };
  return computed(x, where, function,
                  [](const Tensor &x, const Tensor &) { return expOfSquare(x, -1) * -kTwoPerSqrtPi; });
}

Tensor special::erfcx(const Tensor &x, Location where) {
  auto function = [](const Tensor &x) {
    const Tensor scaled = scaledErfc(abs(x));
    return burin::where(x < 0.0, expOfSquare(x, 1) * 2.0 - scaled, scaled);
  };
  return computed(x, where, function, [](const Tensor &x, const Tensor &y) { return x * y * 2.0 - kTwoPerSqrtPi; });
}

Tensor special::ndtr(const Tensor &x, Location where) {
  auto function = [](const Tensor &x) {
    const Tensor tail = expOfSquare(x, -0.5) * scaledErfc(abs(x) * kSqrtHalf) * 0.5;
    return burin::where(x < 0.0, tail, 1.0 - tail);
  };
  return computed(x, where, function,
                  [](const Tensor &x, const Tensor &) { return expOfSquare(x, -0.5) * kInverseSqrtTwoPi; });
}

Tensor special::log_ndtr(const Tensor &x, Location where) {
  auto function = [](const Tensor &x) {
    const Tensor far = log(scaledErfc(maximum(-x, 0.0) * kSqrtHalf) * 0.5) - x * x * 0.5;
    return burin::where(x < -1.0, far, log1p(-special::ndtr(-x)));
  };
  // The quotient of density and distribution.
  return computed(x, where, function, [](const Tensor &x, const Tensor &) {
    return 2 * kInverseSqrtTwoPi / special::erfcx(x * -kSqrtHalf);
  });
}

// ---- the inverse: Wichura 1988, Algorithm AS 241, PPND16

static constexpr double kMiddle[] = {3.3871328727963666080e+0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                     1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                     3.3430575583588128105e+4, 2.5090809287301226727e+3};
static constexpr double kMiddleDivisor[] = {1.0,
                                            4.2313330701600911252e+1,
                                            6.8718700749205790830e+2,
                                            5.3941960214247511077e+3,
                                            2.1213794301586595867e+4,
                                            3.9307895800092710610e+4,
                                            2.8729085735721942674e+4,
                                            5.2264952788528545610e+3};
static constexpr double kTail[] = {1.42343711074968357734e+0, 4.63033784615654529590e+0, 5.76949722146069140550e+0,
                                   3.64784832476320460504e+0, 1.27045825245236838258e+0, 2.41780725177450611770e-1,
                                   2.27238449892691845833e-2, 7.74545014278341407640e-4};
static constexpr double kTailDivisor[] = {1.0,
                                          2.05319162663775882187e+0,
                                          1.67638483018380384940e+0,
                                          6.89767334985100004550e-1,
                                          1.48103976427480074590e-1,
                                          1.51986665636164571966e-2,
                                          5.47593808499534494600e-4,
                                          1.05075007164441684324e-9};
static constexpr double kFarTail[] = {6.65790464350110377720e+0, 5.46378491116411436990e+0, 1.78482653991729133580e+0,
                                      2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                      2.71155556874348757815e-5, 2.01033439929228813265e-7};
static constexpr double kFarTailDivisor[] = {1.0,
                                             5.99832206555887937690e-1,
                                             1.36929880922735805310e-1,
                                             1.48753612908506148525e-2,
                                             7.86869131145613259100e-4,
                                             1.84631831751005468180e-5,
                                             1.42151175831644588870e-7,
                                             2.04426310338993978564e-15};

/// The point below which a part 1/2 + q of the standard normal distribution lies, and beyond which in its tail a part
/// `tail`, the smaller one.
static Tensor normalQuantile(const Tensor &q, const Tensor &tail) {
  const Tensor r = 0.180625 - q * q, middle = q * (polynomial(r, kMiddle) / polynomial(r, kMiddleDivisor));
  const Tensor depth = sqrt(-log(tail)), near = depth - 1.6, far = depth - 5.0;
  Tensor size = where(depth <= 5.0, polynomial(near, kTail) / polynomial(near, kTailDivisor),
                      polynomial(far, kFarTail) / polynomial(far, kFarTailDivisor));
  size = where(tail == 0.0, kInfinity, size);
  return where(abs(q) <= 0.425, middle, where(q < 0.0, -size, size));
}

Tensor erfinv(const Tensor &x, Location where) {
  auto function = [](const Tensor &x) { return normalQuantile(x * 0.5, (1.0 - abs(x)) * 0.5) * kSqrtHalf; };
  return computed(x, where, function,
                  [](const Tensor &, const Tensor &y) { return expOfSquare(y, 1) / kTwoPerSqrtPi; });
}

Tensor special::ndtri(const Tensor &x, Location where) {
  auto function = [](const Tensor &x) { return normalQuantile(x - 0.5, minimum(x, 1.0 - x)); };
  return computed(x, where, function,
                  [](const Tensor &, const Tensor &y) { return expOfSquare(y, 0.5) / kInverseSqrtTwoPi; });
}

} // namespace burin
