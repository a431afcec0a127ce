// Convolutions over 1 to 3 spatial dimensions, all computed with three in the order [N, C, D, H, W].
#include "ir/reference/ReferenceUtil.h"
#include <algorithm>
#include <array>

namespace burin::ir::ref {

namespace {

using Triple = std::array<int64_t, 3>;

/// Geometry of the window, with leading spatial dimensions of size 1 if there are fewer than three.
struct Geometry {
  Triple kernel{1, 1, 1}, stride{1, 1, 1}, low{0, 0, 0}, dilation{1, 1, 1};
  int64_t groups = 1;
};

/// Copies a list with one entry per spatial dimension, right-aligned; other entries keep their value.
void align(Triple &to, std::span<const int64_t> from) {
  std::copy(from.begin(), from.end(), to.end() - int64_t(from.size()));
}

Geometry geometryOf(const RefCall &call, std::span<const int64_t> kernel) {
  Geometry g;
  size_t spatial = kernel.size();
  align(g.kernel, kernel);
  align(g.stride, call.attr<Sizes>("strides"));
  align(g.dilation, call.attr<Sizes>("dilations"));
  const auto &padding = call.attr<Sizes>("padding");
  align(g.low, std::span(padding).first(std::min(padding.size(), spatial)));
  g.groups = call.attr<int64_t>("groups");
  return g;
}

/// [A, B, spatial…] as [A, B, D, H, W].
std::array<int64_t, 5> five(const Sizes &shape) {
  std::array<int64_t, 5> to{shape[0], shape[1], 1, 1, 1};
  std::copy(shape.begin() + 2, shape.end(), to.end() - int64_t(shape.size() - 2));
  return to;
}
Triple spatialOf(const std::array<int64_t, 5> &shape) { return {shape[2], shape[3], shape[4]}; }

/// The range of o for which 0 <= o * stride + shift < size, within [0, count).
std::pair<int64_t, int64_t> insideRange(int64_t shift, int64_t stride, int64_t size, int64_t count) {
  int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  int64_t end = size > shift ? (size - shift - 1) / stride + 1 : 0;
  return {first, std::min(end, count)};
}

/// Calls f(small, large, count) for every tap and row: element i of `small` pairs with element i * stride[2] of `large`
/// for i < count, where large = small * stride - low + tap * dilation.
template <class F>
void forEachRow(const Geometry &g, const Triple &tap, const Triple &small, const Triple &large, F f) {
  auto shift = [&](size_t d) { return tap[d] * g.dilation[d] - g.low[d]; };
  auto range = [&](size_t d) { return insideRange(shift(d), g.stride[d], large[d], small[d]); };
  auto [d0, d1] = range(0);
  auto [h0, h1] = range(1);
  auto [w0, w1] = range(2);
  for (int64_t d = d0; d < d1; ++d)
    for (int64_t h = h0; h < h1; ++h)
      if (w0 < w1)
        f((d * small[1] + h) * small[2] + w0,
          ((d * g.stride[0] + shift(0)) * large[1] + h * g.stride[1] + shift(1)) * large[2] + w0 * g.stride[2] +
              shift(2),
          w1 - w0);
}

/// Calls f(tap, position in the kernel) for every tap.
template <class F> void forEachTap(const Triple &kernel, F f) {
  int64_t position = 0;
  for (int64_t d = 0; d < kernel[0]; ++d)
    for (int64_t h = 0; h < kernel[1]; ++h)
      for (int64_t w = 0; w < kernel[2]; ++w)
        f(Triple{d, h, w}, position++);
}

/// Geometry shared by conv and conv_transpose. `small` has one element per window: it is the result of conv, the input
/// of conv_transpose. The weight is [small channels, large channels / groups, kernel…] for both.
struct Sides {
  std::array<int64_t, 5> small, large;
};

/// Calls f(small offset, large offset, weight offset, count) for every row of products.
template <class F> void forEachProduct(const Geometry &g, const Sides &sides, F f) {
  Triple smallSize = spatialOf(sides.small), largeSize = spatialOf(sides.large);
  int64_t smallPlane = product(smallSize), largePlane = product(largeSize), taps = product(g.kernel);
  int64_t smallChannels = sides.small[1], largeChannels = sides.large[1];
  int64_t smallGroup = smallChannels / g.groups, largeGroup = largeChannels / g.groups;
  for (int64_t n = 0; n < sides.small[0]; ++n)
    for (int64_t s = 0; s < smallChannels; ++s)
      for (int64_t l = 0; l < largeGroup; ++l) {
        int64_t smallBase = (n * smallChannels + s) * smallPlane;
        int64_t largeBase = (n * largeChannels + s / smallGroup * largeGroup + l) * largePlane;
        forEachTap(g.kernel, [&](const Triple &tap, int64_t position) {
          forEachRow(g, tap, smallSize, largeSize, [&](int64_t small, int64_t large, int64_t count) {
            f(smallBase + small, largeBase + large, (s * largeGroup + l) * taps + position, count);
          });
        });
      }
}

/// Calls f with the elements as doubles, or as unsigned words, whose products and sums wrap.
template <class F> void withArithmetic(RefTensor &y, const RefTensor &x, const RefTensor &weight, F f) {
  if (isFloat(y.dtype))
    return f(y.reals().data(), x.reals().data(), weight.reals().data());
  auto words = [](const RefTensor &t) { return reinterpret_cast<const uint64_t *>(t.ints().data()); };
  f(reinterpret_cast<uint64_t *>(y.ints().data()), words(x), words(weight));
}

void addBias(RefCall &call, RefTensor &y) {
  if (!call.has(2))
    return;
  AxisSplit split(y.shape, 1);
  withElements(y, call.in(2), [&](auto &to, const auto &bias) {
    for (int64_t i = 0; i < int64_t(to.size()); ++i)
      to[size_t(i)] = wrappingSum(to[size_t(i)], bias[size_t(i / split.inner % split.size)]);
  });
}

bool checkSides(RefCall &call, const Geometry &g, const Sides &sides, const Sizes &weight) {
  bool fits = g.groups > 0 && sides.small[0] == sides.large[0] && sides.small[1] == weight[0] &&
              sides.small[1] % g.groups == 0 && sides.large[1] == weight[1] * g.groups;
  return call.require(fits, "x " + str(call.in().shape) + " and weight " + str(weight) + " do not fit in " +
                                std::to_string(g.groups) + " groups");
}

bool convChannelsFirst(RefCall &call, const RefTensor &x, const RefTensor &weight, RefTensor &y) {
  Geometry g = geometryOf(call, std::span(weight.shape).subspan(2));
  Sides sides{five(y.shape), five(x.shape)};
  if (!checkSides(call, g, sides, weight.shape))
    return false;
  withArithmetic(y, x, weight, [&](auto *to, const auto *from, const auto *w) {
    forEachProduct(g, sides, [&](int64_t small, int64_t large, int64_t tap, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        to[small + i] += w[tap] * from[large + i * g.stride[2]];
    });
  });
  addBias(call, y);
  return true;
}

/// The permutation that moves the last dimension to position 1, and for weights the first ones to the end.
Sizes channelsFirst(size_t rank) {
  Sizes perm{0, int64_t(rank) - 1};
  for (int64_t d = 1; d + 1 < int64_t(rank); ++d)
    perm.push_back(d);
  return perm;
}
Sizes channelsLast(size_t rank) {
  Sizes perm{0};
  for (int64_t d = 2; d < int64_t(rank); ++d)
    perm.push_back(d);
  perm.push_back(1);
  return perm;
}

bool conv(RefCall &call) {
  const RefTensor &x = call.in(), &weight = call.in(1);
  size_t rank = x.shape.size();
  if (call.attr<std::string>("layout") == "nchw")
    return convChannelsFirst(call, x, weight, call.out());
  // The weight is [kernel…, C/groups, O].
  Sizes weightPerm{int64_t(rank) - 1, int64_t(rank) - 2};
  for (int64_t d = 0; d + 2 < int64_t(rank); ++d)
    weightPerm.push_back(d);
  RefTensor y = transposed(call.out(), channelsFirst(rank));
  if (!convChannelsFirst(call, transposed(x, channelsFirst(rank)), transposed(weight, weightPerm), y))
    return false;
  call.out() = transposed(y, channelsLast(rank));
  return true;
}

bool convTranspose(RefCall &call) {
  const RefTensor &x = call.in(), &weight = call.in(1);
  RefTensor &y = call.out();
  Geometry g = geometryOf(call, std::span(weight.shape).subspan(2));
  Sides sides{five(x.shape), five(y.shape)};
  if (!checkSides(call, g, sides, weight.shape))
    return false;
  withArithmetic(y, x, weight, [&](auto *to, const auto *from, const auto *w) {
    forEachProduct(g, sides, [&](int64_t small, int64_t large, int64_t tap, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        to[large + i * g.stride[2]] += w[tap] * from[small + i];
    });
  });
  addBias(call, y);
  return true;
}

constexpr RefKernelEntry kConvolutionKernels[] = {{"conv", conv}, {"conv_transpose", convTranspose}};

} // namespace

std::span<const RefKernelEntry> convolutionKernels() { return kConvolutionKernels; }

} // namespace burin::ir::ref
