// Gradients of ops that move and select elements.
#include "burin/tensor/creation.h"
#include "frontend/autodiff/gradients/Rules.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include "frontend/trace/Trace.h"

namespace burin::gradients {

Tensor reshapeTo(const Tensor &x, const Shape &shape) {
  if (x.shape() == shape)
    return x;
  if (Trace *trace = Trace::active(); trace && elements(x.shape()) != elements(shape))
    return trace->reshapeUnproved(x, shape, detail::inScope({})); // like the forward call, which has a check
  return reshape(x, shape);
}

Tensor sumTo(const Tensor &x, const Shape &shape) {
  Ints axes;
  size_t added = x.shape().size() - shape.size();
  for (size_t i = 0; i < x.shape().size(); ++i)
    if (i < added || (shape[i - added] == Dim(1) && x.shape()[i] != Dim(1)))
      axes.push_back(int64_t(i));
  return reshapeTo(axes.empty() ? x : reduce_sum(x, axes), shape);
}

Tensor cropTo(const Tensor &x, const Shape &shape) {
  return x.shape() == shape ? x : reshapeTo(slice(x, Shape(shape.size(), 0), shape, Ints(shape.size(), 1)), shape);
}

/// Adds zeros before and after a dimension, as many as the sizes tell.
static Tensor surround(const Tensor &x, int64_t axis, const Dim &low, const Dim &high) {
  std::vector<Tensor> parts{x};
  auto zerosOf = [&](const Dim &size) {
    Shape shape = x.shape();
    shape[size_t(axis)] = size;
    return zeros(shape, x.dtype());
  };
  if (low != Dim(0))
    parts.insert(parts.begin(), zerosOf(low));
  if (high != Dim(0))
    parts.push_back(zerosOf(high));
  return parts.size() == 1 ? x : concat(parts, axis);
}

Tensor unslice(const Tensor &g, const Shape &shape, const Shape &starts, const Ints &steps) {
  size_t rank = shape.size();
  Ints low(rank), high(rank), interior(rank);
  Shape ends(rank);
  for (size_t i = 0; i < rank; ++i) {
    const Dim &taken = g.shape()[i];
    Dim span = taken == Dim(0) ? taken : (taken - 1) * steps[i] + 1;
    ends[i] = shape[i] - starts[i] - span;
    interior[i] = steps[i] - 1;
    if (starts[i].isStatic() && ends[i].isStatic()) {
      low[i] = starts[i].value();
      high[i] = ends[i].value();
    }
  }
  auto isZero = [](const Ints &list) { return std::ranges::all_of(list, [](int64_t n) { return n == 0; }); };
  bool isPadded = !isZero(low) || !isZero(high) || !isZero(interior);
  Tensor result = isPadded ? pad(g, low, high, "constant", 0.0, interior) : g;
  for (size_t i = 0; i < rank; ++i)
    if (!starts[i].isStatic() || !ends[i].isStatic())
      result = surround(result, int64_t(i), starts[i], ends[i]);
  return result;
}

Tensor unprefix(const Tensor &g, const Tensor &x) { return surround(g, 0, 0, x.shape()[0] - g.shape()[0]); }

Ints inverse(const Ints &perm) {
  Ints result(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    result[size_t(perm[i])] = int64_t(i);
  return result;
}

/// Elements [from, to) of one dimension.
static Tensor part(const Tensor &x, int64_t axis, const Dim &from, const Dim &to) {
  Shape starts(x.shape().size(), 0), stops = x.shape();
  starts[size_t(axis)] = from;
  stops[size_t(axis)] = to;
  return slice(x, starts, stops, Ints(starts.size(), 1));
}

std::vector<Tensor> concatGradient(const Tensor &g, const std::vector<Tensor> &xs, int64_t axis) {
  std::vector<Tensor> gradients;
  Dim at = 0;
  for (const Tensor &x : xs) {
    Dim end = at + x.shape()[size_t(axis)];
    gradients.push_back(part(g, axis, at, end));
    at = end;
  }
  return gradients;
}

std::vector<Tensor> stackGradient(const Tensor &g, const std::vector<Tensor> &xs, int64_t axis) {
  std::vector<Tensor> gradients;
  for (size_t i = 0; i < xs.size(); ++i)
    gradients.push_back(squeeze(part(g, axis, int64_t(i), int64_t(i + 1)), {axis}));
  return gradients;
}

Tensor tileGradient(const Tensor &g, const Tensor &x, const Ints &repeats) {
  Shape shape;
  Ints axes;
  for (size_t i = 0; i < repeats.size(); ++i) {
    axes.push_back(int64_t(shape.size()));
    shape.push_back(repeats[i]);
    shape.push_back(x.shape()[i]);
  }
  return axes.empty() ? g : reduce_sum(reshapeTo(g, shape), axes);
}

Tensor padGradient(const Tensor &g, const Tensor &x, const Ints &low, const Ints &high, const std::string &mode,
                   const Ints &interior) {
  Tensor result = g;
  if (mode == "constant") {
    Ints crop, cropEnd, steps;
    for (size_t i = 0; i < low.size(); ++i) {
      crop.push_back(-low[i]);
      cropEnd.push_back(-high[i]);
      steps.push_back((i < interior.size() ? interior[i] : 0) + 1);
    }
    result = pad(g, crop, cropEnd);
    return slice(result, Shape(low.size(), 0), result.shape(), steps);
  }
  for (size_t i = 0; i < low.size(); ++i) { // every element is one of x
    if (low[i] == 0 && high[i] == 0)
      continue;
    Shape shape = result.shape();
    shape[i] = x.shape()[i];
    Tensor source = pad(iota({shape[i]}, DType::i64), {low[i]}, {high[i]}, mode);
    result = takeGradient(result, zeros(shape, x.dtype()), source, int64_t(i));
  }
  return result;
}

// ---- by index

Tensor takeGradient(const Tensor &g, const Tensor &x, const Tensor &indices, int64_t axis) {
  Shape flat = x.shape(), row(flat.size(), 1);
  flat[size_t(axis)] = row[size_t(axis)] = elements(indices.shape());
  Tensor index = broadcast_to(reshapeTo(indices, row), flat);
  return scatter(zeros_like(x), index, reshapeTo(g, flat), axis, "add");
}

Tensor gatherGradient(const Tensor &g, const Tensor &x, const Tensor &indices, int64_t axis) {
  return scatter(zeros_like(x), indices, g, axis, "add");
}

Scatter::Scatter(const Tensor &g, const Tensor &x, const Tensor &indices, const Tensor &updates, const Tensor &result,
                 int64_t axis, const std::string &reduction, bool drop)
    : g(g), x(x), indices(indices), updates(updates), result(result), axis(axis), reduction(reduction), drop(drop),
      places(indices) {
  if (drop) { // indices out of range write nothing
    Tensor n = detail::sizeTensor(g.shape()[size_t(axis)]);
    isWritten = (indices >= -n) & (indices < n);
    places = where(isWritten, indices.to(DType::i64), 0);
  }
}

Tensor Scatter::into(const Tensor &start, const Tensor &values, const std::string &how) const {
  return scatter(start, indices, values, axis, how, drop);
}

/// For min and max: elements that equal the result have equal shares.
Tensor Scatter::share() const {
  Tensor isChosen = updates == read(result);
  Tensor count = into((x == result).to(x.dtype()), isChosen.to(x.dtype()), "add");
  return g / count;
}

static Tensor oneIfZero(const Tensor &x) { return where(x == 0, 1.0, x); }
static Tensor isZero(const Tensor &x) { return (x == 0).to(x.dtype()); }

Scatter::Factors Scatter::factors() const {
  return {into(oneIfZero(x), oneIfZero(updates), "mul"), into(isZero(x), isZero(updates), "add"),
          into(where(x == 0, x, 0.0), where(updates == 0, updates, 0.0), "add")};
}

/// The gradient of a factor: the product of all others.
Tensor Scatter::factorGradient(const Tensor &factor, const Factors &all, const Tensor &g) const {
  const auto &[products, zeros, sum] = all;
  Tensor nonZero = products / oneIfZero(factor);
  Tensor ofZero = where(zeros == 1, products, where(zeros == 2, products * (sum - factor), 0.0));
  Tensor ofOther = where(zeros == 0, nonZero, where(zeros == 1, nonZero * sum, 0.0));
  return g * where(factor == 0, ofZero, ofOther);
}

Tensor Scatter::ofX() const {
  if (reduction == "add")
    return g;
  if (reduction == "set")
    return into(g, zeros_like(updates), "set");
  if (reduction == "mul")
    return factorGradient(x, factors(), g);
  return where(x == result, share(), 0.0);
}

Tensor Scatter::ofUpdates() const {
  Tensor found = read(g), isCounted = isWritten;
  if (reduction == "mul") {
    const Factors all = factors();
    found = factorGradient(updates, {read(all.products), read(all.zeros), read(all.sumOfZeros)}, found);
  } else if (reduction == "min" || reduction == "max") {
    found = where(updates == read(result), read(share()), 0.0);
  } else if (reduction == "set") { // of several updates of one position the last one wins
    Tensor position = reshapeTo(iota({elements(updates.shape())}, DType::i64), updates.shape());
    Tensor isWinner = read(into(full(g.shape(), -1, DType::i64), position, "set")) == position;
    isCounted = isCounted.defined() ? isCounted & isWinner : isWinner;
  }
  return isCounted.defined() ? where(isCounted, found, 0.0) : found;
}

} // namespace burin::gradients
