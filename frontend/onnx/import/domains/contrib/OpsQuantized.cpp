// Quantised ops that are not in the standard (domain com.microsoft). All except products dequantise their inputs,
// compute in floats, and quantise their output.
#include "frontend/onnx/import/domains/contrib/Contrib.h"
#include "frontend/onnx/import/neural/Quantized.h"

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

Tensor optionalOf(Node &n, size_t input) { return n.has(input) ? n[input] : Tensor(); }
/// A value given by three consecutive inputs: numbers, scale and zero point.
Tensor valueAt(Node &n, size_t input) { return dequantized(n[input], n[input + 1], optionalOf(n, input + 2)); }
/// Quantises by scale and zero point, two consecutive inputs.
Tensor quantizedBy(Node &n, const Tensor &x, size_t input) {
  return requantized(x, n[input], n.has(input + 1) ? n[input + 1] : zeros({}, DType::u8));
}

// ---- products

Tensor withBias(Node &n, const Tensor &y, size_t input) { return n.has(input) ? y + n[input] : y; }

Values integerProductToFloat(Node &n) {
  Tensor product = matmul(centered(n[0], optionalOf(n, 4)), centered(n[1], optionalOf(n, 5)));
  return withBias(n, product.to(DType::f32) * (n[2] * n[3]), 6);
}

Values dynamicProduct(Node &n) {
  Rounded x = roundDynamically(n[0]);
  Tensor product = matmul(centered(x.x, x.zero), centered(n[1], optionalOf(n, 3)));
  return withBias(n, product.to(DType::f32) * (x.scale * n[2]), 4);
}

Values quantizedGemm(Node &n) {
  Tensor a = centered(n[0], optionalOf(n, 2)), b = centered(n[3], n.has(5) && n.rank(5) == 0 ? n[5] : Tensor());
  bool isTransposed = n.attribute("transB", int64_t(0));
  if (n.has(5) && n.rank(5) > 0) // one per column
    b = b - (isTransposed && n.shape(5)[0] != Dim(1) ? unsqueeze(n[5], {1}) : n[5]).to(DType::i32);
  Tensor sum = matmul(n.attribute("transA", int64_t(0)) ? transpose(a) : a, isTransposed ? transpose(b) : b);
  if (n.has(6))
    sum = sum + n[6];
  Tensor y = sum.to(DType::f32) * (n[1] * n[4] * n.attribute("alpha", 1.0));
  return n.has(7) ? quantizedBy(n, y, 7) : y;
}

/// Unpacks numbers of `bits` bits from bytes, lowest first, along the last dimension.
Tensor unpacked(const Tensor &bytes, int64_t bits) {
  if (bits == 8)
    return bytes.to(DType::i32);
  std::vector<Tensor> parts;
  Tensor rest = bytes.to(DType::i32);
  for (int64_t i = 0; i < 8 / bits; ++i) {
    parts.push_back(remainder(rest, int64_t(1) << bits));
    rest = floor_divide(rest, int64_t(1) << bits);
  }
  Shape shape = bytes.shape();
  shape.back() = shape.back() * (8 / bits);
  return reshape(stack(parts, bytes.rank()), shape);
}

/// The weights [columns, blocks, bytes] have one scale per block.
Values productOfBits(Node &n) {
  int64_t bits = n.attribute("bits", int64_t(4)), block = n.attribute("block_size", int64_t(0)),
          rows = n.attribute("K", int64_t(0)), columns = n.attribute("N", int64_t(0));
  if ((bits != 2 && bits != 4 && bits != 8) || block < 1 || rows < 1 || columns < 1)
    n.fail("bits must be 2, 4 or 8, and block_size, K and N positive");
  if (n.has(4))
    n.unsupported("the input g_idx");
  int64_t blocks = (rows + block - 1) / block;
  Tensor scale = reshape(n[2], {columns, blocks, 1}), zero;
  if (!n.has(3)) {
    zero = full({}, double(int64_t(1) << (bits - 1)), DType::i32);
  } else if (isFloat(n.dtype(3))) {
    zero = reshape(n[3], {columns, blocks, 1});
  } else { // packed like the weights
    int64_t bytes = (blocks * bits + 7) / 8;
    Tensor all = unpacked(reshape(n[3], {columns, bytes}), bits);
    zero = reshape(part(all, 1, 0, blocks), {columns, blocks, 1});
  }
  Tensor numbers = unpacked(n[1], bits);
  Tensor weights = (numbers.to(scale.dtype()) - zero.to(scale.dtype())) * scale;
  Tensor matrix = part(reshape(weights, {columns, blocks * block}), 1, 0, rows);
  Tensor x = n[0];
  return withBias(n, matmul(x, transpose(matrix).to(x.dtype())), 5);
}

/// Slices of a table that has one scale per block along an axis. Only the numbers and scales of the slices are read.
Values gatherOfBlocks(Node &n) {
  const bool isPacked = n.dtype(0) == DType::u8 && !n.narrow(0); // `bits` bits each, along the last dimension
  const int64_t bits = isPacked ? n.attribute("bits", int64_t(4)) : 8, block = n.attribute("block_size", int64_t(128)),
                rank = n.rank(0), from = n.axis(n.attribute("gather_axis", int64_t(0)), rank),
                by = n.axis(n.attribute("quantize_axis", int64_t(1)), rank);
  if ((bits != 2 && bits != 4 && bits != 8) || block < 0 || (block == 0 && !isFloat8(n.dtype(0))))
    n.fail("bits must be 2, 4 or 8, and block_size positive");
  if (n.rank(2) != rank || (n.has(3) && n.rank(3) != rank) || (isPacked && (from == by || from == rank - 1)))
    n.fail("the scales must have the rank of the data, and packed data is gathered along neither the last axis nor "
           "quantize_axis");
  const Tensor size = sizeTensor(n.shape(0)[size_t(from)]), index = n[1].to(size.dtype()),
               wanted = where(index < 0, index + size, index), isThere = (wanted >= 0) & (wanted < size),
               at = maximum(minimum(wanted, size - 1), 0);
  Tensor numbers = take(n[0], at, from);
  numbers = isPacked ? unpacked(numbers, bits) : numbers;
  auto gathered = [&](const Tensor &x) {
    if (from == by)
      return take(x, block ? floor_divide(at, block) : at * 0, from);
    const int64_t axis = by > from ? by + at.rank() - 1 : by;
    Shape one = x.shape(); // shared by all slices
    const bool isShared = one[size_t(from)] == Dim(1);
    one.erase(one.begin() + from);
    one.insert(one.begin() + from, size_t(at.rank()), Dim(1));
    const Tensor rows = isShared ? reshape(x, one) : take(x, at, from);
    return rows.shape()[size_t(axis)] == Dim(1) ? rows : repeatBlocks(rows, axis, block, numbers.shape()[size_t(axis)]);
  };
  Tensor zero;
  if (n.has(3))
    zero = gathered(isPacked ? part(unpacked(n[3], bits), rank - 1, 0, n.shape(2).back()) : n[3]);
  else if (isPacked)
    zero = full({}, double(int64_t(1) << (bits - 1)), DType::i32);
  Shape column = at.shape();
  column.resize(column.size() + size_t(rank - 1 - from), Dim(1));
  return where(reshape(isThere, column), dequantized(numbers, gathered(n[2]), zero), 0.0);
}

// ---- elementwise and windows

Values quantizedSum(Node &n) { return quantizedBy(n, valueAt(n, 0) + valueAt(n, 3), 6); }
Values quantizedProduct(Node &n) { return quantizedBy(n, valueAt(n, 0) * valueAt(n, 3), 6); }
Values quantizedSigmoid(Node &n) { return quantizedBy(n, sigmoid(valueAt(n, 0)), 3); }
Values quantizedLeakyRelu(Node &n) { return quantizedBy(n, leaky_relu(valueAt(n, 0), n.attribute("alpha", 0.01)), 3); }
Values quantizedSoftmax(Node &n) { return quantizedBy(n, softmax(valueAt(n, 0), n.attribute("axis", int64_t(-1))), 3); }
Values quantizedMean(Node &n) {
  Ints axes = n.attribute("axes", Ints());
  return quantizedBy(n, reduce_mean(valueAt(n, 0), axes, n.attribute("keepdims", int64_t(1))), 3);
}
Values quantizedWhere(Node &n) { return quantizedBy(n, where(n[0], valueAt(n, 1), valueAt(n, 4)), 7); }

/// Inputs: scale and zero point of the result, followed by value, scale and zero point of each operand.
Values quantizedConcat(Node &n) {
  std::vector<Tensor> parts;
  for (size_t i = 2; i + 2 < n.inputCount(); i += 3)
    parts.push_back(quantizedBy(n, valueAt(n, i), 0));
  return concat(parts, n.attribute("axis", int64_t(0)));
}

/// Pools the spatial dimensions, with channels first or last.
template <class F> Values ofImage(Node &n, F &&pool) {
  Tensor x = valueAt(n, 0);
  bool isLast = n.attribute("channels_last", int64_t(0));
  Ints first{0, x.rank() - 1}, last{0};
  for (int64_t i = 1; i < x.rank() - 1; ++i) {
    first.push_back(i);
    last.push_back(i + 1);
  }
  last.push_back(1);
  Tensor y = pool(isLast ? transpose(x, first) : x);
  return quantizedBy(n, isLast ? transpose(y, last) : y, 3);
}
Values quantizedGlobalAverage(Node &n) {
  return ofImage(n, [&](const Tensor &x) {
    n.replace(0, x);
    return standard(n, "GlobalAveragePool");
  });
}
Values quantizedAverage(Node &n) {
  return ofImage(n, [&](const Tensor &x) {
    n.replace(0, x);
    return standard(n, "AveragePool");
  });
}

Values standardOp(Node &n) { return findOp("", n.op())->handler(n); }

constexpr std::string_view kDomain = "com.microsoft";
constexpr OpEntry table[] = {
    {"DequantizeLinear", standardOp, {}, kDomain},
    {"DynamicQuantizeMatMul", dynamicProduct, {1, 1}, kDomain},
    {"GatherBlockQuantized", gatherOfBlocks, {1, 0, 1}, kDomain},
    {"MatMulIntegerToFloat", integerProductToFloat, {1, 1}, kDomain},
    {"MatMulNBits", productOfBits, {1, 1}, kDomain},
    {"QGemm", quantizedGemm, {2, 0, 0, 2}, kDomain},
    {"QLinearAdd", quantizedSum, {}, kDomain},
    {"QLinearAveragePool", quantizedAverage, {3}, kDomain},
    {"QLinearConcat", quantizedConcat, {}, kDomain},
    {"QLinearGlobalAveragePool", quantizedGlobalAverage, {3}, kDomain},
    {"QLinearLeakyRelu", quantizedLeakyRelu, {}, kDomain},
    {"QLinearMul", quantizedProduct, {}, kDomain},
    {"QLinearReduceMean", quantizedMean, {}, kDomain},
    {"QLinearSigmoid", quantizedSigmoid, {}, kDomain},
    {"QLinearSoftmax", quantizedSoftmax, {1}, kDomain},
    {"QLinearWhere", quantizedWhere, {}, kDomain},
    {"QuantizeLinear", standardOp, {}, kDomain},
};

} // namespace

std::span<const OpEntry> contribQuantizedOps() { return table; }

} // namespace burin::onnx
