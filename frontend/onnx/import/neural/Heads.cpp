#include "frontend/onnx/import/neural/Heads.h"
#include <cmath>

namespace burin::onnx {

using Ints = std::vector<int64_t>;

Tensor splitHeads(const Tensor &x, int64_t heads) {
  const Shape &shape = x.shape();
  return transpose(reshape(x, {shape[0], shape[1], heads, floordiv(shape[2], heads)}), {0, 2, 1, 3});
}
Tensor joinHeads(const Tensor &x) {
  const Shape &shape = x.shape();
  return reshape(transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

Tensor repeatHeads(const Tensor &x, const Dim &heads) {
  const Shape shape = x.shape();
  if (shape[1] == heads)
    return x;
  Shape wide{shape[0], shape[1], floordiv(heads, shape[1]), shape[2], shape[3]};
  return reshape(broadcast_to(unsqueeze(x, {2}), wide), {shape[0], heads, shape[2], shape[3]});
}

void Attention::addMask(Tensor mask) {
  Dim missing = mask.rank() > 0 && mask.shape().back() != Dim(1) ? keys() - mask.shape().back() : Dim(0);
  if (missing.isStatic() && missing.value() < 0)
    n.fail("the mask " + str(mask.shape()) + " does not fit " + keys().str() + " keys");
  if (missing.isStatic() && missing.value() > 0) { // missing entries exclude keys
    Ints low(size_t(mask.rank()), 0), high = low;
    high.back() = missing.value();
    mask = isBool(mask.dtype()) ? pad(mask, low, high) : pad(mask, low, high, "constant", -kInfinity);
  }
  if (isBool(mask.dtype()))
    restrict(mask);
  else
    add(mask);
}

void Attention::addPositions(const Tensor &offset, int64_t left, int64_t right) {
  Tensor i = iota({queries(), 1}, DType::i64) + offset, j = iota({1, keys()}, DType::i64, 1);
  if (right >= 0)
    restrict(j <= i + right);
  if (left >= 0)
    restrict(j >= i - left);
}

Tensor Attention::scores() const {
  double root = std::sqrt(std::fabs(scale));
  Tensor product = matmul(query * root, transpose(key * root, {0, 1, 3, 2}));
  return scale < 0 ? -product : product;
}

Tensor Attention::masked(Tensor scores) const {
  if (bias.defined())
    scores = scores + bias;
  return allowed.defined() ? where(allowed, scores, -kInfinity) : scores;
}

Tensor Attention::result() const {
  std::optional<Tensor> mask;
  if (bias.defined() && allowed.defined())
    mask = where(allowed, bias, -kInfinity);
  else if (bias.defined() || allowed.defined())
    mask = bias.defined() ? bias : allowed;
  return scaled_dot_product_attention(query, key, value, mask, false, scale);
}

Tensor probabilities(const Tensor &scores, bool mayBeEmpty) {
  Tensor result = softmax(scores, -1);
  return mayBeEmpty ? where(reduce_max(scores, {-1}, true) == -kInfinity, 0.0, result) : result;
}

Tensor rotate(const Tensor &x, const Tensor &cosines, const Tensor &sines, bool interleaved, int64_t turnedSize) {
  Dim size = x.shape()[3], turned = turnedSize ? Dim(turnedSize) : size, half = floordiv(turned, 2);
  Tensor first = interleaved ? part(x, 3, 0, turned, 2) : part(x, 3, 0, half);
  Tensor second = interleaved ? part(x, 3, 1, turned, 2) : part(x, 3, half, turned);
  Tensor real = cosines * first - sines * second, imaginary = sines * first + cosines * second;
  Shape to = x.shape();
  to[3] = turned;
  Tensor y = interleaved ? reshape(stack({real, imaginary}, 4), to) : concat({real, imaginary}, 3);
  return turned == size ? y : concat({y, part(x, 3, turned, size)}, 3);
}

} // namespace burin::onnx
