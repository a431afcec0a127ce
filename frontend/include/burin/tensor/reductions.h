// Reductions under their usual names, for the ops reduce_sum and so on. Without axes they reduce all dimensions.
#pragma once
#include "burin/tensor.h"

namespace burin {

BURIN_API Tensor sum(const Tensor &x, Axes axes = {}, bool keepdims = false, Location where = Location::current());
BURIN_API Tensor prod(const Tensor &x, Axes axes = {}, bool keepdims = false, Location where = Location::current());
BURIN_API Tensor mean(const Tensor &x, Axes axes = {}, bool keepdims = false, Location where = Location::current());
BURIN_API Tensor max(const Tensor &x, Axes axes = {}, bool keepdims = false, Location where = Location::current());
BURIN_API Tensor min(const Tensor &x, Axes axes = {}, bool keepdims = false, Location where = Location::current());
BURIN_API Tensor any(const Tensor &x, Axes axes = {}, bool keepdims = false, Location where = Location::current());
BURIN_API Tensor all(const Tensor &x, Axes axes = {}, bool keepdims = false, Location where = Location::current());
BURIN_API Tensor var(const Tensor &x, Axes axes = {}, bool keepdims = false, int64_t correction = 1,
                     Location where = Location::current());
/// The row-major position of the first largest (smallest) of all elements: i64[]. As torch.argmax, torch.argmin without
/// a dimension; argmax(x, axis) is in burin/ops.h.
BURIN_API Tensor argmax(const Tensor &x, Location where = Location::current());
BURIN_API Tensor argmin(const Tensor &x, Location where = Location::current());

} // namespace burin
