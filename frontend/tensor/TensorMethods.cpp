// Methods and functions that say more, or less, than the op they call.
#include "burin/ops.h"
#include "burin/reductions.h"
#include "frontend/tensor/LocationScope.h"
#include "frontend/tensor/TensorState.h"

namespace burin {

Tensor Tensor::to(DType type, Location where) const {
  return dtype(where) == type && !detail::Access::state(*this)->weak ? *this : burin::cast(*this, type, where);
}

Tensor Tensor::flatten(int64_t start, int64_t end, Location where) const {
  const Shape &sizes = shape(where);
  int64_t rank = int64_t(sizes.size());
  auto axis = [&](int64_t axis) {
    if (axis < -rank || axis >= rank)
      throw Error(detail::inScope(where), "flatten",
                  "axis " + std::to_string(axis) + " is out of range for " + burin::str(spec(where)));
    return axis < 0 ? axis + rank : axis;
  };
  if (rank == 0)
    return burin::reshape(*this, {1}, where);
  start = axis(start);
  end = axis(end);
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
    throw Error(detail::inScope(where), "t", burin::str(spec(where)) + " has no two dimensions to swap");
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return burin::transpose(*this, order, where);
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

} // namespace burin
