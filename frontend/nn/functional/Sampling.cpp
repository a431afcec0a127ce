// Sampling of images at computed positions.
#include "burin/functional.h"
#include "burin/tensor/creation.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include <array>

namespace burin {

using namespace detail;

namespace {

struct GridSampler {
  std::string mode, padding;
  bool alignsCorners;

  /// `last` is the largest index: a scalar, as in what follows.
  Tensor reflected(const Tensor &x, const Tensor &last) const {
    double low = alignsCorners ? 0 : -0.5;
    Tensor span = last - 2 * low, period = 2.0 * maximum(span, 0.5); // a span of 0 has one position, which clamp takes
    Tensor t = remainder(abs(x - low), period);
    return where(t > span, period - t, t) + low;
  }
  Tensor padded(const Tensor &x, const Tensor &last) const {
    if (padding == "border" || padding == "reflection")
      return clamp(padding == "border" ? x : reflected(x, last), zeros_like(last), last);
    return x;
  }

  struct Tap {
    Tensor index, weight; // weight 0 outside of the input
  };
  /// The taps of one dimension, for positions from -1 to 1.
  std::vector<Tap> taps(const Tensor &grid, const Dim &size) const {
    Tensor n = sizeTensor(size).to(grid.dtype()), last = n - 1.0, first = zeros_like(last);
    Tensor x = alignsCorners ? (grid + 1.0) * (last * 0.5) : ((grid + 1.0) * n - 1.0) * 0.5;
    std::vector<Tap> taps;
    auto add = [&](const Tensor &at, const Tensor &weight) {
      Tensor isInside = logical_and(at >= 0.0, at <= last);
      Tensor place = padding == "zeros" ? at : padded(at, last);
      taps.push_back(
          {clamp(place, first, last).to(DType::i64), padding == "zeros" ? where(isInside, weight, 0.0) : weight});
    };
    if (mode == "bicubic") {
      Tensor base = floor(x), t = x - base;
      constexpr double a = -0.75;
      auto near = [&](const Tensor &d) { return ((d * (a + 2) - (a + 3)) * d * d) + 1.0; };
      auto far = [&](const Tensor &d) { return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a; };
      add(base - 1.0, far(t + 1.0));
      add(base, near(t));
      add(base + 1.0, near(1.0 - t));
      add(base + 2.0, far(2.0 - t));
      return taps;
    }
    x = padded(x, last);
    if (mode == "nearest") {
      add(round(x), x * 0.0 + 1.0);
      return taps;
    }
    Tensor base = floor(x), t = x - base;
    add(base, 1.0 - t);
    add(base + 1.0, t);
    return taps;
  }
};

void requireOneOf(const std::string &given, std::initializer_list<const char *> names, const char *what, const char *op,
                  const Location &where) {
  std::string list;
  for (const char *name : names) {
    if (given == name)
      return;
    list += (list.empty() ? "\"" : ", \"") + std::string(name) + "\"";
  }
  throw Error(where, op, "the " + std::string(what) + " is \"" + given + "\", but must be one of " + list);
}

} // namespace

Tensor grid_sample(const Tensor &x, const Tensor &grid, const std::string &mode, const std::string &padding_mode,
                   bool align_corners, Location where) {
  LocationScope scope(inScope(where));
  const Location place = inScope(where);
  requireOneOf(mode, {"bilinear", "nearest", "bicubic"}, "mode", "grid_sample", place);
  requireOneOf(padding_mode, {"zeros", "border", "reflection"}, "padding mode", "grid_sample", place);
  const Shape shape = x.shape(), places = grid.shape();
  if (shape.size() < 3 || places.size() != shape.size() || places.back() != Dim(int64_t(shape.size() - 2)))
    throw Error(place, "grid_sample",
                "x " + str(x.spec()) + " and the grid " + str(grid.spec()) +
                    " do not fit\n  x is [N, C, spatial…]; the grid is [N, result sizes…, dimensions], with one "
                    "position per spatial dimension of x");
  if (!isFloat(grid.dtype()))
    throw Error(place, "grid_sample", "the grid " + str(grid.spec()) + " must have floats, positions from -1 to 1");
  const size_t spatial = shape.size() - 2;
  const GridSampler sampler{mode, padding_mode, align_corners};
  const Dim count = elements(Shape(places.begin() + 1, places.end() - 1));
  Tensor flat = reshape(x, {shape[0], shape[1], elements(Shape(shape.begin() + 2, shape.end()))});
  // All combinations of the dimensions' taps, as (index into the flat image, weight).
  std::vector<GridSampler::Tap> all;
  for (size_t d = 0; d < spatial; ++d) {
    const Dim &size = shape[2 + d];
    if (size == Dim(0))
      throw Error(place, "grid_sample", "x " + str(x.spec()) + " has no elements to sample");
    std::vector<GridSampler::Tap> combined;
    for (const auto &tap : sampler.taps(select(grid, -1, int64_t(spatial - 1 - d)), size)) {
      if (d == 0)
        combined.push_back(tap);
      else
        for (const auto &outer : all)
          combined.push_back({outer.index * sizeTensor(size) + tap.index, outer.weight * tap.weight});
    }
    all = std::move(combined);
  }
  Tensor sum;
  for (const auto &tap : all) {
    Tensor at = broadcast_to(reshape(tap.index, {places[0], 1, count}), {shape[0], shape[1], count});
    Tensor part = gather(flat, at, 2) * reshape(tap.weight, {places[0], 1, count});
    sum = sum.defined() ? sum + part : part;
  }
  Shape result(places.begin() + 1, places.end() - 1);
  result.insert(result.begin(), {shape[0], shape[1]});
  return reshape(sum, result).to(x.dtype());
}

Tensor affine_grid(const Tensor &theta, const Shape &size, bool align_corners, Location where) {
  LocationScope scope(inScope(where));
  const Shape spatial(size.begin() + std::min<ptrdiff_t>(2, std::ssize(size)), size.end());
  const auto dimensions = int64_t(spatial.size());
  if (dimensions < 1 || theta.rank() != 3 || !(theta.shape()[1] == Dim(dimensions)) ||
      !(theta.shape()[2] == Dim(dimensions + 1)))
    throw Error(inScope(where), "affine_grid",
                "theta " + str(theta.spec()) + " and the size " + str(size) +
                    " do not fit\n  theta is [N, 2, 3] for the size [N, C, H, W], [N, 3, 4] for [N, C, D, H, W]");
  std::vector<Tensor> coordinates; // innermost dimension first
  for (int64_t d = dimensions; d-- > 0;) {
    const Dim &count = spatial[size_t(d)];
    Tensor i = iota(spatial, theta.dtype(), d), n = sizeTensor(count).to(theta.dtype());
    if (align_corners)
      coordinates.push_back(burin::where(n == 1.0, 0.0, i * (2.0 / maximum(n - 1.0, 1.0)) - 1.0));
    else
      coordinates.push_back((i * 2.0 + 1.0) / n - 1.0);
  }
  coordinates.push_back(full(spatial, 1, theta.dtype()));
  Tensor base = reshape(stack(coordinates, -1), {elements(spatial), dimensions + 1});
  Shape result = spatial;
  result.insert(result.begin(), theta.shape()[0]);
  result.push_back(dimensions);
  return reshape(matmul(base, transpose(theta, {0, 2, 1})), result);
}

} // namespace burin
