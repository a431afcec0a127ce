// Pooling over 1, 2 and 3 dimensions.
#include "burin/functional.h"
#include "burin/nn/activations.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/context/LocationScope.h"

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

SortResult MaxPoolNd::forward_with_indices(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return detail::maxPoolWithIndices(kernel.size(), x, kernel, options.stride, options.padding, options.dilation,
                                    options.ceil_mode, kind().c_str(), where);
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

Tensor AdaptiveMaxPoolNd::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return detail::adaptiveMaxPool(kind().c_str(), output.size(), x, output, where);
}

MaxUnpoolNd::MaxUnpoolNd(const char *kind, size_t dimensions, IntList size, IntList givenStride, IntList givenPadding,
                         const Location &where)
    : Module(kind, where), kernel(perDimension(std::move(size), dimensions, 1, kind, "kernel", where)),
      stride(std::move(givenStride)), padding(std::move(givenPadding)) {
  describe(text(kernel));
  requireWindow({stride, padding, {}}, dimensions, kind, where);
}
Tensor MaxUnpoolNd::operator()(const Tensor &x, const Tensor &indices, const Shape &output_size, Location where) const {
  ModuleScope inModule(*this);
  return detail::maxUnpool(kernel.size(), x, indices, kernel, stride, padding, output_size, kind().c_str(), where);
}

LPPoolNd::LPPoolNd(const char *kind, size_t dimensions, double p, IntList size, IntList givenStride, bool ceil_mode,
                   const Location &where)
    : Module(kind, where), p(p), kernel(perDimension(std::move(size), dimensions, 1, kind, "kernel", where)),
      stride(std::move(givenStride)), ceil_mode(ceil_mode) {
  require(p > 0, kind, "the power must be positive", where);
  describe(text(kernel));
  requireWindow({stride, {}, {}}, dimensions, kind, where);
}
Tensor LPPoolNd::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return detail::lpPool(kernel.size(), x, p, kernel, stride, ceil_mode, kind().c_str(), where);
}

} // namespace burin::nn
