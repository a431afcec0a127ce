// Writing and selecting at indices, in PyTorch's order of arguments.
#include "burin/functional.h"
#include "frontend/tensor/composed/Composed.h"

namespace burin {

using namespace detail;

/// A vector of positions along `axis`, as the indices of gather and scatter for values of this shape.
static Tensor alongAxis(const Tensor &indices, int64_t axis, Shape shape, const Tensor &x, const char *op,
                        const Location &where) {
  if (indices.rank() != 1)
    throw Error(inScope(where), op, "the indices must be a vector, not " + str(indices.spec()));
  if (int64_t(shape.size()) != x.rank())
    throw Error(inScope(where), op,
                "the updates " + str(shape) + " must have as many dimensions as " + str(x.spec()) +
                    "\n  one slice per index along axis " + std::to_string(axis));
  Shape column(shape.size(), Dim(1));
  column[size_t(axis)] = shape[size_t(axis)] = indices.shape()[0];
  return broadcast_to(reshape(indices, column), shape);
}

Tensor scatter_add(const Tensor &x, int64_t axis, const Tensor &indices, const Tensor &updates, Location where) {
  return scatter(x, indices, updates, axis, "add", false, where);
}

Tensor scatter_reduce(const Tensor &x, int64_t axis, const Tensor &indices, const Tensor &updates,
                      const std::string &reduce, bool include_self, Location where) {
  LocationScope scope(inScope(where));
  auto combine = [&](const Tensor &base, const Tensor &values, const std::string &how) {
    return scatter(base, indices, values, axis, how);
  };
  /// x, whose elements that have updates are what does not change a result.
  auto without = [&](const Tensor &neutral) { return include_self ? x : combine(x, neutral, "set"); };
  if (reduce == "sum")
    return combine(without(zeros_like(updates)), updates, "add");
  if (reduce == "prod")
    return combine(without(ones_like(updates)), updates, "mul");
  if (reduce == "amax" || reduce == "amin")
    return combine(without(updates), updates, reduce.substr(1));
  if (reduce != "mean")
    throw Error(inScope(where), "scatter_reduce",
                "the reduction \"" + reduce + "\" must be sum, prod, amax, amin or mean");
  Tensor sums = combine(without(zeros_like(updates)), updates, "add"),
         counts = combine(include_self ? ones_like(x) : zeros_like(x), ones_like(updates), "add");
  counts = maximum(counts, 1);
  return isFloat(x.dtype()) ? sums / counts : floor_divide(sums, counts);
}

Tensor index_add(const Tensor &x, int64_t axis, const Tensor &indices, const Tensor &updates, double alpha,
                 Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "index_add");
  Tensor at = alongAxis(indices, axis, updates.shape(), x, "index_add", where);
  return scatter(x, at, alpha == 1 ? updates : updates * alpha, axis, "add");
}

Tensor index_copy(const Tensor &x, int64_t axis, const Tensor &indices, const Tensor &updates, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "index_copy");
  return scatter(x, alongAxis(indices, axis, updates.shape(), x, "index_copy", where), updates, axis);
}

Tensor index_fill(const Tensor &x, int64_t axis, const Tensor &indices, const Tensor &value, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "index_fill");
  Tensor at = alongAxis(indices, axis, x.shape(), x, "index_fill", where);
  return scatter(x, at, broadcast_to(cast(value, x.dtype()), at.shape()), axis);
}

Tensor take_along_dim(const Tensor &x, const Tensor &indices, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "take_along_dim");
  if (indices.rank() != x.rank())
    throw Error(inScope(where), "take_along_dim",
                "the indices " + str(indices.spec()) + " must have as many dimensions as " + str(x.spec()));
  Shape ofX = x.shape(), ofIndices = indices.shape();
  const Dim size = ofX[size_t(axis)], count = ofIndices[size_t(axis)];
  for (size_t i = 0; i < ofX.size(); ++i)
    if (i != size_t(axis))
      ofX[i] = ofIndices[i] = ofX[i] == Dim(1) ? ofIndices[i] : ofX[i];
  return gather(broadcast_to(x, ofX), broadcast_to(indices, ofIndices), axis);
}

Tensor searchsorted(const Tensor &sorted, const Tensor &values, bool right, Location where) {
  LocationScope scope(inScope(where));
  if (sorted.rank() != 1)
    throw Error(inScope(where), "searchsorted", "the sorted values must be a vector, not " + str(sorted.spec()));
  Tensor candidates = unsqueeze(values, {-1});
  Tensor isBefore = right ? le(sorted, candidates) : lt(sorted, candidates);
  return sum(cast(isBefore, i64), {-1});
}

} // namespace burin
