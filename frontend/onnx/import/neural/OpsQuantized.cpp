// Quantised values: small integers with a scale and a zero point.
#include "burin/narrow_float.h"
#include "frontend/onnx/import/Tensors.h"
#include "frontend/onnx/import/neural/Quantized.h"
#include "frontend/onnx/import/neural/Window.h"

namespace burin::onnx {

Tensor centered(const Tensor &x, const Tensor &zero) {
  Tensor wide = x.to(DType::i32);
  return zero.defined() ? wide - zero.to(DType::i32) : wide;
}

Tensor toFloat8(const Tensor &x, DType to, bool saturate) {
  const double most = fromNarrowFloat(to, narrowFormat(to).largest);
  Tensor wide = x.to(DType::f32);
  return (saturate ? clamp(wide, -most, most) : wide).to(to);
}

Tensor dequantized(const Tensor &x, const Tensor &scale, const Tensor &zero) {
  if (isFloat8(x.dtype())) {
    Tensor wide = x.to(DType::f32);
    return (zero.defined() ? wide - zero.to(DType::f32) : wide).to(scale.dtype()) * scale;
  }
  return centered(x, zero).to(scale.dtype()) * scale;
}

/// x / scale + zero, not rounded before it is an 8-bit float.
static Tensor quantizedToFloat8(const Tensor &x, const Tensor &scale, const Tensor &zero, DType to, bool saturate) {
  Tensor scaled = x / scale;
  return toFloat8(zero.defined() ? scaled + zero.to(scaled.dtype()) : scaled, to, saturate);
}

/// round(x / scale) + zero, saturated.
static Tensor quantized(const Tensor &x, const Tensor &scale, const Tensor &zero, DType to) {
  Tensor rounded = round(x / scale);
  return (zero.defined() ? rounded + zero.to(rounded.dtype()) : rounded).to(to);
}

Tensor requantized(const Tensor &x, const Tensor &scale, const Tensor &zero) {
  return quantized(x, scale, zero, zero.dtype());
}

Rounded roundDynamically(const Tensor &x) {
  Tensor high = maximum(reduce_max(x), 0.0), low = minimum(reduce_min(x), 0.0);
  Tensor range = high - low, scale = where(range == 0, 1.0, range / 255.0), zero = round(-low / scale).to(DType::u8);
  return {quantized(x, scale, zero, DType::u8), scale, zero};
}

Tensor repeatBlocks(const Tensor &x, int64_t axis, int64_t block, const Dim &size) {
  Shape wide = x.shape(), joined = wide;
  wide.insert(wide.begin() + axis + 1, Dim(block));
  joined[size_t(axis)] = joined[size_t(axis)] * block;
  return part(reshape(broadcast_to(unsqueeze(x, {axis + 1}), wide), joined), axis, 0, size);
}

namespace {

/// A scale or zero point in a shape that broadcasts to `shape`: one number, one per index of `axis`, or one per block
/// along it.
Tensor spread(Node &n, const Tensor &parameter, const Shape &shape, int64_t axis, int64_t block) {
  if (elements(parameter.shape()) == Dim(1))
    return reshape(parameter, {});
  if (parameter.rank() == 1 && block == 0) {
    Shape column(shape.size(), Dim(1));
    column[size_t(n.axis(axis, int64_t(shape.size())))] = parameter.shape()[0];
    return reshape(parameter, column);
  }
  axis = n.axis(axis, int64_t(shape.size()));
  const Shape &blocks = parameter.shape();
  if (block < 1 || blocks.size() != shape.size())
    n.fail("the scale " + str(blocks) + " does not fit the input " + str(shape));
  return repeatBlocks(parameter, axis, block, shape[size_t(axis)]);
}

Values quantize(Node &n) {
  Shape shape = n.shape();
  int64_t axis = n.attribute("axis", int64_t(1)), block = n.attribute("block_size", int64_t(0));
  Tensor scale = spread(n, n[1], shape, axis, block), zero = n.has(2) ? spread(n, n[2], shape, axis, block) : Tensor();
  DType to = n.has(2) ? n.dtype(2) : n.attributeType("output_dtype", DType::u8);
  Tensor x = n[0];
  if (n.hasAttribute("precision"))
    x = x.to(n.attributeType("precision", DType::f32));
  if (isFloat8(to))
    return quantizedToFloat8(x.to(DType::f32), scale.to(DType::f32), zero, to,
                             n.attribute("saturate", int64_t(1)) != 0);
  x = isFloat(x.dtype()) ? x : x.to(DType::f32);
  const NarrowType *narrow = n.has(2) ? n.narrow(2) : n.narrow("output_dtype");
  if (!narrow)
    return quantized(x, scale, zero, to);
  const Tensor wide = quantized(x, scale, zero.defined() ? zero.to(DType::i32) : zero, DType::i32);
  return clamp(wide, narrow->least(), narrow->most()).to(to);
}

Values dequantize(Node &n) {
  Shape shape = n.shape();
  int64_t axis = n.attribute("axis", int64_t(1)), block = n.attribute("block_size", int64_t(0));
  Tensor scale = spread(n, n[1], shape, axis, block), zero = n.has(2) ? spread(n, n[2], shape, axis, block) : Tensor();
  return dequantized(n[0], scale, zero).to(n.attributeType("output_dtype", scale.dtype()));
}

Values dynamicQuantize(Node &n) {
  Rounded rounded = roundDynamically(n[0]);
  return Values({rounded.x, rounded.scale, rounded.zero});
}

/// One number per row or column of a matrix.
Tensor ofRows(const Tensor &x) { return x.rank() == 1 && x.shape()[0] != Dim(1) ? unsqueeze(x, {1}) : x; }
Tensor optionalOf(Node &n, size_t input) { return n.has(input) ? n[input] : Tensor(); }

Values integerProduct(Node &n) {
  Tensor zero = optionalOf(n, 2);
  return matmul(centered(n[0], zero.defined() ? ofRows(zero) : zero), centered(n[1], optionalOf(n, 3)));
}

Values quantizedProduct(Node &n) {
  Tensor product = matmul(centered(n[0], ofRows(n[2])), centered(n[3], n[5]));
  Tensor real = product.to(DType::f32) * (ofRows(n[1]).to(DType::f32) * n[4].to(DType::f32));
  return quantized(real, n[6].to(DType::f32), n[7], n.dtype(7));
}

/// One number per output channel, with dimensions of size 1 for the spatial ones.
Tensor ofChannels(const Tensor &x, int64_t rank) {
  if (elements(x.shape()) == Dim(1))
    return reshape(x, {});
  Shape column(size_t(rank - 1), Dim(1));
  column[0] = x.shape()[0];
  return reshape(x, column);
}

/// Subtracts the zero point from a weight with channels first.
Tensor centeredWeight(const Tensor &weight, const Tensor &zero) {
  if (!zero.defined() || elements(zero.shape()) == Dim(1))
    return centered(weight, zero.defined() ? reshape(zero, {}) : zero);
  Shape column(size_t(weight.rank()), Dim(1));
  column[0] = zero.shape()[0];
  return centered(weight, reshape(zero, column));
}

Tensor integerConvolution(Node &n, const Tensor &x, const Tensor &weight, const std::optional<Tensor> &bias) {
  Window w = windowOf(n, n.shape(), spatialSizes(n, weight.shape()));
  return conv(x, weight, bias, w.strides, w.padding, w.dilations, n.attribute("group", int64_t(1)));
}

Values convInteger(Node &n) {
  Tensor zero = optionalOf(n, 2);
  return integerConvolution(n, centered(n[0], zero.defined() ? reshape(zero, {}) : zero),
                            centeredWeight(n[1], optionalOf(n, 3)), std::nullopt);
}

Values quantizedConvolution(Node &n) {
  Tensor sum = integerConvolution(n, centered(n[0], reshape(n[2], {})), centeredWeight(n[3], n[5]), n.optional(8));
  Tensor scale = reshape(n[1], {}) * ofChannels(n[4], sum.rank());
  return quantized(sum.to(DType::f32) * scale, reshape(n[6], {}), reshape(n[7], {}), n.dtype(7));
}

constexpr OpEntry table[] = {
    {"ConvInteger", convInteger, {3, 3}},
    {"DequantizeLinear", dequantize},
    {"DynamicQuantizeLinear", dynamicQuantize},
    {"MatMulInteger", integerProduct},
    {"QLinearConv", quantizedConvolution, {3, 0, 0, 3}},
    {"QLinearMatMul", quantizedProduct},
    {"QuantizeLinear", quantize},
};

} // namespace

std::span<const OpEntry> quantizedOps() { return table; }

} // namespace burin::onnx
