// Gradients of windows (pooling, convolution). For each tap of the kernel, the elements that all windows read there are
// a strided slice.
#include "burin/tensor/creation.h"
#include "frontend/autodiff/gradients/Rules.h"
#include "frontend/tensor/functions/Creation.h"
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace burin::gradients {

namespace {

/// Padded x, split by taps of the kernel.
class Windows {
public:
  Windows(const Shape &x, const Shape &result, const Window &window) : window(window), x(x), result(result) {
    size_t spatial = window.kernel.size();
    low.assign(2, 0);
    high.assign(2, 0);
    for (size_t i = 0; i < spatial; ++i) {
      Dim behind = (result[2 + i] - 1) * window.strides[i] + reach(i) + 1 - x[2 + i] - window.padding[i];
      low.push_back(window.padding[i]);
      high.push_back(behind.isStatic() ? behind.value() : window.padding[spatial + i] + window.strides[i] - 1);
    }
  }

  Tensor pad(const Tensor &x, double value) const { return burin::pad(x, low, high, "constant", value); }

  /// Calls `visit` for each tap of the kernel, in row-major order.
  void forEach(const std::function<void(const Ints &place)> &visit) const { forEachBelow(window.kernel, visit); }

  /// The elements that all windows read at a tap, from a padded tensor.
  Tensor at(const Tensor &padded, const Ints &place) const {
    Shape starts(2, 0), stops(padded.shape().begin(), padded.shape().begin() + 2);
    Ints steps{1, 1};
    for (size_t i = 0; i < place.size(); ++i) {
      starts.push_back(place[i] * window.dilations[i]);
      stops.push_back(starts.back() + (result[2 + i] - 1) * window.strides[i] + 1);
      steps.push_back(window.strides[i]);
    }
    Shape shape(padded.shape().begin(), padded.shape().begin() + 2);
    shape.insert(shape.end(), result.begin() + 2, result.end()); // of symbolic sizes the slice may say it otherwise
    return reshapeTo(slice(padded, starts, stops, steps), shape);
  }

  /// The gradient of x: the sum over all taps of `share`, the gradient at the tap in the shape of the result.
  ///
  /// Elements are grouped by the remainders of their positions divided by the strides. Each group is a dense tensor, to
  /// which a tap adds its share contiguously; the groups are interleaved at the end.
  Tensor sum(const std::function<Tensor(const Ints &place)> &share) const {
    std::map<Ints, Tensor> sums; // by remainders
    forEach([&](const Ints &place) {
      Ints before(2, 0), behind(2, 0), remainders;
      for (size_t i = 0; i < place.size(); ++i) {
        int64_t offset = place[i] * window.dilations[i], stride = window.strides[i];
        before.push_back(offset / stride);
        behind.push_back(reach(i) / stride - offset / stride);
        remainders.push_back(offset % stride);
      }
      Tensor moved = burin::pad(share(place), before, behind), &sum = sums[remainders];
      sum = sum.defined() ? sum + moved : moved;
    });
    Ints chosen;
    return reshapeTo(crop(interleave(sums, chosen)), x);
  }

private:
  const Window &window;
  const Shape &x, &result;
  Ints low, high;

  /// The distance from the first to the last element of a window.
  int64_t reach(size_t i) const { return (window.kernel[i] - 1) * window.dilations[i]; }

  static void forEachBelow(const Ints &limits, const std::function<void(const Ints &)> &visit) {
    Ints place(limits.size(), 0);
    for (size_t i = place.size(); i > 0;) {
      visit(place);
      for (i = place.size(); i > 0 && ++place[i - 1] == limits[i - 1]; --i)
        place[i - 1] = 0;
    }
  }

  /// Interleaves the groups whose first remainders are `chosen`.
  Tensor interleave(const std::map<Ints, Tensor> &sums, Ints &chosen) const {
    size_t i = chosen.size();
    if (i == window.kernel.size()) {
      auto found = sums.find(chosen);
      return found != sums.end() ? found->second : zeros_like(sums.begin()->second);
    }
    std::vector<Tensor> parts;
    for (int64_t remainder = 0; remainder < window.strides[i]; ++remainder) {
      chosen.push_back(remainder);
      parts.push_back(interleave(sums, chosen));
      chosen.pop_back();
    }
    if (parts.size() == 1)
      return parts[0];
    Shape shape = parts[0].shape();
    shape[2 + i] = shape[2 + i] * window.strides[i];
    return reshapeTo(stack(parts, int64_t(3 + i)), shape);
  }

  /// Removes the padding from a tensor.
  Tensor crop(const Tensor &sum) const {
    Ints before(x.size(), 0), behind(x.size(), 0);
    Shape starts(x.size(), 0), stops = x;
    bool isKnown = true;
    for (size_t i = 2; i < x.size(); ++i) {
      Dim rest = x[i] + low[i] - sum.shape()[i];
      isKnown &= rest.isStatic();
      before[i] = -low[i];
      behind[i] = rest.isStatic() ? rest.value() : window.strides[i - 2] - 1; // upper bound: windows end before that
      starts[i] = low[i];
      stops[i] = x[i] + low[i];
    }
    if (isKnown)
      return burin::pad(sum, before, behind);
    for (int64_t &n : behind)
      n = std::max<int64_t>(n, 0);
    return slice(burin::pad(sum, Ints(x.size(), 0), behind), starts, stops, Ints(x.size(), 1));
  }
};

/// Number of elements that each window averages: [1, 1, spatial…].
Tensor windowSizes(const Windows &windows, const Tensor &x, const Window &window, bool countIncludePad) {
  size_t spatial = window.kernel.size();
  Shape inside{1, 1};
  inside.insert(inside.end(), x.shape().begin() + 2, x.shape().end());
  Tensor counted = windows.pad(ones(inside, x.dtype()), 0);
  if (countIncludePad) { // all except those that ceil_mode adds after the padding
    Shape limits = counted.shape();
    for (size_t i = 0; i < spatial; ++i)
      limits[2 + i] = inside[2 + i] + window.padding[i] + window.padding[spatial + i];
    counted = ones(counted.shape(), x.dtype());
    for (size_t i = 0; i < spatial; ++i)
      counted =
          where(iota(counted.shape(), DType::i64, int64_t(2 + i)) < detail::sizeTensor(limits[2 + i]), counted, 0.0);
  }
  Tensor sizes;
  windows.forEach([&](const Ints &place) {
    Tensor inWindow = windows.at(counted, place);
    sizes = sizes.defined() ? sizes + inWindow : inWindow;
  });
  return sizes;
}

} // namespace

Tensor maxPoolGradient(const Tensor &g, const Tensor &x, const Tensor &result, const Window &window) {
  Windows windows(x.shape(), result.shape(), window);
  Tensor padded = windows.pad(x, -INFINITY);
  std::vector<Tensor> isLargest;
  windows.forEach([&](const Ints &place) { isLargest.push_back(windows.at(padded, place) == result); });
  Tensor first = full(result.shape(), -1, DType::i32); // index of the tap
  for (size_t i = isLargest.size(); i-- > 0;)
    first = where(isLargest[i], int64_t(i), first);
  int64_t next = 0;
  return windows.sum([&](const Ints &) { return where(first == next++, g, 0.0); });
}

Tensor avgPoolGradient(const Tensor &g, const Tensor &x, const Window &window, bool ceilMode, bool countIncludePad) {
  Windows windows(x.shape(), g.shape(), window);
  bool isPadded = std::ranges::any_of(window.padding, [](int64_t n) { return n != 0; });
  double size = 1;
  for (int64_t n : window.kernel)
    size *= double(n);
  bool isUniform = !ceilMode && (countIncludePad || !isPadded);
  Tensor share = isUniform ? g / size : g / windowSizes(windows, x, window, countIncludePad);
  return windows.sum([&](const Ints &) { return share; });
}

/// Products of the elements at each tap with g, for sizes that a convolution does not accept as a kernel's.
Tensor kernelGradientByPlaces(const Tensor &g, const Tensor &x, const Tensor &weight, const Window &window,
                              int64_t groups) {
  const int64_t spatial = int64_t(window.kernel.size());
  Windows windows(x.shape(), g.shape(), window);
  auto grouped = [&](const Tensor &t) { // [batch, groups, channels of a group, spatial…]
    Shape shape{t.shape()[0], groups, floordiv(t.shape()[1], groups)};
    shape.insert(shape.end(), t.shape().begin() + 2, t.shape().end());
    return reshapeTo(t, shape);
  };
  Ints summed{0}; // batch and positions
  for (int64_t i = 0; i < spatial; ++i)
    summed.push_back(3 + i);
  Tensor padded = windows.pad(x, 0), ofResult = grouped(g);
  std::vector<Tensor> products; // [groups, results of a group, channels of a group]
  windows.forEach([&](const Ints &place) {
    products.push_back(dot_general(ofResult, grouped(windows.at(padded, place)), {1}, {1}, summed, summed));
  });
  return reshapeAs(stack(products, 3), weight);
}

/// [outputs, size]: row i has the weight of each element in the mean i.
static Tensor adaptiveWeights(int64_t outputs, const Dim &size, DType dtype) {
  Tensor i = iota({outputs, 1}, DType::i64), k = iota({1, size}, DType::i64, 1), n = detail::sizeTensor(size);
  Tensor from = floor_divide(i * n, outputs), to = floor_divide((i + 1) * n + (outputs - 1), outputs);
  return where((k >= from) & (k < to), 1.0 / (to - from).to(dtype), 0.0);
}

Tensor adaptiveGradient(const Tensor &g, const Tensor &x, const Ints &outputSize) {
  Tensor result = g;
  for (size_t i = 0; i < outputSize.size(); ++i) {
    int64_t axis = int64_t(2 + i);
    const Dim &size = x.shape()[2 + i];
    if (outputSize[i] == 1) {
      Shape shape = result.shape();
      shape[2 + i] = size;
      result = broadcast_to(result / detail::sizeTensor(size).to(x.dtype()), shape);
      continue;
    }
    Tensor spread = dot_general(result, adaptiveWeights(outputSize[i], size, x.dtype()), {}, {}, {axis}, {0});
    Ints order; // moves the dimension to the end
    for (int64_t k = 0; k < x.rank(); ++k)
      order.push_back(k < axis ? k : k == axis ? x.rank() - 1 : k - 1);
    result = transpose(spread, order);
  }
  return result;
}

} // namespace burin::gradients
