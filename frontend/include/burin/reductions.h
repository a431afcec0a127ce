// Reductions under the names everybody knows; the ops are reduce_sum and so on. No axes: all of them.
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

} // namespace burin
