#include "frontend/tensor/functions/special/Series.h"
#include "burin/ops.h"
#include "burin/training/gradients.h"
#include <cmath>
#include <numbers>

namespace burin::detail {

Tensor working(const Tensor &x) { return x.to(x.dtype() == DType::f64 ? DType::f64 : DType::f32); }
DType resultType(const Tensor &x) { return isFloat(x.dtype()) ? x.dtype() : DType::f32; }

Tensor chebyshev(const Tensor &t, std::span<const double> c) {
  double largest = 0;
  for (double coefficient : c)
    largest = std::max(largest, std::abs(coefficient));
  if (t.dtype() != DType::f64)
    while (std::abs(c.back()) < largest * 0x1p-28)
      c = c.first(c.size() - 1);
  Tensor twice = t * 2.0, last = t * 0.0 + c.back(), before = t * 0.0;
  for (size_t k = c.size() - 1; k-- > 1;)
    before = std::exchange(last, twice * last - before + c[k]);
  return t * last - before + c[0];
}

Tensor polynomial(const Tensor &x, std::span<const double> c) {
  Tensor sum = x * c.back() + c[c.size() - 2];
  for (size_t k = c.size() - 2; k-- > 0;)
    sum = sum * x + c[k];
  return sum;
}

Tensor computed(const Tensor &x, const Location &where, const Function1 &function, const Slope &slope) {
  LocationScope scope(inScope(where));
  auto value = [function](const std::vector<Tensor> &in) { return std::vector<Tensor>{function(in[0])}; };
  auto gradient = [slope](const std::vector<Tensor> &in, const std::vector<Tensor> &out, const std::vector<Tensor> &g) {
    return std::vector<Tensor>{g[0] * slope(in[0], out[0])};
  };
  return custom_vjp(value, gradient)({working(x)})[0].to(resultType(x));
}

Tensor distanceToInteger(const Tensor &x) { return x - round(x); }

Tensor sinPi(const Tensor &x) {
  const Tensor nearest = round(x), sine = sin((x - nearest) * std::numbers::pi);
  return burin::where(floor(nearest * 0.5) * 2.0 == nearest, sine, -sine);
}

} // namespace burin::detail
