// Functions under PyTorch's names, see burin/functional.h.
#include "burin/functional.h"
#include "burin/nn/layers.h"
#include "frontend/tensor/composed/Composed.h"
#include <cmath>
#include <numbers>

namespace burin {

using namespace detail;

static void requireRank(const Tensor &x, int64_t rank, const char *op, const Location &where) {
  if (x.rank() != rank)
    throw Error(inScope(where), op,
                "an operand must have " + std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions") + ", but " +
                    str(x.spec()) + " has not");
}
/// True on the diagonal of [size, size].
static Tensor onDiagonal(const Dim &size) { return eq(iota({size, 1}, i64, 0), iota({1, size}, i64, 1)); }
static Tensor keptAxis(const Tensor &x, int64_t axis, bool keepdims) { return keepdims ? unsqueeze(x, {axis}) : x; }

Tensor ravel(const Tensor &x, Location where) { return reshape(x, {-1}, where); }

// ---- products

static Tensor productOf(const Tensor &x, int64_t xRank, const Tensor &y, int64_t yRank, const char *op,
                        const Location &where) {
  requireRank(x, xRank, op, where);
  requireRank(y, yRank, op, where);
  return matmul(x, y, where);
}
Tensor mm(const Tensor &x, const Tensor &y, Location where) { return productOf(x, 2, y, 2, "mm", where); }
Tensor bmm(const Tensor &x, const Tensor &y, Location where) { return productOf(x, 3, y, 3, "bmm", where); }
Tensor mv(const Tensor &x, const Tensor &y, Location where) { return productOf(x, 2, y, 1, "mv", where); }
Tensor dot(const Tensor &x, const Tensor &y, Location where) { return productOf(x, 1, y, 1, "dot", where); }
Tensor inner(const Tensor &x, const Tensor &y, Location where) {
  LocationScope scope(inScope(where));
  return x.rank() && y.rank() ? tensordot(x, y, {x.rank() - 1}, {y.rank() - 1}) : x * y;
}
Tensor dist(const Tensor &x, const Tensor &y, double p, Location where) {
  LocationScope scope(inScope(where));
  return norm(x - y, p);
}
Tensor baddbmm(const Tensor &x, const Tensor &a, const Tensor &b, double beta, double alpha, Location where) {
  requireRank(a, 3, "baddbmm", where);
  requireRank(b, 3, "baddbmm", where);
  return addmm(x, a, b, beta, alpha, where);
}

Tensor matrix_power(const Tensor &x, int64_t n, Location where) {
  LocationScope scope(inScope(where));
  if (n < 0)
    throw Error(inScope(where), "matrix_power", "the power " + std::to_string(n) + " must not be negative");
  if (x.rank() < 2)
    requireRank(x, 2, "matrix_power", where);
  if (n == 0)
    return broadcast_to(cast(onDiagonal(x.shape().back()), x.dtype()), x.shape());
  Tensor result, square = x;
  for (int64_t left = n; left > 0; left >>= 1) {
    if (left & 1)
      result = result.defined() ? matmul(result, square) : square;
    if (left > 1)
      square = matmul(square, square);
  }
  return result;
}

Tensor cross(const Tensor &x, const Tensor &y, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  const int64_t at = axisOf(x, axis, "cross");
  if (!(x.shape()[size_t(at)] == Dim(3)))
    throw Error(inScope(where), "cross", "axis " + std::to_string(axis) + " of " + str(x.spec()) + " must have size 3");
  const int64_t other = axisOf(y, axis, "cross");
  auto next = [](const Tensor &t, int64_t by, int64_t along) { return roll(t, -by, along); };
  return next(x, 1, at) * next(y, 2, other) - next(x, 2, at) * next(y, 1, other);
}

Tensor cov(const Tensor &x, int64_t correction, Location where) {
  LocationScope scope(inScope(where));
  requireRank(x, 2, "cov", where);
  Tensor centred = asFloat(x);
  centred = centred - mean(centred, {1}, true);
  return matmul(centred, transpose(centred, {1, 0})) / Tensor(x.size(1) - correction);
}

Tensor pairwise_distance(const Tensor &x, const Tensor &y, double p, double eps, bool keepdims, Location where) {
  LocationScope scope(inScope(where));
  return norm(x - y + eps, p, {-1}, keepdims);
}

// ---- statistics

std::pair<Tensor, Tensor> aminmax(const Tensor &x, Axes axes, bool keepdims, Location where) {
  return {min(x, axes, keepdims, where), max(x, axes, keepdims, where)};
}
std::pair<Tensor, Tensor> var_mean(const Tensor &x, Axes axes, bool keepdims, int64_t correction, Location where) {
  return {var(x, axes, keepdims, correction, where), mean(x, axes, keepdims, where)};
}
std::pair<Tensor, Tensor> std_mean(const Tensor &x, Axes axes, bool keepdims, int64_t correction, Location where) {
  return {stddev(x, axes, keepdims, correction, where), mean(x, axes, keepdims, where)};
}

Tensor quantile(const Tensor &x, double q, int64_t axis, bool keepdims, Location where) {
  LocationScope scope(inScope(where));
  if (!(q >= 0 && q <= 1))
    throw Error(inScope(where), "quantile", "q is " + std::to_string(q) + ", but must be from 0 to 1");
  axis = axisOf(x, axis, "quantile");
  Tensor sorted = sort(asFloat(x), axis).values, place = cast(Tensor(x.size(axis) - 1), f64) * q, low = floor(place);
  Tensor below = take(sorted, cast(low, i64), axis), above = take(sorted, cast(ceil(place), i64), axis);
  Tensor result = lerp(below, above, cast(place - low, sorted.dtype()));
  result = burin::where(any(is_nan(sorted), {axis}), full({}, NAN, sorted.dtype()), result);
  return keptAxis(result, axis, keepdims);
}

Tensor quantile(const Tensor &x, double q, Location where) {
  LocationScope scope(inScope(where));
  return quantile(reshape(x, {elements(x.shape())}), q, 0);
}

Tensor kthvalue(const Tensor &x, const Dim &k, int64_t axis, bool keepdims, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "kthvalue");
  return keptAxis(take(sort(x, axis).values, Tensor(k - 1), axis), axis, keepdims);
}

// ---- elementwise

Tensor signbit(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  Tensor isNegative = x < 0;
  return isFloat(x.dtype()) ? logical_or(isNegative, logical_and(x == 0, reciprocal(x) < 0)) : isNegative;
}
Tensor copysign(const Tensor &x, const Tensor &y, Location where) {
  LocationScope scope(inScope(where));
  Tensor size = abs(asFloat(x));
  return burin::where(signbit(y), -size, size);
}
static Tensor ignoringNaN(const Tensor &x, const Tensor &y, const Tensor &chosen) {
  if (!isFloat(chosen.dtype()))
    return chosen;
  return where(is_nan(x), cast(y, chosen.dtype()), where(is_nan(y), cast(x, chosen.dtype()), chosen));
}
Tensor fmax(const Tensor &x, const Tensor &y, Location where) {
  LocationScope scope(inScope(where));
  return ignoringNaN(x, y, maximum(x, y));
}
Tensor fmin(const Tensor &x, const Tensor &y, Location where) {
  LocationScope scope(inScope(where));
  return ignoringNaN(x, y, minimum(x, y));
}
Tensor deg2rad(const Tensor &x, Location where) { return mul(asFloat(x), std::numbers::pi / 180, where); }
Tensor rad2deg(const Tensor &x, Location where) { return mul(asFloat(x), 180 / std::numbers::pi, where); }
Tensor celu(const Tensor &x, double alpha, Location where) {
  LocationScope scope(inScope(where));
  return maximum(x, 0) + minimum(alpha * expm1(x / alpha), 0);
}
Tensor hardtanh(const Tensor &x, double low, double high, Location where) { return clamp(x, low, high, where); }
Tensor hardshrink(const Tensor &x, double lambd, Location where) {
  LocationScope scope(inScope(where));
  return burin::where(abs(x) <= lambd, zeros_like(x), x);
}
Tensor softshrink(const Tensor &x, double lambd, Location where) {
  LocationScope scope(inScope(where));
  return x - clamp(x, -lambd, lambd);
}
Tensor tanhshrink(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  return x - tanh(x);
}
Tensor threshold(const Tensor &x, double threshold, double value, Location where) {
  LocationScope scope(inScope(where));
  return burin::where(x <= threshold, full_like(x, value), x);
}
Tensor prelu(const Tensor &x, const Tensor &weight, Location where) {
  LocationScope scope(inScope(where));
  requireRank(weight, 1, "prelu", where);
  Shape shape(x.rank() > 1 ? size_t(x.rank() - 1) : 1, Dim(1));
  shape[0] = weight.shape()[0];
  return burin::where(x > 0, x, reshape(weight, shape) * x);
}
Tensor float_power(const Tensor &x, const Tensor &exponent, Location where) {
  return pow(x.to(DType::f64, where), exponent.to(DType::f64, where), where);
}
Tensor ldexp(const Tensor &x, const Tensor &exponent, Location where) {
  LocationScope scope(inScope(where));
  return asFloat(x) * exp2(exponent);
}
Tensor logaddexp2(const Tensor &x, const Tensor &y, Location where) {
  LocationScope scope(inScope(where));
  Tensor larger = maximum(x, y);
  return burin::where(x == y, larger + 1.0, larger + log1p(exp2(-abs(x - y))) * std::numbers::log2e);
}
Tensor isposinf(const Tensor &x, Location where) { return eq(x, std::numeric_limits<double>::infinity(), where); }
Tensor isneginf(const Tensor &x, Location where) { return eq(x, -std::numeric_limits<double>::infinity(), where); }
Tensor isin(const Tensor &x, const Tensor &values, Location where) {
  LocationScope scope(inScope(where));
  return any(unsqueeze(x, {-1}) == ravel(values), {-1});
}
Tensor softmin(const Tensor &x, int64_t axis, Location where) { return softmax(neg(x, where), axis, where); }

// ---- shapes

Tensor fliplr(const Tensor &x, Location where) { return flip(x, 1, where); }
Tensor flipud(const Tensor &x, Location where) { return flip(x, 0, where); }
Tensor rot90(const Tensor &x, int64_t k, int64_t from, int64_t to, Location where) {
  LocationScope scope(inScope(where));
  from = axisOf(x, from, "rot90"), to = axisOf(x, to, "rot90");
  if (from == to)
    throw Error(inScope(where), "rot90", "the axes must differ, both are " + std::to_string(from));
  switch ((k % 4 + 4) % 4) {
  case 1:
    return flip(x, to).transpose(from, to);
  case 2:
    return flip(x, {from, to});
  case 3:
    return flip(x.transpose(from, to), to);
  default:
    return x;
  }
}
std::vector<Tensor> tensor_split(const Tensor &x, int64_t count, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  axis = axisOf(x, axis, "tensor_split");
  if (count < 1)
    throw Error(inScope(where), "tensor_split", "the count " + std::to_string(count) + " must be positive");
  const Dim size = x.shape()[size_t(axis)], each = floordiv(size, count), more = mod(size, count);
  std::vector<Tensor> pieces;
  for (int64_t i = 0; i < count; ++i)
    pieces.push_back(x.slice(axis, each * i + min(more, i), each * (i + 1) + min(more, i + 1)));
  return pieces;
}
/// `count` pieces of one size along `axis`.
static std::vector<Tensor> equalPieces(const Tensor &x, int64_t count, int64_t axis, const char *op,
                                       const Location &where) {
  LocationScope scope(inScope(where));
  if (x.rank() <= axis)
    throw Error(inScope(where), op, str(x.spec()) + " has no dimension " + std::to_string(axis));
  const Dim size = x.shape()[size_t(axis)];
  if (count < 1 || (size.isStatic() && size.value() % count))
    throw Error(inScope(where), op,
                std::to_string(count) + " pieces do not divide dimension " + std::to_string(axis) + " of " +
                    str(x.spec()) + "; tensor_split() makes pieces of different sizes");
  return tensor_split(x, count, axis);
}
std::vector<Tensor> hsplit(const Tensor &x, int64_t count, Location where) {
  return equalPieces(x, count, x.rank(where) == 1 ? 0 : 1, "hsplit", where);
}
std::vector<Tensor> vsplit(const Tensor &x, int64_t count, Location where) {
  if (x.rank(where) < 2)
    throw Error(inScope(where), "vsplit", "it splits tensors of 2 dimensions or more, not " + str(x.spec(where)));
  return equalPieces(x, count, 0, "vsplit", where);
}
std::vector<Tensor> dsplit(const Tensor &x, int64_t count, Location where) {
  return equalPieces(x, count, 2, "dsplit", where);
}
Tensor cartesian_prod(const std::vector<Tensor> &xs, Location where) {
  LocationScope scope(inScope(where));
  std::vector<Tensor> columns;
  for (const Tensor &grid : meshgrid(xs))
    columns.push_back(ravel(grid));
  return columns.size() == 1 ? columns[0] : stack(columns, 1);
}
Tensor vander(const Tensor &x, const Dim &count, bool increasing, Location where) {
  LocationScope scope(inScope(where));
  requireRank(x, 1, "vander", where);
  const Tensor powers = arange(count == Dim(-1) ? x.shape()[0] : count);
  return pow(unsqueeze(x, {1}), increasing ? powers : flip(powers, {0}));
}
Tensor atleast_3d(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  return x.rank() > 2 ? x : unsqueeze(atleast_2d(x), {2});
}
Tensor dstack(const std::vector<Tensor> &xs, Location where) {
  LocationScope scope(inScope(where));
  std::vector<Tensor> parts;
  for (const Tensor &x : xs)
    parts.push_back(atleast_3d(x));
  return concat(parts, 2);
}
Tensor atleast_1d(const Tensor &x, Location where) { return x.rank() ? x : reshape(x, {1}, where); }
Tensor atleast_2d(const Tensor &x, Location where) {
  return x.rank() > 1 ? x : unsqueeze(atleast_1d(x, where), {0}, where);
}
std::vector<Tensor> broadcast_tensors(const std::vector<Tensor> &xs, Location where) {
  LocationScope scope(inScope(where));
  if (xs.empty())
    return {};
  Tensor common = zeros_like(xs[0]);
  for (const Tensor &x : xs)
    common = common + zeros_like(x);
  std::vector<Tensor> results;
  for (const Tensor &x : xs)
    results.push_back(broadcast_to(x, common.shape()));
  return results;
}
Tensor column_stack(const std::vector<Tensor> &xs, Location where) {
  LocationScope scope(inScope(where));
  std::vector<Tensor> columns;
  for (const Tensor &x : xs)
    columns.push_back(x.rank() > 1 ? x : reshape(x, {-1, 1}));
  return concat(columns, 1);
}
Tensor block_diag(const std::vector<Tensor> &xs, Location where) {
  LocationScope scope(inScope(where));
  Dim width = 0, before = 0;
  std::vector<Tensor> blocks, rows;
  for (const Tensor &x : xs) {
    blocks.push_back(atleast_2d(x));
    requireRank(blocks.back(), 2, "block_diag", where);
    width = width + blocks.back().shape()[1];
  }
  for (const Tensor &x : blocks) {
    const Shape &size = x.shape();
    rows.push_back(
        concat({zeros({size[0], before}, x.dtype()), x, zeros({size[0], width - before - size[1]}, x.dtype())}, 1));
    before = before + size[1];
  }
  return concat(rows, 0);
}
Tensor diag_embed(const Tensor &x, Location where) {
  LocationScope scope(inScope(where));
  if (!x.rank())
    requireRank(x, 1, "diag_embed", where);
  return burin::where(onDiagonal(x.shape().back()), unsqueeze(x, {-1}), zeros({}, x.dtype()));
}
Tensor pixel_shuffle(const Tensor &x, int64_t r, Location where) { return nn::PixelShuffle(r, where)(x, where); }
Tensor pixel_unshuffle(const Tensor &x, int64_t r, Location where) { return nn::PixelUnshuffle(r, where)(x, where); }

static Tensor triangle(int64_t rows, int64_t columns, bool isLower, int64_t offset, const Location &where) {
  std::vector<int64_t> places[2];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (isLower ? j - i <= offset : j - i >= offset)
        places[0].push_back(i), places[1].push_back(j);
  const auto count = int64_t(places[0].size());
  places[0].insert(places[0].end(), places[1].begin(), places[1].end());
  return from_vector(places[0], Shape{2, count}, where);
}
Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset, Location where) {
  return triangle(rows, columns, true, offset, where);
}
Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset, Location where) {
  return triangle(rows, columns, false, offset, where);
}
Tensor logspace(double start, double stop, int64_t count, double base, DType dtype, Location where) {
  LocationScope scope(inScope(where));
  return cast(pow(full({}, base, f64), linspace(start, stop, count, f64)), dtype);
}

// ---- layers as functions

static void requireDimensions(size_t dimensions, const Tensor &x, const char *name, const Location &where) {
  requireRank(x, int64_t(dimensions) + 2, name, where);
}
Tensor detail::convOf(size_t dimensions, bool transposed, const Tensor &x, const Tensor &weight,
                      const std::optional<Tensor> &bias, const IntList &stride, const IntList &padding,
                      const IntList &more, int64_t groups, const char *name, const Location &where) {
  requireDimensions(dimensions, x, name, where);
  if (transposed)
    return conv_transpose(x, weight, bias, stride, padding, {}, groups, more, where);
  return conv(x, weight, bias, stride, padding, more, groups, "nchw", where);
}

} // namespace burin
