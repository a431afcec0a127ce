// Gradients of pooling: the windows' elements at one place of the kernel are a slice, for each place.
#include "burin/creation.h"
#include "frontend/gradients/Rules.h"
#include "frontend/tensor/Creation.h"
#include <algorithm>
#include <cmath>
#include <functional>

namespace burin::gradients {

namespace {

/// x with what windows see around it, taken apart by places of the kernel.
class Windows {
public:
  Windows(const Shape &x, const Shape &result, const Window &window) : window(window) {
    size_t spatial = window.kernel.size();
    low.assign(2, 0);
    high.assign(2, 0);
    padded = {x[0], x[1]};
    for (size_t i = 0; i < spatial; ++i) {
      Dim reached = (result[2 + i] - 1) * window.strides[i] + (window.kernel[i] - 1) * window.dilations[i] + 1;
      Dim behind = reached - x[2 + i] - window.padding[i];
      if (!behind.isStatic())
        throw NoGradient("pooling with a stride over the symbolic size " + x[2 + i].str() +
                         " has no gradient yet; trace it with known spatial sizes");
      low.push_back(window.padding[i]);
      high.push_back(behind.value());
      padded.push_back(reached);
      spans.push_back((result[2 + i] - 1) * window.strides[i] + 1);
    }
  }

  Tensor pad(const Tensor &x, double value) const { return burin::pad(x, low, high, "constant", value); }
  Tensor crop(const Tensor &x) const {
    Ints before = low, behind = high;
    for (Ints *list : {&before, &behind})
      for (int64_t &n : *list)
        n = -n;
    return burin::pad(x, before, behind);
  }

  /// Calls `visit` for each place of the kernel, in row-major order.
  void forEach(const std::function<void(const Ints &place)> &visit) const {
    Ints place(window.kernel.size(), 0);
    for (size_t i = place.size(); i > 0;) {
      visit(place);
      for (i = place.size(); i > 0 && ++place[i - 1] == window.kernel[i - 1]; --i)
        place[i - 1] = 0;
    }
  }
  Tensor at(const Tensor &x, const Ints &place) const {
    Shape from = starts(place), to = x.shape();
    for (size_t i = 0; i < place.size(); ++i)
      to[2 + i] = from[2 + i] + spans[i];
    return slice(x, from, to, steps());
  }
  Tensor put(const Tensor &g, const Ints &place) const { return unslice(g, padded, starts(place), steps()); }

private:
  const Window &window;
  Ints low, high;
  Shape padded, spans;

  Shape starts(const Ints &place) const {
    Shape result(2, 0);
    for (size_t i = 0; i < place.size(); ++i)
      result.push_back(place[i] * window.dilations[i]);
    return result;
  }
  Ints steps() const {
    Ints result{1, 1};
    result.insert(result.end(), window.strides.begin(), window.strides.end());
    return result;
  }
};

void accumulate(Tensor &sum, const Tensor &x) { sum = sum.defined() ? sum + x : x; }

/// How many elements each window is a mean of: [1, 1, spatial…].
Tensor windowSizes(const Windows &windows, const Tensor &x, const Window &window, bool countIncludePad) {
  size_t spatial = window.kernel.size();
  Shape inside{1, 1};
  inside.insert(inside.end(), x.shape().begin() + 2, x.shape().end());
  Tensor counted = windows.pad(ones(inside, x.dtype()), 0);
  if (countIncludePad) { // all but what ceil_mode adds behind the padding
    Shape limits = counted.shape();
    for (size_t i = 0; i < spatial; ++i)
      limits[2 + i] = inside[2 + i] + window.padding[i] + window.padding[spatial + i];
    counted = ones(counted.shape(), x.dtype());
    for (size_t i = 0; i < spatial; ++i)
      counted =
          where(iota(counted.shape(), DType::i64, int64_t(2 + i)) < detail::sizeTensor(limits[2 + i]), counted, 0.0);
  }
  Tensor sizes;
  windows.forEach([&](const Ints &place) { accumulate(sizes, windows.at(counted, place)); });
  return sizes;
}

} // namespace

Tensor maxPoolGradient(const Tensor &g, const Tensor &x, const Tensor &result, const Window &window) {
  Windows windows(x.shape(), result.shape(), window);
  Tensor padded = windows.pad(x, -INFINITY), sum, isOpen;
  windows.forEach([&](const Ints &place) {
    Tensor isLargest = windows.at(padded, place) == result;
    Tensor isFirst = isOpen.defined() ? isLargest & isOpen : isLargest;
    isOpen = isOpen.defined() ? isOpen & !isLargest : !isLargest;
    accumulate(sum, windows.put(where(isFirst, g, 0.0), place));
  });
  return windows.crop(sum);
}

Tensor avgPoolGradient(const Tensor &g, const Tensor &x, const Window &window, bool ceilMode, bool countIncludePad) {
  Windows windows(x.shape(), g.shape(), window);
  bool isPadded = std::ranges::any_of(window.padding, [](int64_t n) { return n != 0; });
  double size = 1;
  for (int64_t n : window.kernel)
    size *= double(n);
  bool isUniform = !ceilMode && (countIncludePad || !isPadded);
  Tensor share = isUniform ? g / size : g / windowSizes(windows, x, window, countIncludePad), sum;
  windows.forEach([&](const Ints &place) { accumulate(sum, windows.put(share, place)); });
  return windows.crop(sum);
}

/// [outputs, size]: row i holds the share of each element in the mean i.
static Tensor adaptiveWeights(int64_t outputs, int64_t size, DType dtype) {
  std::vector<double> weights(size_t(outputs * size), 0);
  for (int64_t i = 0; i < outputs; ++i) {
    int64_t from = i * size / outputs, to = ((i + 1) * size + outputs - 1) / outputs;
    for (int64_t k = from; k < to; ++k)
      weights[size_t(i * size + k)] = 1 / double(to - from);
  }
  return from_vector(weights, Shape{outputs, size}).to(dtype);
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
    if (!size.isStatic())
      throw NoGradient("adaptive_avg_pool of the symbolic size " + size.str() +
                       " has no gradient yet, except to an output of size 1; trace it with known spatial sizes");
    Tensor spread = dot_general(result, adaptiveWeights(outputSize[i], size.value(), x.dtype()), {}, {}, {axis}, {0});
    Ints order; // the dimension is last
    for (int64_t k = 0; k < x.rank(); ++k)
      order.push_back(k < axis ? k : k == axis ? x.rank() - 1 : k - 1);
    result = transpose(spread, order);
  }
  return result;
}

} // namespace burin::gradients
