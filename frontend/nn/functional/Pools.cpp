// Pools of a given number of spatial dimensions, with positions, and their inverse.
#include "burin/functional.h"
#include "burin/training/gradients.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/composed/Composed.h"
#include "frontend/tensor/functions/Creation.h"
#include <cmath>
#include <limits>

namespace burin {

using namespace detail;

static void requireImages(size_t dimensions, const Tensor &x, const char *name, const Location &where) {
  if (x.rank(where) != int64_t(dimensions) + 2)
    throw Error(inScope(where), name,
                "x is " + str(x.spec(where)) + ", but must be [N, C] and " + std::to_string(dimensions) +
                    (dimensions == 1 ? " spatial dimension" : " spatial dimensions"));
}
static IntList perSpatialDimension(const IntList &list, size_t dimensions, int64_t least, const char *name,
                                   const char *what, const Location &where) {
  return nn::perDimension(list, dimensions, least, name, what, inScope(where));
}

Tensor detail::maxPoolOf(size_t dimensions, const Tensor &x, const IntList &kernel, const IntList &stride,
                         const IntList &padding, const IntList &dilation, bool ceil_mode, const char *name,
                         const Location &where) {
  requireImages(dimensions, x, name, where);
  return max_pool(x, perSpatialDimension(kernel, dimensions, 1, name, "kernel", where), stride, padding, dilation,
                  ceil_mode, "nchw", where);
}

Tensor detail::avgPoolOf(size_t dimensions, const Tensor &x, const IntList &kernel, const IntList &stride,
                         const IntList &padding, bool ceil_mode, bool count_include_pad, const char *name,
                         const Location &where) {
  requireImages(dimensions, x, name, where);
  return avg_pool(x, perSpatialDimension(kernel, dimensions, 1, name, "kernel", where), stride, padding, {}, ceil_mode,
                  count_include_pad, "nchw", where);
}

Tensor detail::lpPool(size_t dimensions, const Tensor &x, double p, const IntList &kernel, const IntList &stride,
                      bool ceil_mode, const char *name, const Location &where) {
  LocationScope scope(inScope(where));
  if (!(p > 0))
    throw Error(inScope(where), name, "the power " + std::to_string(p) + " must be positive");
  requireImages(dimensions, x, name, where);
  double count = 1;
  const IntList sizes = perSpatialDimension(kernel, dimensions, 1, name, "kernel", where);
  for (int64_t size : sizes)
    count *= double(size);
  return pow(avg_pool(pow(x, p), sizes, stride, {}, {}, ceil_mode) * count, 1 / p);
}

namespace {

/// The windows along one spatial dimension of a pool.
struct PoolAxis {
  int64_t kernel, stride, padding, dilation;
  Dim size, count; // of the dimension, of windows

  PoolAxis(int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, Dim length, bool ceilMode)
      : kernel(kernel), stride(stride), padding(padding), dilation(dilation), size(std::move(length)) {
    const Dim room = size + (2 * padding - (kernel - 1) * dilation - 1);
    count = floordiv(room, stride) + 1;
    if (ceilMode) // a last window starts inside x or the padding before it
      count = min(ceildiv(room, stride) + 1, ceildiv(size + padding, stride));
  }
  /// Positions along the dimension, which may be outside: i64[count, kernel].
  Tensor positions() const {
    return unsqueeze(arange(count) * stride - padding, 1) + unsqueeze(arange(kernel) * dilation, 0);
  }
  /// The same, moved inside.
  Tensor inside(const Tensor &at) const { return minimum(maximum(at, 0), sizeTensor(size) - 1); }
};

Tensor lowestOf(DType dtype) {
  if (isFloat(dtype))
    return full({}, -std::numeric_limits<double>::infinity(), dtype);
  if (dtype == DType::i64)
    return full({}, std::numeric_limits<int64_t>::min());
  const double bits = double(8 * byteWidth(dtype) - 1);
  return full({}, dtype == DType::u8 ? 0 : -std::exp2(bits), dtype);
}

/// All elements of each window, the lowest number for those outside of x: [N, C, counts…, kernels…].
Tensor windowsOf(const Tensor &x, const std::vector<PoolAxis> &axes) {
  Tensor taken = x, isInside;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = int64_t(2 + 2 * i); // each earlier dimension has become two
    const Tensor at = axes[i].positions(), in = axes[i].inside(at);
    taken = take(taken, in, axis);
    Shape shape(2 * axes.size(), Dim(1)); // of the mask without N and C
    shape[2 * i] = axes[i].count, shape[2 * i + 1] = axes[i].kernel;
    const Tensor here = reshape(at == in, shape);
    isInside = isInside.defined() ? isInside & here : here;
  }
  taken = where(isInside, taken, lowestOf(x.dtype()));
  IntList order{0, 1};
  for (size_t part : {0, 1})
    for (size_t i = 0; i < axes.size(); ++i)
      order.push_back(int64_t(2 + 2 * i + part));
  return transpose(taken, order);
}

/// The position in the flattened spatial dimensions of element `tap` of each window.
Tensor positionsOf(Tensor tap, const std::vector<PoolAxis> &axes) {
  std::vector<Tensor> taps(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    taps[i] = remainder(tap, axes[i].kernel);
    tap = floor_divide(tap, axes[i].kernel);
  }
  Tensor position;
  for (size_t i = 0; i < axes.size(); ++i) {
    Shape shape(axes.size(), Dim(1));
    shape[i] = axes[i].count;
    const Tensor start = reshape(arange(axes[i].count) * axes[i].stride - axes[i].padding, shape);
    const Tensor at = axes[i].inside(taps[i] * axes[i].dilation + start);
    position = position.defined() ? position * sizeTensor(axes[i].size) + at : at;
  }
  return position;
}

/// x [N, C, spatial…] as [N, C, elements].
Tensor flatImages(const Tensor &x) {
  const Shape &shape = x.shape();
  return reshape(x, {shape[0], shape[1], elements(Shape(shape.begin() + 2, shape.end()))});
}

} // namespace

SortResult detail::maxPoolWithIndices(size_t dimensions, const Tensor &x, const IntList &kernel, const IntList &stride,
                                      const IntList &padding, const IntList &dilation, bool ceil_mode, const char *name,
                                      const Location &where) {
  LocationScope scope(inScope(where));
  requireImages(dimensions, x, name, where);
  auto each = [&](const IntList &list, int64_t least, const char *what) {
    return perSpatialDimension(list, dimensions, least, name, what, where);
  };
  const IntList sizes = each(kernel, 1, "kernel"), steps = stride.empty() ? sizes : each(stride, 1, "stride"),
                before = each(padding, 0, "padding"), apart = each(dilation, 1, "dilation");
  std::vector<PoolAxis> axes;
  int64_t taps = 1;
  for (size_t i = 0; i < dimensions; ++i) {
    axes.emplace_back(sizes[i], steps[i], before[i], apart[i], x.shape()[2 + i], ceil_mode);
    const PoolAxis &axis = axes.back();
    if (2 * axis.padding > (axis.kernel - 1) * axis.dilation + 1 || (axis.count.isStatic() && axis.count.value() < 1))
      throw Error(inScope(where), name,
                  "a window of " + std::to_string(axis.kernel) + " elements with a padding of " +
                      std::to_string(axis.padding) + " does not fit dimension " + std::to_string(2 + i) + " of " +
                      str(x.spec()) + "; the padding is at most half the window");
    taps *= axis.kernel;
  }
  Tensor windows = windowsOf(isFloat(x.dtype()) ? detach(x) : x, axes);
  Shape shape(windows.shape().begin(), windows.shape().begin() + int64_t(2 + dimensions));
  Shape flat = shape;
  flat.push_back(taps);
  const Tensor places = positionsOf(argmax(reshape(windows, flat), -1), axes);
  return {reshape(gather(flatImages(x), flatImages(places), 2), shape), places};
}

Tensor detail::maxUnpool(size_t dimensions, const Tensor &x, const Tensor &indices, const IntList &kernel,
                         const IntList &stride, const IntList &padding, const Shape &output_size, const char *name,
                         const Location &where) {
  LocationScope scope(inScope(where));
  requireImages(dimensions, x, name, where);
  if (indices.shape() != x.shape() || isFloat(indices.dtype()))
    throw Error(inScope(where), name,
                "the indices are " + str(indices.spec()) + ", but must be integers of the shape of " + str(x.spec()));
  if (!output_size.empty() && output_size.size() != dimensions && output_size.size() != dimensions + 2)
    throw Error(inScope(where), name,
                "the output size " + str(output_size) + " must have " + std::to_string(dimensions) +
                    " spatial sizes, or also those of N and C");
  const IntList sizes = perSpatialDimension(kernel, dimensions, 1, name, "kernel", where),
                steps = stride.empty() ? sizes : perSpatialDimension(stride, dimensions, 1, name, "stride", where),
                before = perSpatialDimension(padding, dimensions, 0, name, "padding", where);
  Shape shape = x.shape();
  for (size_t i = 0; i < dimensions; ++i)
    shape[2 + i] = output_size.empty() ? (shape[2 + i] - 1) * steps[i] + (sizes[i] - 2 * before[i])
                                       : output_size[output_size.size() - dimensions + i];
  const Tensor empty = zeros({shape[0], shape[1], elements(Shape(shape.begin() + 2, shape.end()))}, x.dtype());
  return reshape(scatter(empty, flatImages(indices), flatImages(x), 2), shape);
}

} // namespace burin
