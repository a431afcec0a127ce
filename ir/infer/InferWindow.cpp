// Convolutions and pooling.
#include "ir/infer/Infer.h"

namespace burin::ir {

namespace {
/// The positions of the channels and the first spatial dimension of x.
struct Layout {
  size_t channel, spatial;
};

bool findLayout(InferCall &call, size_t rank, Layout &layout) {
  const std::string &name = call.attr<std::string>("layout");
  if (name != "nchw" && name != "nhwc")
    return call.fail(text("layout \"", name, "\" must be \"nchw\" or \"nhwc\""));
  layout = name == "nchw" ? Layout{1, 2} : Layout{rank - 1, 1};
  return true;
}

/// Checks that x is [N, C, spatial…] or channels-last, with 1 to 3 spatial dimensions.
bool checkImage(InferCall &call) {
  size_t rank = call.operand(0).shape.size();
  return (rank >= 3 && rank <= 5) ||
         call.fail(text(operandText(call, 0), " must be [N, C, spatial…] with 1 to 3 spatial dimensions",
                        rank == 2 ? "; unsqueeze a batch dimension" : ""));
}

/// Expands padding with one number per dimension to all starts followed by all ends, the canonical form.
bool canonicalPadding(InferCall &call, size_t spatial) {
  Ints &padding = call.attr<Ints>("padding"), full = padding;
  if (full.size() <= 1)
    full.assign(spatial, full.empty() ? 0 : full[0]);
  if (full.size() == spatial)
    full.insert(full.end(), full.begin(), full.begin() + spatial);
  if (full.size() != 2 * spatial)
    return call.fail(
        text("padding ", padding, " must have ", spatial, " numbers, or ", 2 * spatial, ": all starts, then all ends"));
  if (!requireCanonical(call, padding == full, "padding", str(full)))
    return false;
  padding = std::move(full);
  for (int64_t p : padding)
    if (p < 0)
      return call.fail(text("padding ", padding, " must not be negative; slice the tensor instead"));
  return true;
}

bool canonicalWindow(InferCall &call, size_t spatial) {
  return canonicalList(call, "strides", spatial, 1, 1) && canonicalList(call, "dilations", spatial, 1, 1) &&
         canonicalPadding(call, spatial);
}

/// The window of dimension i over `size` elements.
struct Window {
  Dim size, span, low, high;
  int64_t stride;
  Dim padded() const { return size + low + high; }
};
Window window(InferCall &call, const Dim &size, int64_t kernel, size_t i, size_t spatial) {
  const Ints &padding = call.attr<Ints>("padding");
  return {size, Dim(kernel - 1) * call.attr<Ints>("dilations")[i] + 1, padding[i], padding[spatial + i],
          call.attr<Ints>("strides")[i]};
}

bool fits(InferCall &call, const Window &w, size_t i) {
  if (!w.padded().isStatic() || w.padded().value() >= w.span.value())
    return true;
  return call.fail(text("a window of ", w.span, " does not fit spatial dimension ", i, " of ", operandText(call, 0),
                        ", which has ", w.padded(), " with padding; pad more or use a smaller kernel"));
}

Dim outputSize(const Window &w, bool ceilMode) {
  if (!ceilMode)
    return floordiv(w.padded() - w.span, w.stride) + 1;
  // The last window must start inside the input or its left padding.
  return min(ceildiv(w.padded() - w.span, w.stride) + 1, ceildiv(w.size + w.low, w.stride));
}

/// Reads kernel sizes from the shape of the weight. Returns false if one is symbolic or 0.
bool kernelSizes(InferCall &call, const Shape &weight, size_t first, size_t spatial, Ints &kernel) {
  for (size_t i = 0; i < spatial; ++i) {
    const Dim &d = weight[first + i];
    if (!d.isStatic() || d.value() < 1)
      return call.fail(text(operandText(call, 1), " must have a kernel of fixed size, 1 or more"));
    kernel.push_back(d.value());
  }
  return true;
}

bool checkGroups(InferCall &call, const Dim &channels, const char *what) {
  int64_t groups = call.attr<int64_t>("groups");
  if (groups < 1)
    return call.fail(text("groups ", groups, " must be positive"));
  return mod(channels, groups) == Dim(0) ||
         call.fail(text(groups, " groups do not divide the ", channels, " ", what, " channels"));
}

bool checkBias(InferCall &call, const Dim &channels) {
  return !call.has(2) || call.same(call.operand(2).shape, {channels}) ||
         call.fail(text(operandText(call, 2), " must be [", channels, "], one number per output channel"));
}

bool checkWeightRank(InferCall &call) {
  return call.operand(1).shape.size() == call.operand(0).shape.size() ||
         call.fail(text(operandText(call, 1), " must have as many dimensions as ", operandText(call, 0)));
}
} // namespace

bool inferConv(InferCall &call) {
  const Shape &x = call.operand(0).shape, &weight = call.operand(1).shape;
  Layout layout;
  if (!checkImage(call) || !checkWeightRank(call) || !findLayout(call, x.size(), layout))
    return false;
  size_t spatial = x.size() - 2;
  bool isNchw = layout.channel == 1;
  const Dim &outputs = isNchw ? weight[0] : weight.back(), &inputs = isNchw ? weight[1] : weight[weight.size() - 2];
  Ints kernel;
  if (!canonicalWindow(call, spatial) || !kernelSizes(call, weight, isNchw ? 2 : 0, spatial, kernel) ||
      !checkGroups(call, x[layout.channel], "input") || !checkGroups(call, outputs, "output") ||
      !checkBias(call, outputs))
    return false;
  int64_t groups = call.attr<int64_t>("groups");
  if (!call.same(x[layout.channel], inputs * groups))
    return call.fail(text(operandText(call, 0), " has ", x[layout.channel], " channels but weight ", weight, " takes ",
                          inputs, groups == 1 ? "" : text(" in each of ", groups, " groups")));
  Shape result = x;
  result[layout.channel] = outputs;
  for (size_t i = 0; i < spatial; ++i) {
    Window w = window(call, x[layout.spatial + i], kernel[i], i, spatial);
    if (!fits(call, w, i))
      return false;
    result[layout.spatial + i] = outputSize(w, false);
  }
  return succeed(call, call.operand(0).dtype, std::move(result));
}

bool inferConvTranspose(InferCall &call) {
  const Shape &x = call.operand(0).shape, &weight = call.operand(1).shape;
  if (!checkImage(call) || !checkWeightRank(call))
    return false;
  size_t spatial = x.size() - 2;
  Ints kernel;
  if (!canonicalWindow(call, spatial) || !canonicalList(call, "output_padding", spatial, 0, 0) ||
      !kernelSizes(call, weight, 2, spatial, kernel) || !checkGroups(call, x[1], "input"))
    return false;
  if (!call.same(x[1], weight[0]))
    return call.fail(text(operandText(call, 0), " has ", x[1], " channels but weight ", weight, " takes ", weight[0]));
  Shape result = x;
  result[1] = weight[1] * call.attr<int64_t>("groups");
  if (!checkBias(call, result[1]))
    return false;
  for (size_t i = 0; i < spatial; ++i) {
    Window w = window(call, x[2 + i], kernel[i], i, spatial);
    int64_t extra = call.attr<Ints>("output_padding")[i], dilation = call.attr<Ints>("dilations")[i];
    if (extra >= w.stride && extra >= dilation)
      return call.fail(
          text("output_padding ", extra, " must be below the stride ", w.stride, " or the dilation ", dilation));
    result[2 + i] = (w.size - 1) * w.stride - w.low - w.high + w.span + extra;
    if (result[2 + i].isStatic() && result[2 + i].value() < 1)
      return call.fail(
          text("spatial dimension ", i, " of the result would have the size ", result[2 + i], "; use less padding"));
  }
  return succeed(call, call.operand(0).dtype, std::move(result));
}

bool inferPool(InferCall &call) {
  const TensorSpec &x = call.operand(0);
  bool isMean = std::string_view(call.info.name) == "avg_pool";
  Layout layout;
  if (!checkImage(call) || !findLayout(call, x.shape.size(), layout) || (isMean && !requireFloat(call, 0)))
    return false;
  size_t spatial = x.shape.size() - 2;
  if (!canonicalList(call, "kernel", spatial, 1, 1))
    return false;
  const Ints &kernel = call.attr<Ints>("kernel");
  if (Ints &strides = call.attr<Ints>("strides"); strides.empty() && !call.strict)
    strides = kernel;
  if (!canonicalWindow(call, spatial))
    return false;
  Shape result = x.shape;
  for (size_t i = 0; i < spatial; ++i) {
    Window w = window(call, x.shape[layout.spatial + i], kernel[i], i, spatial);
    if (!fits(call, w, i))
      return false;
    if (w.low.value() >= w.span.value() || w.high.value() >= w.span.value())
      return call.fail(text("padding ", call.attr<Ints>("padding"), " must be smaller than the window of ", w.span,
                            ": a window would see padding only"));
    result[layout.spatial + i] = outputSize(w, call.attr<bool>("ceil_mode"));
  }
  return succeed(call, x.dtype, std::move(result));
}

bool inferAdaptivePool(InferCall &call) {
  const TensorSpec &x = call.operand(0);
  Layout layout;
  if (!checkImage(call) || !findLayout(call, x.shape.size(), layout) || !requireFloat(call, 0))
    return false;
  size_t spatial = x.shape.size() - 2;
  if (!canonicalList(call, "output_size", spatial, 1, 1))
    return false;
  Shape result = x.shape;
  for (size_t i = 0; i < spatial; ++i) {
    if (x.shape[layout.spatial + i] == Dim(0))
      return call.fail(text(operandText(call, 0), " has no elements in spatial dimension ", i));
    result[layout.spatial + i] = call.attr<Ints>("output_size")[i];
  }
  return succeed(call, x.dtype, std::move(result));
}

} // namespace burin::ir
