// Resizing of images: interpolation, and pixels from and to channels.
#include "burin/tensor/creation.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>
#include <cmath>
#include <string_view>

namespace burin {

using namespace detail;

namespace {

/// The operands of each element of one dimension of a result: `taps` elements of x with weights.
struct Taps {
  std::vector<std::vector<int64_t>> indices; // [tap][position]
  std::vector<std::vector<double>> weights;
};

/// Keys' cubic kernel, with PyTorch's a = -0.75.
double cubic(double t) {
  constexpr double a = -0.75;
  t = std::abs(t);
  return t <= 1 ? ((a + 2) * t - (a + 3)) * t * t + 1 : t < 2 ? a * (((t - 5) * t + 8) * t - 4) : 0;
}

/// `step` is the distance in x between adjacent elements of the result.
Taps tapsOf(const std::string &mode, int64_t size, int64_t wanted, double step, bool alignCorners) {
  const int count = mode == "nearest" ? 1 : mode == "bicubic" ? 4 : 2;
  Taps taps{std::vector<std::vector<int64_t>>(count), std::vector<std::vector<double>>(count)};
  for (int64_t i = 0; i < wanted; ++i) {
    double at = mode == "nearest" ? std::floor(double(i) * step)
                : alignCorners    ? double(i) * step
                                  : (double(i) + 0.5) * step - 0.5;
    if (count == 2)
      at = std::max(at, 0.0);
    const int64_t first = int64_t(std::floor(at)) - (count == 4);
    for (int tap = 0; tap < count; ++tap) {
      const double far = at - double(first + tap);
      taps.indices[tap].push_back(std::clamp<int64_t>(first + tap, 0, size - 1));
      taps.weights[tap].push_back(count == 1 ? 1 : count == 2 ? 1 - std::abs(far) : cubic(far));
    }
  }
  return taps;
}

Tensor resample(const Tensor &x, int64_t axis, const Taps &taps) {
  if (taps.indices.size() == 1)
    return take(x, following(from_vector(taps.indices[0])), axis);
  Shape shape(x.shape().size(), Dim(1));
  shape[size_t(axis)] = int64_t(taps.weights[0].size());
  Tensor sum;
  for (size_t tap = 0; tap < taps.indices.size(); ++tap) {
    Tensor part = take(x, following(from_vector(taps.indices[tap])), axis) *
                  following(from_vector(taps.weights[tap], shape)).to(x.dtype());
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

/// Modes with the rank that they need; nearest takes 3 to 5.
constexpr std::pair<std::string_view, int64_t> modes[] = {
    {"nearest", 0}, {"linear", 3}, {"bilinear", 4}, {"trilinear", 5}, {"bicubic", 4}};

/// Checks what does not depend on x.
void checkOptions(const nn::UpsampleOptions &options, const char *op, const Location &where) {
  auto require = [&](bool isGood, const std::string &problem) { nn::require(isGood, op, problem, where); };
  require(std::ranges::any_of(modes, [&](auto &mode) { return options.mode == mode.first; }),
          "the mode is \"" + options.mode + "\", but must be nearest, linear, bilinear, trilinear or bicubic");
  require(!options.align_corners || options.mode != "nearest", "align_corners does not go with mode \"nearest\"");
  require(options.size.empty() != options.scale_factor.empty(), "give either size or scale_factor");
  for (int64_t size : options.size)
    nn::requireSize(size, 1, "a size of the result", op, where);
  for (double scale : options.scale_factor)
    require(scale > 0 && std::isfinite(scale),
            "a scale_factor is " + std::to_string(scale) + ", but must be positive and finite");
}

void checkMode(const Tensor &x, const nn::UpsampleOptions &options, const Location &where) {
  checkOptions(options, "interpolate", where);
  const int64_t rank = x.rank(where);
  bool isKnown = std::ranges::any_of(modes, [&](auto &mode) {
    return options.mode == mode.first && (mode.second ? rank == mode.second : rank >= 3 && rank <= 5);
  });
  if (!isKnown)
    throw Error(where, "interpolate",
                "mode \"" + options.mode + "\" does not fit " + str(x.spec(where)) +
                    ": nearest takes [N, C, …] with 1 to 3 spatial dimensions, linear 1, bilinear and bicubic 2, "
                    "trilinear 3");
  if (!isFloat(x.dtype(where)) && options.mode != "nearest")
    throw Error(where, "interpolate",
                "the input is " + str(x.spec(where)) + ", but must be floats; convert it: to(f32)");
}

} // namespace

Tensor interpolate(const Tensor &x, const nn::UpsampleOptions &options, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  checkMode(x, options, place);
  const size_t dimensions = x.shape().size() - 2;
  std::vector<double> scales = options.scale_factor;
  if (scales.size() == 1)
    scales.assign(dimensions, scales[0]);
  nn::IntList sizes = options.size.empty()
                          ? nn::IntList()
                          : nn::perDimension(options.size, dimensions, 1, "interpolate", "size", place);
  if (sizes.empty() && scales.size() != dimensions)
    throw Error(place, "interpolate", "scale_factor takes one number or " + std::to_string(dimensions));
  constexpr double kMostPixels = 0x1p31; // of a dimension
  Tensor result = x;
  for (size_t d = 0; d < dimensions; ++d) {
    const Dim &size = x.shape()[d + 2];
    if (!size.isStatic() || size.value() == 0)
      throw Error(place, "interpolate",
                  "spatial sizes must be known and not 0, but the input is " + str(x.spec()) +
                      "; only the batch may be symbolic");
    const double scaled = sizes.empty() ? std::floor(double(size.value()) * scales[d]) : double(sizes[d]);
    if (!(scaled >= 1 && scaled < kMostPixels))
      throw Error(place, "interpolate",
                  "the result would have a size of " + std::to_string(scaled) + " in dimension " +
                      std::to_string(d + 2));
    const int64_t wanted = int64_t(scaled);
    double step = sizes.empty() ? 1 / scales[d] : double(size.value()) / double(wanted);
    if (options.align_corners)
      step = wanted > 1 ? double(size.value() - 1) / double(wanted - 1) : 0;
    result = resample(result, int64_t(d) + 2, tapsOf(options.mode, size.value(), wanted, step, options.align_corners));
  }
  return result;
}

namespace nn {

Upsample::Upsample(UpsampleOptions given, Location where) : Module("Upsample", where), options(std::move(given)) {
  checkOptions(options, "Upsample", where);
  describe(options.mode);
}
Tensor Upsample::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return interpolate(x, options, where);
}

static void requireImage(const Tensor &x, const char *layer, const Location &where) {
  if (x.rank(where) < 3)
    throw Error(where, layer, "the input is " + burin::str(x.spec(where)) + ", but must be [..., C, H, W]");
}
/// Throws if `size` is known not to be a multiple of `by`.
static void requireMultiple(const Dim &size, int64_t by, const Tensor &x, const char *layer, const Location &where) {
  if (mod(size, by) != Dim(0))
    throw Error(where, layer,
                "the input is " + burin::str(x.spec(where)) + ", of which " + size.str() + " is no multiple of " +
                    std::to_string(by));
}

/// Permutes the last dimensions of x; `order` counts from the first of them.
static Tensor reordered(const Tensor &x, const std::vector<int64_t> &order) {
  std::vector<int64_t> all;
  int64_t before = x.rank() - int64_t(order.size());
  for (int64_t i = 0; i < before; ++i)
    all.push_back(i);
  for (int64_t i : order)
    all.push_back(before + i);
  return transpose(x, all);
}

PixelShuffle::PixelShuffle(int64_t upscale_factor, Location where)
    : Module("PixelShuffle", where), upscale_factor(upscale_factor) {
  requireSize(upscale_factor, 1, "upscale_factor", "PixelShuffle", where);
  describe(text(upscale_factor));
}
Tensor PixelShuffle::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  LocationScope scope(where);
  const Location place = detail::inScope(where);
  requireImage(x, "PixelShuffle", place);
  const int64_t r = upscale_factor;
  Shape shape = x.shape();
  Dim width = shape.back(), height = shape[shape.size() - 2], channels = shape[shape.size() - 3];
  requireMultiple(channels, r * r, x, "PixelShuffle", place);
  shape.resize(shape.size() - 3);
  Shape result = shape;
  for (const Dim &size : {floordiv(channels, r * r), Dim(r), Dim(r), height, width})
    shape.push_back(size);
  for (const Dim &size : {floordiv(channels, r * r), height * r, width * r})
    result.push_back(size);
  return reshape(reordered(reshape(x, shape), {0, 3, 1, 4, 2}), result);
}

PixelUnshuffle::PixelUnshuffle(int64_t downscale_factor, Location where)
    : Module("PixelUnshuffle", where), downscale_factor(downscale_factor) {
  requireSize(downscale_factor, 1, "downscale_factor", "PixelUnshuffle", where);
  describe(text(downscale_factor));
}
Tensor PixelUnshuffle::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  LocationScope scope(where);
  const Location place = detail::inScope(where);
  requireImage(x, "PixelUnshuffle", place);
  const int64_t r = downscale_factor;
  Shape shape = x.shape();
  Dim width = shape.back(), height = shape[shape.size() - 2], channels = shape[shape.size() - 3];
  requireMultiple(height, r, x, "PixelUnshuffle", place);
  requireMultiple(width, r, x, "PixelUnshuffle", place);
  shape.resize(shape.size() - 3);
  Shape result = shape;
  for (const Dim &size : {channels, floordiv(height, r), Dim(r), floordiv(width, r), Dim(r)})
    shape.push_back(size);
  for (const Dim &size : {channels * (r * r), floordiv(height, r), floordiv(width, r)})
    result.push_back(size);
  return reshape(reordered(reshape(x, shape), {0, 2, 4, 1, 3}), result);
}

} // namespace nn
} // namespace burin
