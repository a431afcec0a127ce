// Pooling over 1, 2 and 3 dimensions.
#include "frontend/nn/Layer.h"
#include "frontend/tensor/context/LocationScope.h"

namespace burin::nn {

MaxPoolNd::MaxPoolNd(const char *kind, size_t dimensions, IntList size, PoolOptions given, const Location &where)
    : Module(kind, where), kernel(perDimension(std::move(size), dimensions, kind, "kernel", where)),
      options(std::move(given)) {
  describe(text(kernel));
}
Tensor MaxPoolNd::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return max_pool(x, kernel, options.stride, options.padding, options.dilation, options.ceil_mode, "nchw", where);
}

AvgPoolNd::AvgPoolNd(const char *kind, size_t dimensions, IntList size, AvgPoolOptions given, const Location &where)
    : Module(kind, where), kernel(perDimension(std::move(size), dimensions, kind, "kernel", where)),
      options(std::move(given)) {
  describe(text(kernel));
}
Tensor AvgPoolNd::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return avg_pool(x, kernel, options.stride, options.padding, {}, options.ceil_mode, options.count_include_pad, "nchw",
                  where);
}

AdaptiveAvgPoolNd::AdaptiveAvgPoolNd(const char *kind, size_t dimensions, IntList size, const Location &where)
    : Module(kind, where), output(perDimension(std::move(size), dimensions, kind, "output", where)) {
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

} // namespace burin::nn
