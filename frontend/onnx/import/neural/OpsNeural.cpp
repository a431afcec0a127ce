// Products, windows, normalisation.
#include "frontend/onnx/import/neural/DeformConv.h"
#include "frontend/onnx/import/neural/Window.h"
#include <algorithm>
#include <cmath>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

Values convolution(Node &n) {
  Window w = windowOf(n, n.shape(), spatialSizes(n, n.shape(1)), true);
  return conv(w.extended(n[0], 0), n[1], n.optional(2), w.strides, w.padding, w.dilations,
              n.attribute("group", int64_t(1)));
}

Values transposedConvolution(Node &n) {
  Ints kernel = spatialSizes(n, n.shape(1));
  size_t spatial = kernel.size();
  std::string automatic = n.attribute("auto_pad", "NOTSET");
  Ints strides = n.attribute("strides", Ints(spatial, 1)), dilations = n.attribute("dilations", Ints(spatial, 1)),
       padding = n.attribute("pads", Ints(2 * spatial, 0)), extra = n.attribute("output_padding", Ints(spatial, 0)),
       sizes = n.attribute("output_shape", Ints());
  Shape shape = n.shape();
  if (shape.size() != spatial + 2 || strides.size() != spatial || dilations.size() != spatial ||
      padding.size() != 2 * spatial || extra.size() != spatial)
    n.fail("its strides, dilations and pads must fit " + std::to_string(spatial) + " spatial dimensions");
  if (sizes.size() == spatial + 2)
    sizes.erase(sizes.begin(), sizes.begin() + 2);
  bool isSame = automatic.starts_with("SAME");
  for (size_t i = 0; i < spatial && (isSame || !sizes.empty()); ++i) {
    // An excess is removed by padding.
    int64_t span = (kernel[i] - 1) * dilations[i] + 1, total = span - strides[i] + extra[i];
    if (!sizes.empty()) {
      if (!shape[2 + i].isStatic())
        n.unsupported("output_shape for an image", shape[2 + i]);
      total = strides[i] * (shape[2 + i].value() - 1) + extra[i] + span - sizes[i];
    }
    if (total < 0) {
      extra[i] -= total;
      total = 0;
    }
    padding[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
    padding[spatial + i] = total - padding[i];
  }
  return conv_transpose(n[0], n[1], n.optional(2), strides, padding, dilations, n.attribute("group", int64_t(1)),
                        extra);
}

Ints pooledKernel(Node &n) {
  if (!n.hasAttribute("kernel_shape"))
    n.fail("it needs the attribute \"kernel_shape\"");
  return n.attribute("kernel_shape", Ints());
}

/// The position in x of the first largest element of each window, for a result of this shape.
Tensor placesOfLargest(Node &n, const Window &w, const Shape &result) {
  Tensor x = n[0], flat = reshape(x, {elements(x.shape())}), best, places;
  const Shape shape = x.shape();
  size_t spatial = w.kernel.size();
  bool isColumnMajor = n.attribute("storage_order", int64_t(0));
  int64_t taps = 1;
  for (int64_t size : w.kernel)
    taps *= size;
  if (taps > 64)
    n.unsupported("the output Indices for windows of " + std::to_string(taps) + " elements");
  Tensor plane = iota(result, DType::i64, 0) * sizeTensor(shape[1]) + iota(result, DType::i64, 1);
  for (int64_t tap = 0; tap < taps; ++tap) {
    Tensor at = plane, named, isInside;
    for (size_t d = 0, rest = size_t(tap), outer = size_t(taps); d < spatial; ++d) {
      outer /= size_t(w.kernel[d]);
      int64_t step = int64_t(rest / outer) * w.dilations[d] - w.padding[d];
      rest %= outer;
      Tensor i = iota(result, DType::i64, int64_t(2 + d)) * w.strides[d] + step, size = sizeTensor(shape[2 + d]);
      Tensor here = logical_and(i >= 0, i < size);
      isInside = isInside.defined() ? logical_and(isInside, here) : here;
      at = at * size + i;
    }
    Tensor value = take(flat, where(isInside, at, 0), 0);
    Tensor isBetter = best.defined() ? logical_and(isInside, logical_or(value > best, places < 0)) : isInside;
    best = best.defined() ? where(isBetter, value, best) : value;
    places = places.defined() ? where(isBetter, at, places) : where(isBetter, at, -1);
  }
  if (!isColumnMajor || spatial < 2)
    return places;
  Tensor rest = places, transposed; // the last dimension varies fastest
  for (size_t d = spatial; d-- > 0;) {
    Tensor size = sizeTensor(shape[2 + d]), i = remainder(rest, size);
    transposed = transposed.defined() ? transposed * size + i : i;
    rest = floor_divide(rest, size);
  }
  return rest * sizeTensor(elements(Shape(shape.begin() + 2, shape.end()))) + transposed;
}

Values maxPool(Node &n) {
  Window w = windowOf(n, n.shape(), pooledKernel(n), !n.wants(1));
  const double least = isFloat(n.dtype()) ? -INFINITY : n.dtype() == DType::u8 ? 0 : -128;
  Tensor y = max_pool(w.extended(n[0], least), w.kernel, w.strides, w.padding, w.dilations,
                      n.attribute("ceil_mode", int64_t(0)));
  return n.wants(1) ? Values({y, placesOfLargest(n, w, y.shape())}) : Values(y);
}

/// Moves each element to its position, with zeros elsewhere.
Values maxUnpool(Node &n) {
  Shape shape = n.shape(), inner = shape;
  Ints kernel = pooledKernel(n), strides = n.attribute("strides", Ints(kernel.size(), 1)),
       pads = n.attribute("pads", Ints(2 * kernel.size(), 0));
  if (shape.size() != kernel.size() + 2 || strides.size() != kernel.size() || pads.size() != 2 * kernel.size())
    n.fail("its kernel_shape, strides and pads do not fit");
  for (size_t d = 0; d < kernel.size(); ++d)
    inner[2 + d] = (shape[2 + d] - 1) * strides[d] + kernel[d] - pads[d] - pads[kernel.size() + d];
  auto flat = [](const Tensor &x) { return reshape(x, {elements(x.shape())}); };
  Tensor y = reshape(scatter(zeros({elements(inner)}, n.dtype()), flat(n[1]), flat(n[0])), inner);
  if (!n.has(2))
    return y;
  Ints after;
  Shape whole = n.knownSizes(2);
  for (size_t d = 0; d < inner.size(); ++d)
    if (Dim more = d < whole.size() ? whole[d] - inner[d] : Dim(-1); more.isStatic() && more.value() >= 0)
      after.push_back(more.value());
    else
      n.fail("output_shape " + str(whole) + " does not hold " + str(inner));
  return pad(y, Ints(inner.size(), 0), after);
}

Values averagePool(Node &n) {
  Window w = windowOf(n, n.shape(), pooledKernel(n), true);
  if (!w.around.empty()) {
    auto mean = [&](const Tensor &x) {
      return avg_pool(w.extended(x, 0), w.kernel, w.strides, w.padding, w.dilations, false, true);
    };
    Shape plane = n.shape();
    plane[0] = plane[1] = 1;
    const Tensor y = mean(n[0]);
    return n.attribute("count_include_pad", int64_t(0)) ? y : y / mean(broadcast_to(ones({}, n.dtype()), plane));
  }
  return avg_pool(n[0], w.kernel, w.strides, w.padding, w.dilations, n.attribute("ceil_mode", int64_t(0)),
                  n.attribute("count_include_pad", int64_t(0)));
}

/// The p-norm of each window, from the mean that includes padding.
Values lpPool(Node &n) {
  Window w = windowOf(n, n.shape(), pooledKernel(n), true);
  double p = double(n.attribute("p", int64_t(2))), count = 1;
  for (int64_t size : w.kernel)
    count *= double(size);
  Tensor mean = avg_pool(w.extended(pow(abs(n[0]), p), 0), w.kernel, w.strides, w.padding, w.dilations,
                         n.attribute("ceil_mode", int64_t(0)), true);
  return pow(mean * count, 1 / p);
}

Ints spatialAxes(Node &n) {
  Ints axes;
  for (int64_t i = 2; i < n.rank(); ++i)
    axes.push_back(i);
  return axes;
}
Values globalAverage(Node &n) { return reduce_mean(n[0], spatialAxes(n), true); }
Values globalMax(Node &n) { return reduce_max(n[0], spatialAxes(n), true); }
Values globalLp(Node &n) {
  double p = double(n.attribute("p", int64_t(2)));
  return pow(reduce_sum(pow(abs(n[0]), p), spatialAxes(n), true), 1 / p);
}

// ---- products

Values product(Node &n) { return matmul(n[0], n[1]); }

Values gemm(Node &n) {
  Tensor a = n[0], b = n[1];
  double alpha = n.attribute("alpha", 1.0), beta = n.attribute("beta", 1.0);
  Tensor y = matmul(n.attribute("transA", int64_t(0)) ? transpose(a) : a,
                    n.attribute("transB", int64_t(0)) ? transpose(b) : b);
  if (alpha != 1)
    y = y * alpha;
  if (n.has(2) && beta != 0)
    y = y + (beta == 1 ? n[2] : n[2] * beta);
  return y.to(a.dtype());
}

// ---- normalisation

Values batchNorm(Node &n) {
  Tensor x = n[0];
  double epsilon = n.attribute("epsilon", 1e-5), momentum = n.attribute("momentum", 0.9);
  if (!n.attribute("training_mode", int64_t(0))) {
    for (size_t i = 1; i < n.outputCount(); ++i)
      if (n.wants(i) && n.opset() >= 9)
        n.unsupported("the statistics of training");
    return batch_norm(x, n[3], n[4], n[1], n[2], epsilon).to(x.dtype());
  }
  Ints axes{0};
  for (int64_t i = 2; i < x.rank(); ++i)
    axes.push_back(i);
  Tensor mean = reduce_mean(x, axes), variance = reduce_var(x, axes, false, 0);
  return Values({batch_norm(x, mean, variance, n[1], n[2], epsilon).to(x.dtype()),
                 n[3] * momentum + mean * (1 - momentum), n[4] * momentum + variance * (1 - momentum)});
}

Values instanceNorm(Node &n) { return instance_norm(n[0], n[1], n[2], n.attribute("epsilon", 1e-5)); }

/// Scale and shift of the normalised dimensions become operands of the op; others broadcast.
Values layerNorm(Node &n) {
  Tensor x = n[0];
  Shape shape = n.shape();
  int64_t axis = n.axis(n.attribute("axis", int64_t(-1)));
  double epsilon = n.attribute("epsilon", 1e-5);
  Shape normalized(shape.begin() + axis, shape.end());
  bool fits = n.shape(1) == normalized && (!n.has(2) || n.shape(2) == normalized);
  Tensor y = fits ? layer_norm(x, n[1], n.optional(2), axis, epsilon)
                  : layer_norm(x, std::nullopt, std::nullopt, axis, epsilon) * n[1];
  if (!fits && n.has(2))
    y = y + n[2];
  Values results{y.to(x.dtype())};
  if (n.wants(1) || n.wants(2)) {
    Ints axes;
    for (int64_t i = axis; i < x.rank(); ++i)
      axes.push_back(i);
    Tensor wide = x.to(n.attributeType("stash_type", DType::f32));
    results.push_back(reduce_mean(wide, axes, true));
    results.push_back(rsqrt(reduce_var(wide, axes, true, 0) + epsilon));
  }
  return results;
}

Values rmsNorm(Node &n) {
  Tensor x = n[0];
  int64_t axis = n.axis(n.attribute("axis", int64_t(-1)));
  return (rms_norm(x, std::nullopt, axis, n.attribute("epsilon", 1e-5)) * n[1]).to(x.dtype());
}

Values groupNorm(Node &n) {
  Tensor x = n[0], scale = n[1], shift = n[2];
  int64_t groups = n.attribute("num_groups", int64_t(1));
  Dim channels = n.shape()[1];
  if (n.opset() < 21 && channels != Dim(groups)) { // one number per group, repeated for its channels
    Shape spread{groups, floordiv(channels, groups)};
    scale = reshape(broadcast_to(unsqueeze(scale, {1}), spread), {channels});
    shift = reshape(broadcast_to(unsqueeze(shift, {1}), spread), {channels});
  }
  return group_norm(x, groups, scale, shift, n.attribute("epsilon", 1e-5)).to(x.dtype());
}

/// Normalises by the squares of adjacent channels.
Values localResponseNorm(Node &n) {
  Tensor x = n[0];
  int64_t size = n.attribute("size", int64_t(1)), before = (size - 1) / 2;
  double alpha = n.attribute("alpha", 1e-4), beta = n.attribute("beta", 0.75), bias = n.attribute("bias", 1.0);
  if (size < 1)
    n.fail("size must be positive");
  Ints low(size_t(x.rank()), 0), high = low;
  low[1] = before;
  high[1] = size - 1 - before;
  Tensor squares = pad(x * x, low, high), sum;
  for (int64_t i = 0; i < size; ++i) {
    Shape starts(size_t(x.rank()), Dim(0)), stops = squares.shape();
    starts[1] = i;
    stops[1] = x.shape()[1] + i;
    Tensor part = slice(squares, starts, stops, Ints(size_t(x.rank()), 1));
    sum = sum.defined() ? sum + part : part;
  }
  return x / pow(sum * (alpha / double(size)) + bias, beta);
}

Values meanVarianceNorm(Node &n) {
  Tensor x = n[0];
  Ints axes = n.attribute("axes", Ints{0, 2, 3});
  return (x - reduce_mean(x, axes, true)) / (sqrt(reduce_var(x, axes, true, 0)) + 1e-9);
}

Values lpNorm(Node &n) {
  Tensor x = n[0];
  Ints axis{n.axis(n.attribute("axis", int64_t(-1)))};
  Tensor norm =
      n.attribute("p", int64_t(2)) == 1 ? reduce_sum(abs(x), axis, true) : sqrt(reduce_sum(x * x, axis, true));
  return where(norm == 0, norm, x / norm);
}

/// Before opset 13, all dimensions from `axis` on were merged.
template <class F> Values alongAxis(Node &n, F &&op) {
  Tensor x = n[0];
  Shape shape = n.shape();
  bool isOld = n.opset() < 13;
  int64_t rank = int64_t(shape.size()), axis = n.axis(n.attribute("axis", int64_t(isOld ? 1 : -1)));
  if (!isOld || axis == rank - 1)
    return op(x, axis);
  Tensor flat = reshape(
      x, {elements(Shape(shape.begin(), shape.begin() + axis)), elements(Shape(shape.begin() + axis, shape.end()))});
  return reshape(op(flat, int64_t(1)), shape);
}
Values softmaxOf(Node &n) {
  return alongAxis(n, [](const Tensor &x, int64_t axis) { return softmax(x, axis); });
}
Values logSoftmaxOf(Node &n) {
  return alongAxis(n, [](const Tensor &x, int64_t axis) { return log_softmax(x, axis); });
}
Values hardmaxOf(Node &n) {
  return alongAxis(n, [](const Tensor &x, int64_t axis) {
    return (iota(x.shape(), DType::i64, axis) == argmax(x, axis, true)).to(x.dtype());
  });
}

constexpr OpEntry table[] = {
    {"AveragePool", averagePool},
    {"BatchNormalization", batchNorm},
    {"Conv", convolution},
    {"ConvTranspose", transposedConvolution},
    {"DeformConv", deformConv, {4, 4, 4}},
    {"Gemm", gemm},
    {"GlobalAveragePool", globalAverage},
    {"GlobalLpPool", globalLp},
    {"GlobalMaxPool", globalMax},
    {"GroupNormalization", groupNorm, {2, 1, 1}},
    {"Hardmax", hardmaxOf},
    {"InstanceNormalization", instanceNorm},
    {"LRN", localResponseNorm, {2}},
    {"LayerNormalization", layerNorm},
    {"LogSoftmax", logSoftmaxOf},
    {"LpNormalization", lpNorm},
    {"LpPool", lpPool},
    {"MatMul", product},
    {"MaxPool", maxPool},
    {"MaxUnpool", maxUnpool},
    {"MeanVarianceNormalization", meanVarianceNorm},
    {"RMSNormalization", rmsNorm},
    {"Softmax", softmaxOf},
};

} // namespace

std::span<const OpEntry> neuralOps() { return table; }

} // namespace burin::onnx
