#include "burin/functional.h"
#include "burin/graph/control.h"
#include "frontend/tensor/composed/Composed.h"
#include <cmath>
#include <numbers>

namespace burin {

using namespace detail;

Tensor detail::asFloat(const Tensor &x) { return isFloat(x.dtype()) ? x : x.to(DType::f32); }

Tensor masked_fill(const Tensor &x, const Tensor &mask, const Tensor &value, Location where) {
  LocationScope scope(inScope(where));
  auto classOf = [](DType type) { return isFloat(type) ? 2 : isInteger(type) ? 1 : 0; };
  if (!isBool(mask.dtype()))
    throw Error(inScope(where), "masked_fill",
                "the mask is " + str(mask.spec()) + ", but must be bool; compare it first");
  if (classOf(value.dtype()) > classOf(x.dtype()))
    throw Error(inScope(where), "masked_fill",
                "a value of type " + std::string(name(value.dtype())) + " does not fit into " + str(x.spec()) +
                    "; convert x with to(" + std::string(name(value.dtype())) + ") before");
  return burin::where(mask, value.to(x.dtype()), x);
}

/// alpha * y; throws for a fraction of integers.
static Tensor scaled(const Tensor &x, const Tensor &y, const Tensor &alpha, const char *op, const Location &where) {
  if (isFloat(alpha.dtype()) && !isFloat(x.dtype()) && !isFloat(y.dtype()))
    throw Error(inScope(where), op,
                "alpha must be an integer for " + str(x.spec()) + " and " + str(y.spec()) +
                    "; convert one with to(f32)");
  return mul(y, alpha, where);
}
Tensor add(const Tensor &x, const Tensor &y, const Tensor &alpha, Location where) {
  return add(x, scaled(x, y, alpha, "add", where), where);
}
Tensor sub(const Tensor &x, const Tensor &y, const Tensor &alpha, Location where) {
  return sub(x, scaled(x, y, alpha, "sub", where), where);
}

Tensor square(const Tensor &x, Location where) { return mul(x, x, where); }
Tensor exp2(const Tensor &x, Location where) { return pow(2.0, x, where); }
Tensor log2(const Tensor &x, Location where) { return mul(log(x, where), std::numbers::log2e, where); }
Tensor log10(const Tensor &x, Location where) { return mul(log(x, where), std::numbers::log10e, where); }

Tensor logaddexp(const Tensor &x, const Tensor &y, Location where) {
  LocationScope scope(inScope(where));
  Tensor larger = maximum(x, y), distance = abs(x - y);
  // The distance of two equal infinities is NaN; the larger one is the result.
  return burin::where(x == y, larger + std::numbers::ln2, larger + log1p(exp(-distance)));
}
Tensor hypot(const Tensor &x, const Tensor &y, Location where) {
  LocationScope scope(inScope(where));
  return sqrt(x * x + y * y);
}
Tensor lerp(const Tensor &start, const Tensor &end, const Tensor &weight, Location where) {
  LocationScope scope(inScope(where));
  return start + weight * (end - start);
}
Tensor addcmul(const Tensor &x, const Tensor &a, const Tensor &b, double value, Location where) {
  LocationScope scope(inScope(where));
  return value == 1 ? x + a * b : x + value * (a * b);
}
Tensor addcdiv(const Tensor &x, const Tensor &a, const Tensor &b, double value, Location where) {
  LocationScope scope(inScope(where));
  return value == 1 ? x + a / b : x + value * (a / b);
}
Tensor frac(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  return x - trunc(x);
}
Tensor heaviside(const Tensor &x, const Tensor &at_zero, Location where) {
  LocationScope scope(inScope(where));
  Tensor step = (x > 0).to(x.dtype());
  return burin::where(is_nan(x), x, burin::where(x == 0, at_zero.to(x.dtype()), step));
}
Tensor clamp_min(const Tensor &x, const Tensor &low, Location where) { return maximum(x, low, where); }
Tensor clamp_max(const Tensor &x, const Tensor &high, Location where) { return minimum(x, high, where); }

/// The largest finite number of a float type.
static double largest(DType type) {
  switch (type) {
  case DType::f64:
    return std::numeric_limits<double>::max();
  case DType::f16:
    return 65504;
  case DType::bf16:
    return 0x1.FEp127;
  default:
    return std::numeric_limits<float>::max();
  }
}

Tensor nan_to_num(const Tensor &x, double nan, std::optional<double> posinf, std::optional<double> neginf,
                  Location where) {
  LocationScope scope(inScope(where));
  if (!isFloat(x.dtype()))
    return x;
  const double most = largest(x.dtype());
  Tensor result = burin::where(is_nan(x), nan, x);
  result = burin::where(x == std::numeric_limits<double>::infinity(), posinf.value_or(most), result);
  return burin::where(x == -std::numeric_limits<double>::infinity(), neginf.value_or(-most), result);
}

Tensor is_finite(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  return !(is_nan(x) | is_inf(x));
}

Tensor isclose(const Tensor &x, const Tensor &y, double rtol, double atol, bool equal_nan, Location where) {
  LocationScope scope(inScope(where));
  // Integers are compared as f64, so that small tolerances have an effect.
  Tensor a = isFloat(x.dtype()) ? x : x.to(DType::f64), b = isFloat(y.dtype()) ? y : y.to(DType::f64);
  Tensor close = (a == b) | (is_finite(b) & (abs(a - b) <= atol + rtol * abs(b)));
  return equal_nan ? close | (is_nan(a) & is_nan(b)) : close;
}
bool allclose(const Tensor &x, const Tensor &y, double rtol, double atol, bool equal_nan, Location where) {
  return isclose(x, y, rtol, atol, equal_nan, where).all({}, false, where).item<bool>(where);
}
bool equal(const Tensor &x, const Tensor &y, Location where) {
  if (x.shape(where) != y.shape(where))
    return false;
  return eq(x, y, where).all({}, false, where).item<bool>(where);
}

/// |x| and |y| with their common shape and element type; throws unless they are integers.
static std::pair<Tensor, Tensor> magnitudes(const Tensor &x, const Tensor &y, const char *op, const Location &where) {
  for (const Tensor *operand : {&x, &y})
    if (!isInteger(operand->dtype()))
      throw Error(inScope(where), op, "it takes integers, not " + str(operand->spec()) + "; convert: to(i64)");
  const DType dtype = result_type(x, y);
  const Tensor a = x.to(dtype), b = y.to(dtype), none = (a - a) + (b - b); // zeros of the common shape
  return {abs(a + none), abs(b + none)};
}
/// Euclid's algorithm.
static Tensor divisorOf(const Tensor &a, const Tensor &b) {
  auto isLeft = [](const Tensor &, const Tensor &rest) { return any(rest != 0); };
  auto step = [](const Tensor &divisor, const Tensor &rest) {
    Tensor isDone = rest == 0;
    return std::pair{burin::where(isDone, divisor, rest), burin::where(isDone, rest, remainder(divisor, rest))};
  };
  return while_loop(isLeft, step, std::pair{a, b}).first;
}
Tensor gcd(const Tensor &x, const Tensor &y, Location where) {
  LocationScope scope(inScope(where));
  auto [a, b] = magnitudes(x, y, "gcd", where);
  return divisorOf(a, b);
}
Tensor lcm(const Tensor &x, const Tensor &y, Location where) {
  LocationScope scope(inScope(where));
  auto [a, b] = magnitudes(x, y, "lcm", where);
  return floor_divide(a, maximum(divisorOf(a, b), 1)) * b;
}

Tensor renorm(const Tensor &x, double p, int64_t axis, double maxnorm, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "renorm");
  Axes others;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis)
      others.push_back(i);
  const Tensor size = others.empty() ? abs(x) : norm(x, p, others, true);
  return x * burin::where(size > maxnorm, maxnorm / (size + 1e-7), 1.0);
}

Tensor relu6(const Tensor &x, Location where) { return clamp(x, 0, 6, where); }
Tensor selu(const Tensor &x, Location where) {
  constexpr double alpha = 1.6732632423543772848170429916717, scale = 1.0507009873554804934193349852946;
  return mul(elu(x, alpha, where), scale, where);
}
Tensor mish(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  return x * tanh(softplus(x));
}
Tensor logsigmoid(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  return minimum(x, 0) - log1p(exp(-abs(x)));
}
Tensor softsign(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  return x / (1 + abs(x));
}
Tensor glu(const Tensor &x, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "glu");
  const Dim &size = x.shape()[size_t(axis)];
  if (!size.isStatic() || size.value() % 2)
    throw Error(inScope(where), "glu",
                "the size " + size.str() + " of axis " + std::to_string(axis) + " must be a known, even number");
  return x.slice(axis, 0, size.value() / 2) * sigmoid(x.slice(axis, size.value() / 2));
}

} // namespace burin
