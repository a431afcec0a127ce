// Pooling over 1, 2 and 3 dimensions.
#include "burin/nn/activations.h"
#include "burin/tensor/composed.h"
#include "burin/tensor/creation.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>

namespace burin::nn {

/// A window that sees padding only has no result.
static void requireNarrowPadding(const IntList &kernel, const IntList &padding, const IntList &dilation,
                                 const char *layer, const Location &where) {
  auto at = [](const IntList &list, size_t i, int64_t fallback) {
    return list.empty() ? fallback : list[list.size() == 1 ? 0 : i];
  };
  for (size_t i = 0; i < std::max(kernel.size(), padding.size()); ++i) {
    const size_t dimension = i % kernel.size();
    const int64_t span = (kernel[dimension] - 1) * at(dilation, dimension, 1) + 1, width = at(padding, i, 0);
    require(width < span, layer,
            "padding " + std::to_string(width) + " must be smaller than the window of " + std::to_string(span) +
                ": a window would see padding only",
            where);
  }
}

MaxPoolNd::MaxPoolNd(const char *kind, size_t dimensions, IntList size, PoolOptions given, const Location &where)
    : Module(kind, where), kernel(perDimension(std::move(size), dimensions, 1, kind, "kernel", where)),
      options(std::move(given)) {
  describe(text(kernel));
  requireWindow({options.stride, options.padding, options.dilation}, dimensions, kind, where);
  requireNarrowPadding(kernel, options.padding, options.dilation, kind, where);
}
Tensor MaxPoolNd::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return max_pool(x, kernel, options.stride, options.padding, options.dilation, options.ceil_mode, "nchw", where);
}

AvgPoolNd::AvgPoolNd(const char *kind, size_t dimensions, IntList size, AvgPoolOptions given, const Location &where)
    : Module(kind, where), kernel(perDimension(std::move(size), dimensions, 1, kind, "kernel", where)),
      options(std::move(given)) {
  describe(text(kernel));
  requireWindow({options.stride, options.padding, {}}, dimensions, kind, where);
  requireNarrowPadding(kernel, options.padding, {}, kind, where);
}
Tensor AvgPoolNd::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return avg_pool(x, kernel, options.stride, options.padding, {}, options.ceil_mode, options.count_include_pad, "nchw",
                  where);
}

AdaptiveAvgPoolNd::AdaptiveAvgPoolNd(const char *kind, size_t dimensions, IntList size, const Location &where)
    : Module(kind, where), output(perDimension(std::move(size), dimensions, 1, kind, "output", where)) {
  describe(text(output));
}
Tensor AdaptiveAvgPoolNd::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return adaptive_avg_pool(x, output, "nchw", where);
}

#define BURIN_POOL(dimensions)                                                                                         \
  MaxPool##dimensions##d::MaxPool##dimensions##d(IntList kernel, PoolOptions options, Location where)                  \
      : MaxPoolNd("MaxPool" #dimensions "d", dimensions, std::move(kernel), std::move(options), where) {}              \
  AvgPool##dimensions##d::AvgPool##dimensions##d(IntList kernel, AvgPoolOptions options, Location where)               \
      : AvgPoolNd("AvgPool" #dimensions "d", dimensions, std::move(kernel), std::move(options), where) {}              \
  AdaptiveAvgPool##dimensions##d::AdaptiveAvgPool##dimensions##d(IntList output, Location where)                       \
      : AdaptiveAvgPoolNd("AdaptiveAvgPool" #dimensions "d", dimensions, std::move(output), where) {}
BURIN_POOL(1)
BURIN_POOL(2)
BURIN_POOL(3)
#undef BURIN_POOL

AdaptiveMaxPoolNd::AdaptiveMaxPoolNd(const char *kind, size_t dimensions, IntList size, const Location &where)
    : Module(kind, where), output(perDimension(std::move(size), dimensions, 1, kind, "output", where)) {
  describe(text(output));
}

/// Maxima of windows along one dimension, as many as `count`. Windows that are shorter than others repeat their last
/// element.
static Tensor windowMaxima(const Tensor &x, int64_t axis, int64_t count, const Location &where) {
  const int64_t size = int64_t(x.size(axis, where));
  std::vector<int64_t> starts, ends;
  int64_t longest = 0;
  for (int64_t i = 0; i < count; ++i) {
    starts.push_back(i * size / count);
    ends.push_back(((i + 1) * size + count - 1) / count);
    longest = std::max(longest, ends.back() - starts.back());
  }
  std::vector<int64_t> indices;
  for (size_t i = 0; i < starts.size(); ++i)
    for (int64_t k = 0; k < longest; ++k)
      indices.push_back(std::min(starts[i] + k, ends[i] - 1));
  Tensor windows = index_select(x, axis, from_vector(indices, std::nullopt, where), where);
  return reduce_max(unflatten(windows, axis, {count, longest}, where), {axis + 1}, false, where);
}

Tensor AdaptiveMaxPoolNd::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  const Shape &shape = x.shape(where);
  const size_t spatial = output.size();
  if (shape.size() != spatial + 2 && shape.size() != spatial + 1)
    throw Error(detail::inScope(where), kind(),
                "the input is " + burin::str(x.spec(where)) + ", but must be [N, C] or [C], and " +
                    std::to_string(spatial) + " spatial dimensions");
  Tensor result = x;
  for (size_t i = 0; i < spatial; ++i) {
    const size_t axis = shape.size() - spatial + i;
    if (!shape[axis].isStatic() || shape[axis].value() == 0 || output[i] < 1)
      throw Error(detail::inScope(where), kind(),
                  "the spatial sizes of the input " + burin::str(x.spec(where)) +
                      " must be known and positive, and so must be those of the result");
    result = windowMaxima(result, int64_t(axis), output[i], where);
  }
  return result;
}

} // namespace burin::nn
