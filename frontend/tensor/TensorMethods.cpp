// Methods and functions that differ from the op of the same name.
#include "burin/ops.h"
#include "burin/tensor/reductions.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/core/TensorState.h"
#include "ir/infer/OpInfo.h"
#include <array>

namespace burin {

Tensor Tensor::to(DType type, Location where) const {
  return dtype(where) == type && !detail::Access::state(*this)->weak ? *this : burin::cast(*this, type, where);
}

/// `axis` as a number >= 0.
static int64_t axisOf(const Tensor &x, int64_t axis, const char *op, const Location &where) {
  const int64_t rank = x.rank(where);
  if (axis < -rank || axis >= rank)
    throw Error(detail::inScope(where), op,
                "axis " + std::to_string(axis) + " is out of range for " + burin::str(x.spec(where)));
  return axis < 0 ? axis + rank : axis;
}

Tensor Tensor::flatten(int64_t start, int64_t end, Location where) const {
  const Shape &sizes = shape(where);
  if (sizes.empty())
    return burin::reshape(*this, {1}, where);
  start = axisOf(*this, start, "flatten", where);
  end = axisOf(*this, end, "flatten", where);
  if (end < start)
    throw Error(detail::inScope(where), "flatten", "the last axis lies before the first");
  Shape result(sizes.begin(), sizes.begin() + start);
  result.push_back(elements(Shape(sizes.begin() + start, sizes.begin() + end + 1)));
  result.insert(result.end(), sizes.begin() + end + 1, sizes.end());
  return burin::reshape(*this, result, where);
}

Tensor Tensor::t(Location where) const {
  std::vector<int64_t> order(rank(where));
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = int64_t(i);
  if (order.size() < 2)
    return *this;
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return burin::transpose(*this, order, where);
}

Tensor Tensor::T(Location where) const {
  IntList order;
  for (int64_t i = rank(where); i-- > 0;)
    order.push_back(i);
  return burin::transpose(*this, order, where);
}

Tensor Tensor::swapped(int64_t axis1, int64_t axis2, const Location &where) const {
  axis1 = axisOf(*this, axis1, "transpose", where);
  axis2 = axisOf(*this, axis2, "transpose", where);
  std::vector<int64_t> order(size_t(rank(where)), 0);
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = int64_t(i);
  std::swap(order[size_t(axis1)], order[size_t(axis2)]);
  return burin::transpose(*this, order, where);
}

Tensor Tensor::sliced(int64_t axis, const Dim &from, const std::optional<Dim> &to, int64_t step,
                      const Location &where) const {
  axis = axisOf(*this, axis, "slice", where);
  if (step < 1)
    throw Error(detail::inScope(where), "slice",
                "the step " + std::to_string(step) + " must be positive; see flip for the other direction");
  Shape starts(shape(where).size(), Dim(0)), stops = shape(where);
  std::vector<int64_t> steps(stops.size(), 1);
  starts[size_t(axis)] = from;
  if (to)
    stops[size_t(axis)] = *to;
  steps[size_t(axis)] = step;
  return burin::slice(*this, starts, stops, steps, where);
}

#define BURIN_REDUCTION(name, op)                                                                                      \
  Tensor name(const Tensor &x, Axes axes, bool keepdims, Location where) { return op(x, axes, keepdims, where); }      \
  Tensor Tensor::name(Axes axes, bool keepdims, Location where) const {                                                \
    return burin::op(*this, axes, keepdims, where);                                                                    \
  }
BURIN_REDUCTION(sum, reduce_sum)
BURIN_REDUCTION(prod, reduce_prod)
BURIN_REDUCTION(mean, reduce_mean)
BURIN_REDUCTION(max, reduce_max)
BURIN_REDUCTION(min, reduce_min)
BURIN_REDUCTION(any, reduce_any)
BURIN_REDUCTION(all, reduce_all)
#undef BURIN_REDUCTION

Tensor var(const Tensor &x, Axes axes, bool keepdims, int64_t correction, Location where) {
  return reduce_var(x, axes, keepdims, correction, where);
}
Tensor Tensor::var(Axes axes, bool keepdims, int64_t correction, Location where) const {
  return burin::reduce_var(*this, axes, keepdims, correction, where);
}

DType promote_types(DType a, DType b) { return ir::promote(std::array{a, b}, std::array{false, false}); }
DType result_type(const Tensor &x, const Tensor &y, Location where) {
  const detail::TensorState &a = detail::stateOf(x, detail::inScope(where)),
                            &b = detail::stateOf(y, detail::inScope(where));
  return ir::promote(std::array{a.spec.dtype, b.spec.dtype}, std::array{a.weak, b.weak});
}

} // namespace burin
