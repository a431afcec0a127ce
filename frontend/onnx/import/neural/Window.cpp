#include "frontend/onnx/import/neural/Window.h"
#include <algorithm>

namespace burin::onnx {

using Ints = std::vector<int64_t>;

/// Sets the padding of auto_pad "SAME_…" of a spatial dimension, which gives one result per stride.
static void padSame(Node &n, Window &w, size_t dimension, const Dim &size, bool isUpper, bool mayExtend) {
  const int64_t stride = w.strides[dimension], span = (w.kernel[dimension] - 1) * w.dilations[dimension] + 1;
  auto lowOf = [&](const Dim &total) { return floordiv(isUpper ? total : total + 1, 2); };
  Dim total = std::max<int64_t>(span - stride, 0);
  if (stride != 1)
    total = max((ceildiv(size, stride) - 1) * stride + span - size, 0);
  const Dim low = lowOf(total);
  if (total.isStatic()) {
    w.padding[dimension] = low.value();
    w.padding[w.kernel.size() + dimension] = total.value() - low.value();
  } else if (!mayExtend) {
    n.unsupported("auto_pad", size);
  } else {
    w.around.push_back({2 + dimension, low, total - low, span});
  }
}

Tensor Window::extended(const Tensor &x, double value) const {
  if (around.empty())
    return x;
  const size_t rank = x.shape().size();
  Ints most(rank, 0), steps(rank, 1);
  Shape starts(rank, 0), stops = x.shape();
  for (const Around &at : around) {
    most[at.axis] = at.most;
    starts[at.axis] = at.most - at.low;
    stops[at.axis] = stops[at.axis] + at.most + at.high;
  }
  return slice(pad(x, most, most, "constant", value), starts, stops, steps);
}

Window windowOf(Node &n, const Shape &shape, Ints kernel, bool mayExtend) {
  if (shape.size() < 3 || kernel.size() != shape.size() - 2)
    n.fail("its input " + str(shape) +
           " and its kernel do not fit: it needs [N, C, spatial…] and one size for each "
           "spatial dimension");
  size_t spatial = kernel.size();
  Window w{std::move(kernel),
           n.attribute("strides", Ints(spatial, 1)),
           n.attribute("dilations", Ints(spatial, 1)),
           n.attribute("pads", Ints(2 * spatial, 0)),
           {}};
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
      padSame(n, w, i, shape[2 + i], automatic == "SAME_UPPER", mayExtend);
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
