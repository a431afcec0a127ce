// Running extrema, histograms and other statistics, see burin/functional.h.
#include "burin/functional.h"
#include "burin/graph/loops.h"
#include "burin/training/gradients.h"
#include "frontend/tensor/composed/Composed.h"
#include <cmath>

namespace burin {

using namespace detail;

/// Positions by a loop over the values as constants; the values at them have a gradient.
template <class Better>
static SortResult runningBest(const Tensor &x, int64_t axis, const char *op, const Location &where, Better better) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, op);
  const Dim size = x.shape()[size_t(axis)];
  if (size == Dim(0))
    return {x, zeros(x.shape(), DType::i64)};
  Tensor rows = movedim(isFloat(x.dtype()) ? detach(x) : x, axis, 0);
  Tensor first = squeeze(take(rows, Tensor(0).to(DType::i64).reshape({1}), 0), {0});
  auto step = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
    Tensor isBetter = better(elements[0], states[0]);
    if (isFloat(x.dtype())) // a NaN stays the best one
      isBetter = is_nan(elements[0]) | (isBetter & !is_nan(states[0]));
    Tensor place = burin::where(isBetter, elements[1], states[1]);
    return ScanResult{{burin::where(isBetter, elements[0], states[0]), place}, {place}};
  };
  Tensor places = scan(step, {first, zeros(first.shape(), DType::i64)}, {rows, iota({size}, DType::i64)}).outputs[0];
  places = movedim(places, 0, axis);
  return {gather(x, places, axis), places};
}

SortResult cummax(const Tensor &x, int64_t axis, Location where) {
  return runningBest(x, axis, "cummax", where, [](const Tensor &a, const Tensor &b) { return a >= b; });
}
SortResult cummin(const Tensor &x, int64_t axis, Location where) {
  return runningBest(x, axis, "cummin", where, [](const Tensor &a, const Tensor &b) { return a <= b; });
}

Tensor logcumsumexp(const Tensor &given, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  Tensor x = asFloat(given);
  axis = axisOf(x, axis, "logcumsumexp");
  if (x.shape()[size_t(axis)] == Dim(0))
    return x;
  Tensor rows = movedim(x, axis, 0);
  if (rows.dtype() != DType::f64)
    rows = rows.to(DType::f32);
  auto step = [](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
    Tensor sum = logaddexp(states[0], elements[0]);
    return ScanResult{{sum}, {sum}};
  };
  Shape shape(rows.shape().begin() + 1, rows.shape().end());
  const Tensor sums = scan(step, {full(shape, -INFINITY, rows.dtype())}, {rows}).outputs[0];
  return movedim(sums, 0, axis).to(x.dtype());
}

/// The axis of an order statistic; throws if it has no elements.
static int64_t axisWithElements(const Tensor &x, int64_t axis, const char *op, const Location &where) {
  axis = axisOf(x, axis, op);
  if (x.shape()[size_t(axis)] == Dim(0))
    throw Error(inScope(where), op, str(x.spec()) + " has no elements along axis " + std::to_string(axis));
  return axis;
}
static Tensor keptOrRemoved(const Tensor &x, int64_t axis, bool keepdims) { return keepdims ? x : squeeze(x, axis); }

SortResult mode(const Tensor &x, int64_t axis, bool keepdims, Location where) {
  LocationScope scope(inScope(where));
  axis = axisWithElements(x, axis, "mode", where);
  const auto [values, indices] = sort(x, axis);
  // Runs of equal elements, their numbers and lengths; the first of the longest ones has the smallest value.
  const Dim size = x.shape()[size_t(axis)];
  Shape along(size_t(x.rank()), Dim(1));
  along[size_t(axis)] = size;
  const Tensor at = arange(size), before = take(values, maximum(at - 1, 0), axis);
  const Tensor starts = (values != before) | reshape(at == 0, along);
  const Tensor run = cumsum(starts.to(DType::i64), axis) - 1;
  const Tensor counts = scatter(zeros_like(run), run, ones_like(run), axis, "add"), length = gather(counts, run, axis);
  const Tensor first = argmax(length, axis, true), last = first + gather(length, first, axis) - 1;
  return {keptOrRemoved(gather(values, first, axis), axis, keepdims),
          keptOrRemoved(gather(indices, last, axis), axis, keepdims)};
}

/// The elements that are not NaN in order, others after them as infinity, and their number along `axis` (i64, kept).
static std::pair<Tensor, Tensor> sortedNumbers(const Tensor &x, int64_t axis) {
  const Tensor isNumber = !is_nan(x);
  return {sort(burin::where(isNumber, x, full({}, INFINITY, x.dtype())), axis).values,
          sum(isNumber.to(DType::i64), axis, true)};
}
static Tensor nanIfNone(const Tensor &x, const Tensor &count) {
  return burin::where(count == 0, full({}, NAN, x.dtype()), x);
}

Tensor nanmedian(const Tensor &x, int64_t axis, bool keepdims, Location where) {
  LocationScope scope(inScope(where));
  axis = axisWithElements(x, axis, "nanmedian", where);
  if (!isFloat(x.dtype()))
    return median(x, axis, keepdims);
  const auto [sorted, count] = sortedNumbers(x, axis);
  const Tensor middle = maximum(floor_divide(count - 1, 2), 0);
  return keptOrRemoved(nanIfNone(gather(sorted, middle, axis), count), axis, keepdims);
}
Tensor nanmedian(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  return nanmedian(ravel(x), 0);
}

Tensor nanquantile(const Tensor &given, double q, int64_t axis, bool keepdims, Location where) {
  LocationScope scope(inScope(where));
  if (!(q >= 0 && q <= 1))
    throw Error(inScope(where), "nanquantile", "q is " + std::to_string(q) + ", but must be from 0 to 1");
  const Tensor x = asFloat(given);
  axis = axisWithElements(x, axis, "nanquantile", where);
  const auto [sorted, count] = sortedNumbers(x, axis);
  const Tensor place = maximum(count - 1, 0).to(DType::f64) * q, low = floor(place);
  const Tensor below = gather(sorted, low.to(DType::i64), axis),
               above = gather(sorted, ceil(place).to(DType::i64), axis);
  return keptOrRemoved(nanIfNone(lerp(below, above, (place - low).to(x.dtype())), count), axis, keepdims);
}
Tensor nanquantile(const Tensor &x, double q, Location where) {
  LocationScope scope(inScope(where));
  return nanquantile(ravel(x), q, 0);
}

Tensor histc(const Tensor &given, int64_t bins, double low, double high, Location where) {
  LocationScope scope(inScope(where));
  if (bins < 1 || low > high)
    throw Error(inScope(where), "histc",
                "there must be at least one bin, and its bounds must be in order, not " + std::to_string(bins) +
                    " from " + std::to_string(low) + " to " + std::to_string(high));
  const Tensor x = reshape(asFloat(given), {-1});
  Tensor from = full({}, low, x.dtype()), to = full({}, high, x.dtype());
  if (low == high && x.shape()[0] != Dim(0)) {
    from = low == 0 ? min(x) : from;
    to = low == 0 ? max(x) : to;
    Tensor isPoint = from == to;
    from = burin::where(isPoint, from - 1.0, from);
    to = burin::where(isPoint, to + 1.0, to);
  }
  Tensor isCounted = (x >= from) & (x <= to), at = floor((x - from) / (to - from) * double(bins));
  Tensor bin = burin::where(isCounted, minimum(at, double(bins - 1)), 0.0).to(DType::i64);
  return scatter_add(zeros({bins}, x.dtype()), 0, bin, isCounted.to(x.dtype()));
}

Tensor corrcoef(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  Tensor covariances = cov(x, 1, where), deviations = sqrt(diagonal(covariances));
  return clamp(covariances / unsqueeze(deviations, {1}) / deviations, -1.0, 1.0);
}

/// The sums of adjacent elements along `axis`.
static Tensor sumsOfPairs(const Tensor &y, int64_t axis) {
  Tensor at = arange(y.shape()[size_t(axis)] - 1);
  return take(y, at + 1, axis) + take(y, at, axis);
}
Tensor cumulative_trapezoid(const Tensor &y, double dx, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(y, axis, "cumulative_trapezoid");
  return cumsum(sumsOfPairs(y, axis), axis) * (dx / 2);
}
Tensor trapezoid(const Tensor &y, double dx, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(y, axis, "trapezoid");
  return sum(sumsOfPairs(y, axis), axis) * (dx / 2);
}
Tensor trapezoid(const Tensor &y, const Tensor &x, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(y, axis, "trapezoid");
  if (x.rank() != 1 && x.rank() != y.rank())
    throw Error(inScope(where), "trapezoid",
                "the positions must be a vector or have the rank of " + str(y.spec()) + ", but are " + str(x.spec()));
  Tensor widths = diff(x, 1, x.rank() == 1 ? 0 : axis);
  if (x.rank() == 1) {
    Shape shape(size_t(y.rank()), Dim(1));
    shape[size_t(axis)] = widths.shape()[0];
    widths = reshape(widths, shape);
  }
  return sum(sumsOfPairs(y, axis) * widths, axis) / 2;
}

} // namespace burin
