#include "frontend/onnx/import/neural/Window.h"
#include <algorithm>

namespace burin::onnx {

using Ints = std::vector<int64_t>;

/// The padding of auto_pad "SAME_…", which gives one result per stride.
static void padSame(Node &n, const Dim &size, int64_t kernel, int64_t stride, int64_t dilation, bool isUpper,
                    int64_t &low, int64_t &high) {
  int64_t span = (kernel - 1) * dilation + 1, total = std::max<int64_t>(span - stride, 0);
  if (stride != 1) {
    if (!size.isStatic())
      n.unsupported("auto_pad", size);
    int64_t results = (size.value() + stride - 1) / stride;
    total = std::max<int64_t>((results - 1) * stride + span - size.value(), 0);
  }
  low = isUpper ? total / 2 : total - total / 2;
  high = total - low;
}

Window windowOf(Node &n, const Shape &shape, Ints kernel) {
  if (shape.size() < 3 || kernel.size() != shape.size() - 2)
    n.fail("its input " + str(shape) +
           " and its kernel do not fit: it needs [N, C, spatial…] and one size for each "
           "spatial dimension");
  size_t spatial = kernel.size();
  Window w{std::move(kernel), n.attribute("strides", Ints(spatial, 1)), n.attribute("dilations", Ints(spatial, 1)),
           n.attribute("pads", Ints(2 * spatial, 0))};
  if (w.strides.size() != spatial || w.dilations.size() != spatial || w.padding.size() != 2 * spatial)
    n.fail("its strides, dilations and pads must fit " + std::to_string(spatial) + " spatial dimensions");
  for (const Ints *list : {&w.kernel, &w.strides, &w.dilations})
    if (std::any_of(list->begin(), list->end(), [](int64_t i) { return i < 1; }))
      n.fail("its kernel, strides and dilations must be at least 1");
  std::string automatic = n.attribute("auto_pad", "NOTSET");
  if (automatic == "VALID")
    w.padding.assign(2 * spatial, 0);
  if (automatic.starts_with("SAME"))
    for (size_t i = 0; i < spatial; ++i)
      padSame(n, shape[2 + i], w.kernel[i], w.strides[i], w.dilations[i], automatic == "SAME_UPPER", w.padding[i],
              w.padding[spatial + i]);
  return w;
}

Ints spatialSizes(Node &n, const Shape &weight) {
  Ints kernel;
  for (size_t i = 2; i < weight.size(); ++i) {
    if (!weight[i].isStatic())
      n.unsupported("a kernel", weight[i]);
    kernel.push_back(weight[i].value());
  }
  return kernel;
}

} // namespace burin::onnx
