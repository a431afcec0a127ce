// Convolutions and transposed convolutions over 1, 2 and 3 dimensions.
#include "frontend/nn/Layer.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>

namespace burin::nn {

/// The shape of a weight with `second` channels, divided by the groups, in dimension 1.
static Shape convShape(int64_t first, int64_t second, int64_t groups, const IntList &kernel, size_t dimensions,
                       const char *layer, const Location &where) {
  requireSize(first, 1, "the number of channels", layer, where);
  requireSize(second, 1, "the number of channels", layer, where);
  if (groups < 1 || first % groups || second % groups)
    throw Error(detail::inScope(where), layer,
                std::to_string(groups) + " groups do not divide " +
                    std::to_string(groups < 1 || second % groups ? second : first) + " channels");
  Shape shape{first, second / groups};
  for (int64_t size : perDimension(kernel, dimensions, 1, layer, "kernel", where))
    shape.push_back(size);
  return shape;
}

ConvNd::ConvNd(const char *kind, size_t dimensions, int64_t in, int64_t out, const IntList &kernel, ConvOptions given,
               const Location &where)
    : Module(kind, where), options(std::move(given)) {
  describe(listed(in, out, kernel));
  Shape shape = convShape(out, in, options.groups, kernel, dimensions, kind, where);
  requireWindow({options.stride, options.padding, options.dilation}, dimensions, kind, where);
  weight = register_parameter("weight", weightFor(shape, where), where);
  if (options.bias)
    bias = register_parameter("bias", biasFor(out, shape, where), where);
}
Tensor ConvNd::forward(const Tensor &x, const Tensor &now, Location where) const {
  ModuleScope inModule(*this);
  return conv(x, now, optionally(bias), options.stride, options.padding, options.dilation, options.groups, "nchw",
              where);
}

/// The padding of one side of the result must be below the stride or the dilation.
static void requireOutputPadding(const ConvTransposeOptions &options, size_t dimensions, const char *layer,
                                 const Location &where) {
  auto completed = [&](const IntList &list, int64_t fallback, const char *what) {
    return perDimension(list.empty() ? IntList(fallback) : list, dimensions, 0, layer, what, where);
  };
  const IntList extra = completed(options.output_padding, 0, "output_padding"),
                stride = completed(options.stride, 1, "stride"), dilation = completed(options.dilation, 1, "dilation");
  for (size_t i = 0; i < dimensions; ++i)
    require(extra[i] < std::max(stride[i], dilation[i]), layer,
            "output_padding " + std::to_string(extra[i]) + " must be below the stride " + std::to_string(stride[i]) +
                " or the dilation " + std::to_string(dilation[i]),
            where);
}

ConvTransposeNd::ConvTransposeNd(const char *kind, size_t dimensions, int64_t in, int64_t out, const IntList &kernel,
                                 ConvTransposeOptions given, const Location &where)
    : Module(kind, where), options(std::move(given)) {
  describe(listed(in, out, kernel));
  Shape shape = convShape(in, out, options.groups, kernel, dimensions, kind, where);
  requireWindow({options.stride, options.padding, options.dilation}, dimensions, kind, where);
  requireOutputPadding(options, dimensions, kind, where);
  weight = register_parameter("weight", weightFor(shape, where), where);
  if (options.bias)
    bias = register_parameter("bias", biasFor(out, shape, where), where);
}
Tensor ConvTransposeNd::forward(const Tensor &x, const Tensor &now, Location where) const {
  ModuleScope inModule(*this);
  return conv_transpose(x, now, optionally(bias), options.stride, options.padding, options.dilation, options.groups,
                        options.output_padding, where);
}

#define BURIN_CONVOLUTION(dimensions)                                                                                  \
  Conv##dimensions##d::Conv##dimensions##d(int64_t in, int64_t out, IntList kernel, ConvOptions options,               \
                                           Location where)                                                             \
      : ConvNd("Conv" #dimensions "d", dimensions, in, out, kernel, std::move(options), where) {}                      \
  ConvTranspose##dimensions##d::ConvTranspose##dimensions##d(int64_t in, int64_t out, IntList kernel,                  \
                                                             ConvTransposeOptions options, Location where)             \
      : ConvTransposeNd("ConvTranspose" #dimensions "d", dimensions, in, out, kernel, std::move(options), where) {}
BURIN_CONVOLUTION(1)
BURIN_CONVOLUTION(2)
BURIN_CONVOLUTION(3)
#undef BURIN_CONVOLUTION

} // namespace burin::nn
