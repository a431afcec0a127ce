// Resizing, and sampling at computed positions.
#include "burin/functional.h"
#include "frontend/onnx/import/tensor/sampling/RoiAlign.h"
#include "frontend/onnx/import/tensor/sampling/SymbolicResize.h"
#include <algorithm>
#include <cmath>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

// ---- resizing, dimension by dimension

/// The resizing of one dimension.
struct Axis {
  int64_t axis, from, to;
  double scale; // its product with `from` may exceed `to` by a fraction
  double cropStart = 0, cropEnd = 1;
  double width() const { return double(from) * scale; }
};

/// The elements of a dimension that contribute to each element of the result, with weights: `count` of each.
struct Taps {
  int64_t count = 0;
  std::vector<int64_t> indices;
  std::vector<float> weights;
  std::vector<bool> isOutside; // outside of the input, where a crop extrapolates
};

struct Sampler {
  std::string mode = "nearest", transform = "half_pixel", rounding = "round_prefer_floor";
  double cubic = -0.75;
  bool antialias = false, excludesOutside = false;

  double position(const Axis &a, int64_t i) const {
    double x = double(i), from = double(a.from), width = a.width();
    if (transform == "asymmetric")
      return x / a.scale;
    if (transform == "tf_half_pixel_for_nn")
      return (x + 0.5) / a.scale;
    if (transform == "align_corners")
      return width == 1 ? 0 : x * (from - 1) / (width - 1);
    if (transform == "tf_crop_and_resize")
      return a.to == 1 ? 0.5 * (a.cropStart + a.cropEnd) * (from - 1)
                       : (a.cropStart + x * (a.cropEnd - a.cropStart) / double(a.to - 1)) * (from - 1);
    if (transform == "pytorch_half_pixel" && a.to == 1)
      return 0;
    double offset = transform == "half_pixel_symmetric" ? from / 2 * (1 - double(a.to) / width) : 0;
    return offset + (x + 0.5) / a.scale - 0.5;
  }

  int64_t nearest(double x) const {
    return int64_t(rounding == "floor"                ? std::floor(x)
                   : rounding == "ceil"               ? std::ceil(x)
                   : rounding == "round_prefer_floor" ? std::ceil(x - 0.5)
                                                      : std::floor(x + 0.5));
  }

  /// The weight of an element at this distance.
  double kernel(double distance) const {
    double d = std::fabs(distance);
    if (mode == "linear")
      return std::max(0.0, 1 - d);
    if (d < 1)
      return ((cubic + 2) * d - (cubic + 3)) * d * d + 1;
    return d < 2 ? ((cubic * d - 5 * cubic) * d + 8 * cubic) * d - 4 * cubic : 0;
  }

  Taps taps(const Axis &a) const {
    Taps taps;
    double stretch = antialias ? std::min(a.scale, 1.0) : 1, reach = (mode == "linear" ? 1 : 2) / stretch;
    taps.count = mode == "nearest" ? 1 : int64_t(std::ceil(2 * reach));
    for (int64_t i = 0; i < a.to; ++i) {
      double x = position(a, i), total = 0;
      int64_t first = mode == "nearest" ? nearest(x) : int64_t(std::floor(x - reach)) + 1;
      std::vector<double> weights;
      for (int64_t k = 0; k < taps.count; ++k) {
        int64_t at = first + k;
        bool isInside = at >= 0 && at < a.from;
        double weight = mode == "nearest" ? 1 : isInside || !excludesOutside ? kernel((double(at) - x) * stretch) : 0;
        taps.indices.push_back(std::clamp<int64_t>(at, 0, a.from - 1));
        weights.push_back(weight);
        total += weight;
      }
      for (double weight : weights)
        taps.weights.push_back(float(weight / total));
      taps.isOutside.push_back(x < 0 || x > double(a.from - 1));
    }
    return taps;
  }
};

/// A product with a matrix of weights, for many taps.
Tensor applyMatrix(const Tensor &x, const Axis &a, const Taps &taps) {
  std::vector<float> matrix(size_t(a.from * a.to), 0);
  for (int64_t i = 0; i < a.to; ++i)
    for (int64_t k = 0; k < taps.count; ++k)
      matrix[size_t(i * a.from + taps.indices[size_t(i * taps.count + k)])] += taps.weights[size_t(i * taps.count + k)];
  Tensor y = dot_general(x, from_vector(matrix, Shape{a.to, a.from}).to(x.dtype()), {}, {}, {a.axis}, {1});
  Ints perm; // moves the new dimension from the end
  for (int64_t i = 0; i < x.rank() - 1; ++i)
    perm.push_back(i);
  perm.insert(perm.begin() + a.axis, x.rank() - 1);
  return transpose(y, perm);
}

Tensor applyTaps(const Tensor &x, const Axis &a, const Taps &taps) {
  constexpr int64_t kFewTaps = 4;
  if (taps.count > kFewTaps)
    return applyMatrix(x, a, taps);
  Tensor sum;
  for (int64_t k = 0; k < taps.count; ++k) {
    Ints indices;
    std::vector<float> weights;
    for (int64_t i = 0; i < a.to; ++i) {
      indices.push_back(taps.indices[size_t(i * taps.count + k)]);
      weights.push_back(taps.weights[size_t(i * taps.count + k)]);
    }
    Tensor part = take(x, from_vector(indices), a.axis);
    if (taps.count > 1) {
      Shape column(size_t(x.rank()), Dim(1));
      column[size_t(a.axis)] = a.to;
      part = part * from_vector(weights, column).to(x.dtype());
    }
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

/// Repeats each element of a dimension: "nearest" with an integer scale, also for symbolic sizes.
Tensor repeatElements(const Tensor &x, int64_t axis, int64_t times) {
  Shape wide = x.shape(), shape = wide;
  wide.insert(wide.begin() + axis + 1, Dim(times));
  shape[size_t(axis)] = shape[size_t(axis)] * times;
  return reshape(broadcast_to(unsqueeze(x, {axis + 1}), wide), shape);
}

/// The dimensions of scales and sizes.
Ints resizedAxes(Node &n) {
  Ints axes = n.attribute("axes", Ints());
  if (!n.hasAttribute("axes"))
    for (int64_t i = 0; i < n.rank(); ++i)
      axes.push_back(i);
  for (int64_t &axis : axes)
    axis = n.axis(axis);
  return axes;
}

/// Adjusts sizes to keep the ratio of the input's sizes, if required.
void keepRatio(Node &n, const Shape &shape, const Ints &axes, std::vector<double> &scales, Shape &sizes) {
  std::string policy = n.attribute("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch")
    return;
  double scale = policy == "not_larger" ? *std::min_element(scales.begin(), scales.end())
                                        : *std::max_element(scales.begin(), scales.end());
  for (size_t i = 0; i < axes.size(); ++i) {
    scales[i] = scale;
    sizes[i] = int64_t(std::floor(scale * double(shape[size_t(axes[i])].value()) + 0.5));
  }
}

/// The new sizes if the scales are computed from sizes; otherwise empty.
Shape symbolicallyScaled(Node &n, const Shape &shape, const Ints &axes, size_t scalesInput) {
  if (!n.has(scalesInput) || !n.value(scalesInput).contents || n.value(scalesInput).contents->isStatic())
    return {};
  const Contents &scales = *n.value(scalesInput).contents;
  Shape sizes;
  for (size_t i = 0; i < axes.size() && i < scales.elements.size(); ++i)
    sizes.push_back(floordiv(shape[size_t(axes[i])] * scales.elements[i], scales.divisors[i]));
  return sizes;
}

/// The scale of each axis that is resized to a size; NAN if it depends on symbols.
std::vector<double> scalesOf(Node &n, const Shape &shape, const Ints &axes, const Shape &sizes) {
  std::vector<double> scales;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim &from = shape[size_t(axes[i])], &to = sizes[i];
    if (from == Dim(0) && to != from)
      n.fail("dimension " + std::to_string(axes[i]) + " is empty, and cannot be resized to " + to.str());
    bool isKnown = from.isStatic() && to.isStatic();
    Dim ratio = isKnown ? Dim(1) : floordiv(to, from);
    bool isMultiple = !isKnown && ratio.isStatic() && ratio * from == to;
    scales.push_back(isKnown      ? double(to.value()) / double(std::max<int64_t>(from.value(), 1))
                     : isMultiple ? double(ratio.value())
                                  : NAN);
    if (std::isnan(scales.back()) && n.attribute("keep_aspect_ratio_policy", "stretch") != "stretch")
      n.unsupported("keeping the ratio", from.isStatic() ? to : from);
  }
  return scales;
}

Values resizeWith(Node &n, Sampler sampler, size_t roiInput, size_t scalesInput, size_t sizesInput) {
  Tensor x = n[0];
  Shape shape = n.shape();
  Ints axes = resizedAxes(n);
  std::vector<double> scales, roi;
  Shape sizes = symbolicallyScaled(n, shape, axes, scalesInput);
  if (sizes.empty() && n.has(scalesInput) && elements(n.shape(scalesInput)) != Dim(0))
    scales = n.reals(scalesInput);
  else if (sizes.empty() && n.hasAttribute("scales"))
    scales = n.attributeReals("scales");
  if (sizes.empty() && scales.empty() && n.has(sizesInput))
    sizes = sampler.antialias || sampler.excludesOutside || sampler.transform == "tf_crop_and_resize" ||
                    n.attribute("keep_aspect_ratio_policy", "stretch") != "stretch"
                ? n.knownSizes(sizesInput)
                : n.sizes(sizesInput);
  if (scales.size() != axes.size() && sizes.size() != axes.size())
    n.fail("it needs one scale or one size for each dimension");
  if (sampler.transform == "tf_crop_and_resize")
    roi = n.reals(roiInput);
  if (!roi.empty() && roi.size() != 2 * axes.size())
    n.fail("roi must have two numbers for each dimension");
  bool areSizes = scales.empty();
  if (areSizes)
    scales = scalesOf(n, shape, axes, sizes);
  constexpr double kLargest = double(int64_t(1) << 30); // limit of scales and sizes
  for (double scale : scales)
    if (!areSizes && !(scale > 0 && scale <= kLargest))
      n.fail("a scale must be above 0 and at most 2^30, got " + std::to_string(scale));
  if (areSizes)
    keepRatio(n, shape, axes, scales, sizes);
  bool isInteger = !isFloat(x.dtype()), isNearest = sampler.mode == "nearest";
  Tensor y = isInteger && !isNearest ? x.to(DType::f32) : x, outside;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = axes[i];
    const Dim &from = shape[size_t(axis)];
    bool isWhole = isNearest && scales[i] == std::floor(scales[i]) && scales[i] >= 1 && roi.empty() &&
                   (sampler.transform == "asymmetric"
                        ? sampler.rounding == "floor"
                        : sampler.transform == "half_pixel" && sampler.rounding.starts_with("round"));
    if (scales[i] == 1 && roi.empty())
      continue;
    if (isWhole) {
      y = repeatElements(y, axis, int64_t(scales[i]));
      continue;
    }
    if (!from.isStatic() || (areSizes && !sizes[i].isStatic())) {
      std::optional<Dim> to = areSizes ? sizes[i] : scaledSize(from, scales[i]);
      if (!to || !roi.empty() || sampler.antialias || sampler.excludesOutside)
        n.unsupported("resizing in this way", from.isStatic() ? *to : from);
      Tensor scale = areSizes ? sizeTensor(*to).to(DType::f64) / sizeTensor(from).to(DType::f64)
                              : full(Shape{}, scales[i], DType::f64);
      y = resizeSymbolic(y, axis, *to, scale, {sampler.mode, sampler.transform, sampler.rounding, sampler.cubic});
      continue;
    }
    Axis a{axis, from.value(), 0, scales[i]};
    if (!roi.empty()) {
      a.cropStart = roi[i];
      a.cropEnd = roi[axes.size() + i];
    }
    double exact =
        areSizes ? double(sizes[i].value()) : std::floor(double(a.from) * a.scale * (a.cropEnd - a.cropStart));
    if (a.from < 1 || !(exact >= 1 && exact <= kLargest))
      n.fail("dimension " + std::to_string(axis) + " cannot be resized from " + std::to_string(a.from) + " to " +
             std::to_string(exact));
    a.to = int64_t(exact);
    Taps taps = sampler.taps(a);
    y = applyTaps(y, a, taps);
    if (!roi.empty()) {
      Shape column(shape.size(), Dim(1));
      column[size_t(axis)] = a.to;
      Tensor here = from_vector(taps.isOutside, column);
      outside = outside.defined() ? logical_or(outside, here) : here;
    }
  }
  if (outside.defined())
    y = where(outside, n.attribute("extrapolation_value", 0.0), y);
  return y.to(x.dtype());
}

Values resize(Node &n) {
  Sampler s;
  s.mode = n.attribute("mode", "nearest");
  if (n.opset() < 11) { // scales only, and the simplest coordinate transformation
    s.transform = "asymmetric";
    s.rounding = "floor";
    return resizeWith(n, s, SIZE_MAX, 1, SIZE_MAX);
  }
  s.transform = n.attribute("coordinate_transformation_mode", "half_pixel");
  s.rounding = n.attribute("nearest_mode", "round_prefer_floor");
  s.cubic = n.attribute("cubic_coeff_a", -0.75);
  s.antialias = n.attribute("antialias", int64_t(0));
  s.excludesOutside = n.attribute("exclude_outside", int64_t(0));
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic")
    n.fail("the mode \"" + s.mode + "\" must be nearest, linear or cubic");
  constexpr std::string_view transforms[] = {"asymmetric",           "align_corners",      "half_pixel",
                                             "half_pixel_symmetric", "pytorch_half_pixel", "tf_crop_and_resize",
                                             "tf_half_pixel_for_nn"};
  if (std::find(std::begin(transforms), std::end(transforms), s.transform) == std::end(transforms))
    n.unsupported("the coordinate_transformation_mode \"" + s.transform + "\"");
  return resizeWith(n, s, 1, 2, 3);
}

Values upsample(Node &n) {
  Sampler s;
  s.mode = n.attribute("mode", "nearest");
  s.transform = "asymmetric";
  s.rounding = "floor";
  return resizeWith(n, s, SIZE_MAX, 1, SIZE_MAX);
}

// ---- sampling at computed positions

Values gridSample(Node &n) {
  Tensor x = n[0], grid = n[1];
  Shape shape = x.shape(), places = grid.shape();
  size_t spatial = shape.size() - 2;
  if (shape.size() < 3 || places.size() != shape.size() || places.back() != Dim(int64_t(spatial)))
    n.fail("its inputs " + str(shape) + " and " + str(places) + " do not fit");
  for (size_t d = 0; d < spatial; ++d) {
    if (shape[2 + d] == Dim(0))
      n.unsupported("an image of the size 0");
    requireEqual(max(shape[2 + d], 1), shape[2 + d]);
  }
  std::string mode = n.attribute("mode", "linear");
  mode = mode == "linear" ? "bilinear" : mode == "cubic" ? "bicubic" : mode;
  return grid_sample(x, grid, mode, n.attribute("padding_mode", "zeros"),
                     n.attribute("align_corners", int64_t(0)) != 0);
}

/// Applies theta to the positions of an image.
Values affineGrid(Node &n) {
  Ints size = n.integers(1);
  if (size.size() != 4 && size.size() != 5)
    n.fail("size must be of 2 or 3 spatial dimensions");
  return affine_grid(n[0], Shape(size.begin(), size.end()), n.attribute("align_corners", int64_t(0)) != 0);
}

Values centerCropPad(Node &n) {
  Tensor x = n[0];
  Ints axes = resizedAxes(n), sizes = n.integers(1);
  Shape shape = n.shape(), starts(shape.size(), Dim(0)), stops = shape;
  Ints low(shape.size(), 0), high = low;
  if (sizes.size() != axes.size())
    n.fail("it needs one size for each axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    auto axis = size_t(axes[i]);
    if (!shape[axis].isStatic())
      n.unsupported("a crop", shape[axis]);
    int64_t from = shape[axis].value(), extra = sizes[i] - from;
    low[axis] = std::max<int64_t>(extra, 0) / 2;
    high[axis] = std::max<int64_t>(extra, 0) - low[axis];
    if (extra < 0) {
      starts[axis] = -extra / 2;
      stops[axis] = -extra / 2 + sizes[i];
    }
  }
  return pad(slice(x, starts, stops, Ints(shape.size(), 1)), low, high);
}

constexpr OpEntry table[] = {
    {"AffineGrid", affineGrid, {3}},   {"CenterCropPad", centerCropPad}, {"GridSample", gridSample}, {"Resize", resize},
    {"RoiAlign", roiAlign, {4, 2, 1}}, {"Upsample", upsample},
};

} // namespace

std::span<const OpEntry> samplingOps() { return table; }

} // namespace burin::onnx
