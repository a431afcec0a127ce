// Writing and selecting at indices, in PyTorch's order of arguments.
#include "burin/functional.h"
#include "frontend/tensor/composed/Composed.h"
#include "frontend/tensor/functions/Creation.h"

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
  return scatter(x, at, alpha == 1 ? updates : (updates * alpha).to(updates.dtype()), axis, "add");
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

Tensor index_reduce(const Tensor &x, int64_t axis, const Tensor &indices, const Tensor &updates,
                    const std::string &reduce, bool include_self, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "index_reduce");
  if (reduce == "sum")
    throw Error(inScope(where), "index_reduce", "the reduction \"sum\" is index_add()");
  return scatter_reduce(x, axis, alongAxis(indices, axis, updates.shape(), x, "index_reduce", where), updates, reduce,
                        include_self);
}

/// `src` in the element type of x, after a check that it has the shape of the part of x that it replaces.
static Tensor replacement(const Tensor &x, const Tensor &src, const Tensor &part, const char *op,
                          const Location &where) {
  bool fits = src.rank() == part.rank();
  for (size_t i = 0; fits && i < src.shape().size(); ++i)
    fits = mayEqual(src.shape()[i], part.shape()[i]);
  if (!fits)
    throw Error(inScope(where), op,
                "the source is " + str(src.spec()) + ", but the part of " + str(x.spec()) +
                    " that it replaces has the " + "shape " + str(part.shape()));
  return src.to(x.dtype());
}
Tensor select_scatter(const Tensor &x, const Tensor &src, int64_t axis, int64_t index, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "select_scatter");
  const Tensor values = replacement(x, src, select(x, axis, index), "select_scatter", where);
  Indices at{{}, where};
  at.list.assign(size_t(axis), Slice());
  at.list.emplace_back(index);
  return x.index_put(at, values);
}
Tensor slice_scatter(const Tensor &x, const Tensor &src, int64_t axis, const Dim &start, const std::optional<Dim> &end,
                     int64_t step, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "slice_scatter");
  const Tensor values = replacement(x, src, x.slice(axis, start, end, step), "slice_scatter", where);
  Indices at{{}, where};
  at.list.assign(size_t(axis), Slice());
  at.list.emplace_back(Slice(start, end ? Slice::Bound(*end) : Slice::Bound(), step));
  return x.index_put(at, values);
}
Tensor diagonal_scatter(const Tensor &x, const Tensor &src, int64_t offset, int64_t axis1, int64_t axis2,
                        Location where) {
  LocationScope scope(inScope(where));
  const Tensor values = replacement(x, src, diagonal(x, offset, axis1, axis2), "diagonal_scatter", where);
  axis1 = axisOf(x, axis1, "diagonal_scatter"), axis2 = axisOf(x, axis2, "diagonal_scatter");
  IntList order; // both dimensions at the end
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis1 && i != axis2)
      order.push_back(i);
  order.insert(order.end(), {axis1, axis2});
  IntList back = std::vector<int64_t>(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[size_t(order[i])] = int64_t(i);
  const Tensor last = transpose(x, order);
  const Dim &rows = last.shape()[order.size() - 2], &columns = last.shape().back();
  const Tensor row = unsqueeze(arange(rows), 1), isOnIt = arange(columns) - row == offset;
  // Row i of the diagonal's elements begins where the diagonal enters the matrix.
  const Dim count = values.shape().back();
  Tensor number = minimum(maximum(row - std::max<int64_t>(-offset, 0), 0), Tensor(count) - 1);
  Tensor byRow = unsqueeze(take(values, reshape(number, {rows}), -1), -1);
  return transpose(burin::where(isOnIt, byRow, last), back);
}

std::vector<Tensor> unravel_index(const Tensor &indices, const Shape &shape, Location where) {
  LocationScope scope(inScope(where));
  if (!isInteger(indices.dtype()))
    throw Error(inScope(where), "unravel_index", "positions are integers, not " + str(indices.spec()));
  std::vector<Tensor> coordinates(shape.size());
  Tensor rest = indices.to(DType::i64);
  for (size_t i = shape.size(); i-- > 0;) {
    const Tensor size = sizeTensor(shape[i]);
    coordinates[i] = remainder(rest, size);
    rest = floor_divide(rest, size);
  }
  return coordinates;
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
  if (sorted.rank() == 0 || (sorted.rank() > 1 && sorted.rank() != values.rank()))
    throw Error(inScope(where), "searchsorted",
                "the sorted values " + str(sorted.spec()) + " must be a vector, or have the rank of the values " +
                    str(values.spec()));
  Tensor candidates = unsqueeze(values, {-1}), before = sorted.rank() > 1 ? unsqueeze(sorted, {-2}) : sorted;
  Tensor isBefore = right ? le(before, candidates) : lt(before, candidates);
  return sum(cast(isBefore, i64), {-1});
}

Tensor take(const Tensor &x, const Tensor &indices, Location where) {
  LocationScope scope(inScope(where));
  return take(x.rank() == 1 ? x : reshape(x, {elements(x.shape())}), indices, 0);
}

Tensor masked_scatter(const Tensor &x, const Tensor &mask, const Tensor &source, Location where) {
  LocationScope scope(inScope(where));
  if (!isBool(mask.dtype()))
    throw Error(inScope(where), "masked_scatter",
                "the mask is " + str(mask.spec()) + ", but must be bool; compare it first");
  if (source.dtype() != x.dtype())
    throw Error(inScope(where), "masked_scatter",
                "the source " + str(source.spec()) + " must have the element type of " + str(x.spec()));
  const Tensor isChosen = reshape(broadcast_to(mask, x.shape()), {elements(x.shape())});
  // The number of chosen elements up to each one; the others read the first element of the source, if there is one.
  const Tensor count = cumsum(isChosen.to(i64), 0), list = reshape(source, {elements(source.shape())});
  const Tensor from = concat({zeros({1}, x.dtype()), list}, 0);
  const Tensor values = take(from, burin::where(isChosen, count, 0), 0);
  return burin::where(reshape(isChosen, x.shape()), reshape(values, x.shape()), x);
}

Tensor repeat_interleave(const Tensor &x, const Tensor &counts, int64_t axis, const Dim &output_size, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "repeat_interleave");
  if (counts.rank() != 1 || isFloat(counts.dtype()) || isBool(counts.dtype()))
    throw Error(inScope(where), "repeat_interleave",
                "the counts are " + str(counts.spec()) + ", but must be a vector of integers, one for each slice of " +
                    str(x.spec()) + " along axis " + std::to_string(axis));
  Dim total = output_size;
  if (output_size == Dim(-1)) {
    if (counts.isTraced())
      throw Error(inScope(where), "repeat_interleave",
                  "the size of the result is the sum of the counts, which a traced function cannot read\n  give it: "
                  "repeat_interleave(x, counts, axis, output_size)");
    total = Dim(sum(counts.to(i64)).item<int64_t>(inScope(where)));
  }
  const Tensor wide = broadcast_to(counts.to(i64), {x.shape()[size_t(axis)]}), ends = cumsum(wide, 0);
  const Tensor isRight = all(wide >= 0) & (sum(wide) == sizeTensor(total));
  // The first slice that ends behind each position.
  const Tensor from = searchsorted(ends, arange(total), true);
  const Tensor checked = check(
      broadcast_to(isRight, from.shape()), from,
      "repeat_interleave: a count is negative, or their sum is not the output size " + total.str(), inScope(where));
  return take(x, checked, axis);
}

// ---- different elements

/// True where a vector differs from its previous element, and for the first one.
static Tensor startsRun(const Tensor &x) {
  const Tensor at = arange(x.shape()[0]);
  return (at == 0) | (x != take(x, maximum(at - 1, 0), 0));
}
static Tensor asVector(const Tensor &x) { return reshape(x, {elements(x.shape())}); }

Tensor unique_consecutive(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  const Tensor list = asVector(x);
  return masked_select(list, startsRun(list));
}

Tensor unique(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  return unique_consecutive(sort(asVector(x), 0).values);
}

UniqueResult unique_all(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  const SortResult sorted = sort(asVector(x), 0);
  const Tensor isFirst = startsRun(sorted.values), number = cumsum(isFirst.to(i64), 0) - 1;
  const Tensor inverse = scatter(zeros_like(number), sorted.indices, number, 0);
  const Tensor values = masked_select(sorted.values, isFirst);
  const Tensor counts = scatter(zeros(values.shape(), i64), number, ones_like(number), 0, "add");
  return {values, reshape(inverse, x.shape()), counts};
}

} // namespace burin
