#include "burin/tensor/indexing.h"
#include "burin/tensor/reductions.h"
#include "frontend/tensor/composed/Composed.h"
#include "frontend/tensor/functions/Creation.h"
#include <algorithm>

namespace burin {

using namespace detail;

int64_t detail::axisOf(const Tensor &x, int64_t axis, const char *op) {
  const int64_t rank = x.rank();
  if (axis < -rank || axis >= rank)
    throw Error(inScope(Location()), op, "axis " + std::to_string(axis) + " is out of range for " + str(x.spec()));
  return axis < 0 ? axis + rank : axis;
}

Tensor expand(const Tensor &x, const Shape &shape, Location where) {
  LocationScope scope(inScope(where));
  const Shape &sizes = x.shape();
  Shape full = shape;
  for (size_t i = 0; i < full.size(); ++i)
    if (full[i] == Dim(-1)) {
      const size_t added = full.size() - std::min(full.size(), sizes.size());
      if (i < added)
        throw Error(inScope(where), "expand",
                    "-1 keeps a size, but dimension " + std::to_string(i) + " of " + str(shape) + " is not one of " +
                        str(x.spec()));
      full[i] = sizes[i - added];
    }
  return broadcast_to(x, full);
}
Tensor expand_as(const Tensor &x, const Tensor &other, Location where) {
  return broadcast_to(x, other.shape(where), where);
}

Tensor repeat(const Tensor &x, const Shape &counts, Location where) {
  LocationScope scope(inScope(where));
  Shape shape = x.shape();
  if (counts.size() < shape.size())
    throw Error(inScope(where), "repeat",
                std::to_string(counts.size()) + " counts are too few for the dimensions of " + str(x.spec()));
  shape.insert(shape.begin(), counts.size() - shape.size(), Dim(1));
  Tensor whole = reshape(x, shape);
  if (std::ranges::all_of(counts, &Dim::isStatic)) {
    IntList numbers;
    for (const Dim &count : counts)
      numbers.push_back(count.value());
    return tile(whole, numbers);
  }
  Shape apart, wide, joined; // each dimension behind its count
  for (size_t i = 0; i < shape.size(); ++i) {
    apart.insert(apart.end(), {Dim(1), shape[i]});
    wide.insert(wide.end(), {counts[i], shape[i]});
    joined.push_back(counts[i] * shape[i]);
  }
  return reshape(broadcast_to(reshape(whole, apart), wide), joined);
}

Tensor repeat_interleave(const Tensor &x, int64_t count, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "repeat_interleave");
  if (count < 0)
    throw Error(inScope(where), "repeat_interleave", "the count " + std::to_string(count) + " must not be negative");
  Shape wide = x.shape(), result = x.shape();
  wide.insert(wide.begin() + axis + 1, Dim(count));
  result[size_t(axis)] = result[size_t(axis)] * count;
  return reshape(broadcast_to(unsqueeze(x, axis + 1), wide), result);
}

std::vector<Tensor> chunk(const Tensor &x, int64_t count, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "chunk");
  if (count < 1)
    throw Error(inScope(where), "chunk", "the count " + std::to_string(count) + " must be positive");
  const Dim size = x.shape()[size_t(axis)], each = ceildiv(size, count);
  std::vector<Tensor> pieces;
  for (int64_t i = 0; i < count; ++i)
    if (!size.isStatic() || size.value() == 0 || (each * i).value() < size.value())
      pieces.push_back(x.slice(axis, each * i, each * (i + 1)));
  return pieces;
}

std::vector<Tensor> detail::splitEvery(const Tensor &x, int64_t size, int64_t axis, const Location &where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "split");
  const Dim &all = x.shape()[size_t(axis)];
  if (size < 1)
    throw Error(inScope(where), "split", "pieces of size " + std::to_string(size) + ", but it must be positive");
  if (!all.isStatic())
    throw Error(inScope(where), "split",
                "the number of pieces depends on the size " + all.str() +
                    ", which is symbolic; use chunk, which makes a known number of pieces");
  std::vector<Tensor> pieces;
  for (int64_t from = 0; from == 0 || from < all.value(); from += size)
    pieces.push_back(x.slice(axis, from, from + size));
  return pieces;
}

Tensor select(const Tensor &x, int64_t axis, int64_t index, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "select");
  Indices at(Index(index), inScope(where));
  at.list.insert(at.list.begin(), size_t(axis), Index(Slice()));
  return x[at];
}

std::vector<Tensor> unbind(const Tensor &x, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "unbind");
  const Dim size = x.shape()[size_t(axis)];
  if (!size.isStatic())
    throw Error(inScope(where), "unbind",
                "the number of results would be the size " + size.str() + ", which is symbolic; see scan for a loop");
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < size.value(); ++i)
    parts.push_back(select(x, axis, i));
  return parts;
}

Tensor narrow(const Tensor &x, int64_t axis, const Dim &start, const Dim &length, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "narrow");
  const Dim &size = x.shape()[size_t(axis)];
  const Dim from = start.isStatic() && start.value() < 0 ? size + start : start;
  auto isNegative = [](const Dim &d) { return d.isStatic() && d.value() < 0; };
  if (isNegative(length) || isNegative(from) || isNegative(size - from - length))
    throw Error(inScope(where), "narrow",
                length.str() + " elements from " + start.str() + " on are out of range for axis " +
                    std::to_string(axis) + " of " + str(x.spec()));
  return x.slice(axis, from, from + length);
}

Tensor index_select(const Tensor &x, int64_t axis, const Tensor &indices, Location where) {
  LocationScope scope(inScope(where));
  if (indices.rank() != 1)
    throw Error(inScope(where), "index_select", "the indices are " + str(indices.spec()) + ", but must be a vector");
  return take(x, indices, axis);
}

Tensor permute(const Tensor &x, const IntList &order, Location where) { return burin::transpose(x, order, where); }

Tensor movedim(const Tensor &x, int64_t from, int64_t to, Location where) {
  LocationScope scope(inScope(where));
  from = axisOf(x, from, "movedim");
  to = axisOf(x, to, "movedim");
  IntList order;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != from)
      order.push_back(i);
  order.insert(order.begin() + to, from);
  return burin::transpose(x, order);
}

Tensor unflatten(const Tensor &x, int64_t axis, const Shape &sizes, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "unflatten");
  Shape shape = x.shape();
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, sizes.begin(), sizes.end());
  return reshape(x, shape);
}

static Tensor rollAlong(const Tensor &x, int64_t shift, int64_t axis) {
  const Dim &size = x.shape()[size_t(axis)];
  if (!size.isStatic()) // element i comes from i - shift
    return take(x, (arange(size) - shift) % size, axis);
  const int64_t count = size.value(), first = count ? ((-shift) % count + count) % count : 0;
  return first ? concat({x.slice(axis, first), x.slice(axis, 0, first)}, axis) : x;
}

Tensor roll(const Tensor &x, const IntList &shifts, const Axes &axes, Location where) {
  LocationScope scope(inScope(where));
  if (shifts.size() != std::max<size_t>(axes.size(), 1))
    throw Error(inScope(where), "roll",
                "there are " + std::to_string(shifts.size()) + " shifts for " + std::to_string(axes.size()) + " axes");
  if (axes.empty())
    return reshape(rollAlong(reshape(x, {elements(x.shape())}), shifts[0], 0), x.shape());
  Tensor result = x;
  for (size_t i = 0; i < axes.size(); ++i)
    result = rollAlong(result, shifts[i], axisOf(x, axes[i], "roll"));
  return result;
}

Tensor Tensor::unfold(int64_t axis, int64_t size, int64_t step, Location where) const {
  LocationScope scope(inScope(where));
  const Tensor &x = *this;
  axis = axisOf(x, axis, "unfold");
  const Dim &all = x.shape()[size_t(axis)];
  if (size < 0 || step < 1 || (all.isStatic() && size > all.value()))
    throw Error(inScope(where), "unfold",
                "windows of " + std::to_string(size) + " at steps of " + std::to_string(step) + " do not fit axis " +
                    std::to_string(axis) + " of " + burin::str(x.spec()));
  Tensor at = burin::unsqueeze(arange(floordiv(all - size, step) + 1) * step, 1) + arange(size);
  return burin::movedim(burin::take(x, at, axis), axis + 1, -1);
}

Tensor diagonal(const Tensor &x, int64_t offset, int64_t axis1, int64_t axis2, Location where) {
  LocationScope scope(inScope(where));
  axis1 = axisOf(x, axis1, "diagonal");
  axis2 = axisOf(x, axis2, "diagonal");
  if (axis1 == axis2)
    throw Error(inScope(where), "diagonal", "the two axes must differ");
  IntList order;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis1 && i != axis2)
      order.push_back(i);
  order.insert(order.end(), {axis1, axis2});
  const Tensor last = burin::transpose(x, order);
  Shape flat = last.shape();
  const Dim columns = flat.back(), rows = flat[flat.size() - 2];
  flat.pop_back();
  flat.back() = rows * columns;
  const Dim length = max(min(rows + std::min<int64_t>(offset, 0), columns - std::max<int64_t>(offset, 0)), 0);
  const Tensor start = offset >= 0 ? Tensor(offset) : Tensor(columns * -offset);
  return take(reshape(last, flat), arange(length) * (columns + 1) + start, -1);
}

Tensor diag(const Tensor &x, int64_t offset, Location where) {
  LocationScope scope(inScope(where));
  if (x.rank() == 2)
    return diagonal(x, offset);
  if (x.rank() != 1)
    throw Error(inScope(where), "diag", "it takes a vector or a matrix, not " + str(x.spec()));
  const Dim size = x.shape()[0] + std::abs(offset);
  Tensor row = iota({size, size}, DType::i64, 0), column = iota({size, size}, DType::i64, 1);
  const IntList before{std::max<int64_t>(offset, 0)}, after{std::max<int64_t>(-offset, 0)};
  // Element of row i is number i of x, after as many rows as the diagonal starts below the top.
  Tensor byRow = unsqueeze(burin::pad(x, after, before), 1);
  return burin::where(column - row == offset, byRow, zeros_like(byRow));
}

Tensor hstack(const std::vector<Tensor> &xs, Location where) {
  LocationScope scope(inScope(where));
  std::vector<Tensor> parts;
  for (const Tensor &x : xs)
    parts.push_back(x.rank() == 0 ? reshape(x, {1}) : x);
  return concat(parts, !parts.empty() && parts[0].rank() > 1 ? 1 : 0);
}
Tensor vstack(const std::vector<Tensor> &xs, Location where) {
  LocationScope scope(inScope(where));
  std::vector<Tensor> rows;
  for (const Tensor &x : xs)
    rows.push_back(x.rank() == 0 ? reshape(x, {1, 1}) : x.rank() == 1 ? unsqueeze(x, 0) : x);
  return concat(rows, 0);
}

std::vector<Tensor> meshgrid(const std::vector<Tensor> &xs, const std::string &indexing, Location where) {
  LocationScope scope(inScope(where));
  if (indexing != "ij" && indexing != "xy")
    throw Error(inScope(where), "meshgrid", "the indexing \"" + indexing + "\" is neither \"ij\" nor \"xy\"");
  Shape shape;
  for (const Tensor &x : xs) {
    if (x.rank() != 1)
      throw Error(inScope(where), "meshgrid", "it takes vectors, not " + str(x.spec()));
    shape.push_back(x.shape()[0]);
  }
  std::vector<Tensor> grids;
  for (size_t i = 0; i < xs.size(); ++i) {
    Shape alone(xs.size(), Dim(1));
    alone[i] = shape[i];
    Tensor grid = broadcast_to(reshape(xs[i], alone), shape);
    grids.push_back(indexing == "xy" && xs.size() > 1 ? grid.transpose(0, 1) : grid);
  }
  return grids;
}

/// x as i64, after a check that its elements are in [0, end); in a trace and for eager tensors alike, the check is part
/// of the computation, so that it does not wait for x.
static Tensor within(const Tensor &x, const Dim &end, const std::string &message, const Location &where) {
  Tensor wide = x.to(DType::i64);
  return check((wide >= 0) & (wide < sizeTensor(end)), wide, message, where);
}

Tensor one_hot(const Tensor &x, const Dim &classes, Location where) {
  LocationScope scope(inScope(where));
  if (isFloat(x.dtype()) || isBool(x.dtype()))
    throw Error(inScope(where), "one_hot", "classes are integers, not " + str(x.spec()));
  Dim count = classes;
  if (classes == Dim(-1)) {
    if (elements(x.shape()) == Dim(0))
      throw Error(inScope(where), "one_hot", str(x.spec()) + " has no elements to count classes of; give their number");
    count = Dim(max(x).item<int64_t>(inScope(where)) + 1);
  }
  Tensor wide =
      within(x, count, "one_hot: a class is out of range: there are " + count.str() + ", from 0 on", inScope(where));
  return (unsqueeze(wide, -1) == arange(count)).to(DType::i64);
}

Tensor bincount(const Tensor &x, const Dim &minlength, Location where) {
  LocationScope scope(inScope(where));
  if (isFloat(x.dtype()))
    throw Error(inScope(where), "bincount", "it counts integers, not " + str(x.spec()));
  Tensor flat = reshape(x.to(DType::i64), {elements(x.shape())});
  Dim bins = minlength;
  if (!x.isTraced() && minlength.isStatic() && elements(x.shape()) != Dim(0))
    bins = Dim(std::max(minlength.value(), max(flat).item<int64_t>(inScope(where)) + 1));
  flat = within(flat, bins,
                "bincount: a value is negative, or not less than minlength, " + bins.str() +
                    ", which is the number of bins in a traced function",
                inScope(where));
  return sum((unsqueeze(arange(bins), 1) == flat).to(DType::i64), 1);
}

/// The tensor, repeated before and after its ends.
static Tensor circular(const Tensor &x, const std::vector<int64_t> &low, const std::vector<int64_t> &high,
                       const Location &where) {
  Tensor result = x;
  for (size_t i = 0; i < low.size(); ++i) {
    const Dim &size = x.shape()[i];
    if (size.isStatic() && std::max(low[i], high[i]) > size.value())
      throw Error(inScope(where), "pad",
                  "a circular padding of " + std::to_string(std::max(low[i], high[i])) + " is more than dimension " +
                      std::to_string(i) + " of " + str(x.spec()) + " has elements");
    if (low[i] || high[i])
      result = take(result, remainder(arange(size + (low[i] + high[i])) - low[i], sizeTensor(size)), int64_t(i));
  }
  return result;
}

Tensor detail::padded(const Tensor &x, const Padding &padding, const std::string &mode, double value) {
  LocationScope scope(inScope(padding.where));
  const size_t rank = size_t(x.rank());
  std::vector<int64_t> low(rank, 0), high(rank, 0);
  if (!padding.perDimension.empty() && padding.perDimension.size() != rank)
    throw Error(inScope(padding.where), "pad",
                "there are " + std::to_string(padding.perDimension.size()) + " pairs for the " + std::to_string(rank) +
                    " dimensions of " + str(x.spec()));
  if (padding.fromLast.size() % 2 || padding.fromLast.size() > 2 * rank)
    throw Error(inScope(padding.where), "pad",
                "the list has " + std::to_string(padding.fromLast.size()) +
                    " numbers, but takes two for each dimension from the last one of " + str(x.spec()));
  for (size_t i = 0; i < padding.perDimension.size(); ++i)
    std::tie(low[i], high[i]) = padding.perDimension[i];
  for (size_t i = 0; i < padding.fromLast.size(); i += 2) {
    low[rank - 1 - i / 2] = padding.fromLast[i];
    high[rank - 1 - i / 2] = padding.fromLast[i + 1];
  }
  if (mode == "circular")
    return circular(x, low, high, padding.where);
  return burin::pad(x, low, high, mode == "replicate" ? "edge" : mode, value);
}

} // namespace burin
