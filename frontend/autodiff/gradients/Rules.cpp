#include "frontend/autodiff/gradients/Rules.h"
#include "burin/tensor/creation.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include <algorithm>
#include <cmath>

namespace burin::gradients {

NoGradient::NoGradient(const std::string &message) : NoGradient(message, detail::inScope({})) {}

#include "frontend/autodiff/gradients/rules.inc"

GradientRule ruleOf(const ir::OpInfo &info) { return gradientRules[&info - ir::opTable().data()]; }

// ---- elementwise

Tensor larger(const Tensor &g, const Tensor &x, const Tensor &y) {
  return where(x > y, g, where(x == y, g * 0.5, 0.0));
}

Tensor powerGradient(const Tensor &g, const Tensor &x, const Tensor &y) {
  return where(y == 0, 0.0, g * y * pow(x, y - 1.0));
}
Tensor exponentGradient(const Tensor &g, const Tensor &x, const Tensor &y, const Tensor &result) {
  return where((x == 0) & (y >= 0), 0.0, g * result * log(x));
}

Tensor geluSlope(const Tensor &x, bool isTanh) {
  if (!isTanh)
    return (erf(x * M_SQRT1_2) + 1.0) * 0.5 + x * exp(x * x * -0.5) * (M_SQRT1_2 * M_2_SQRTPI * 0.5);
  constexpr double kCubic = 0.044715, kScale = M_SQRT1_2 * M_2_SQRTPI;
  Tensor t = tanh((x + x * x * x * kCubic) * kScale);
  return (t + 1.0) * 0.5 + x * (1.0 - t * t) * (x * x * (3 * kCubic) + 1.0) * (kScale * 0.5);
}

// ---- reductions

Tensor spread(const Tensor &result, const Tensor &x, const Ints &axes) {
  Shape kept = x.shape();
  for (int64_t axis : axes)
    kept[size_t(axis)] = 1;
  return broadcast_to(reshapeTo(result, kept), x.shape());
}

Tensor count(const Tensor &x, const Ints &axes) {
  Dim number = 1;
  for (int64_t axis : axes)
    number = number * x.shape()[size_t(axis)];
  return detail::sizeTensor(number).to(x.dtype());
}

/// The product of all other elements, without division, because elements may be 0.
Tensor productGradient(const Tensor &g, const Tensor &x, const Ints &axes) {
  int64_t rank = x.rank(), last = rank - int64_t(axes.size());
  if (axes.empty())
    return g;
  Ints order; // reduced dimensions last
  for (int64_t i = 0; i < rank; ++i)
    if (!std::ranges::binary_search(axes, i))
      order.push_back(i);
  order.insert(order.end(), axes.begin(), axes.end());
  Tensor sorted = transpose(x, order);
  Shape joined(sorted.shape().begin(), sorted.shape().begin() + last);
  joined.push_back(elements({sorted.shape().begin() + last, sorted.shape().end()}));
  Tensor row = reshapeTo(sorted, joined);
  Tensor others = cumprod(row, last, true, false) * cumprod(row, last, true, true);
  return spread(g, x, axes) * transpose(reshapeTo(others, sorted.shape()), inverse(order));
}

/// The factor of each element in each product, without division: the products of all others, [..., element, product].
Tensor cumprodGradient(const Tensor &g, const Tensor &x, int64_t axis, bool exclusive, bool reverse) {
  Ints order;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis)
      order.push_back(i);
  order.push_back(axis); // `axis` last
  int64_t last = x.rank();
  Tensor row = unsqueeze(transpose(x, order), {last - 1}), weights = unsqueeze(transpose(g, order), {last - 1});
  Shape table = row.shape(), plane{table.back(), table.back()};
  table[size_t(last - 1)] = table.back();
  Tensor i = iota(plane, DType::i64, 0), k = iota(plane, DType::i64, 1);
  Tensor others = cumprod(where(i == k, 1.0, broadcast_to(row, table)), last, exclusive, reverse);
  Tensor isFactor = reverse ? (exclusive ? i > k : i >= k) : (exclusive ? i < k : i <= k);
  return transpose(reduce_sum(where(isFactor, others * weights, 0.0), {last}), inverse(order));
}

Tensor extremeGradient(const Tensor &g, const Tensor &x, const Tensor &result, const Ints &axes) {
  Tensor chosen = (x == spread(result, x, axes)).to(x.dtype());
  return chosen * spread(g, x, axes) / reduce_sum(chosen, axes, true);
}

Tensor sumChannels(const Tensor &x) {
  Ints axes;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != 1)
      axes.push_back(i);
  return reduce_sum(x, axes);
}

Tensor perChannel(const Tensor &numbers, const Tensor &x) {
  Shape shape(x.shape().size(), 1);
  shape[1] = x.shape()[1];
  return reshapeTo(numbers, shape);
}

} // namespace burin::gradients
