// Gradients of products, normalisation and attention.
#include "burin/tensor/creation.h"
#include "frontend/autodiff/gradients/Rules.h"
#include "frontend/tensor/functions/Creation.h"
#include <algorithm>
#include <cmath>

namespace burin::gradients {

// ---- products

/// The dimensions that are in neither list.
static Ints others(int64_t rank, const Ints &a, const Ints &b) {
  Ints result;
  for (int64_t i = 0; i < rank; ++i)
    if (std::ranges::find(a, i) == a.end() && std::ranges::find(b, i) == b.end())
      result.push_back(i);
  return result;
}

static Ints range(size_t from, size_t count) {
  Ints result;
  for (size_t i = 0; i < count; ++i)
    result.push_back(int64_t(from + i));
  return result;
}

Tensor dotGradient(const Tensor &g, const Tensor &lhs, const Tensor &rhs, const Ints &lhsBatch, const Ints &rhsBatch,
                   const Ints &lhsContract, const Ints &rhsContract, bool isLhs) {
  const Tensor &mine = isLhs ? lhs : rhs, &other = isLhs ? rhs : lhs;
  const Ints &batch = isLhs ? lhsBatch : rhsBatch, &otherBatch = isLhs ? rhsBatch : lhsBatch;
  const Ints &contract = isLhs ? lhsContract : rhsContract, &otherContract = isLhs ? rhsContract : lhsContract;
  Ints free = others(mine.rank(), batch, contract), otherFree = others(other.rank(), otherBatch, otherContract);
  size_t at = batch.size() + (isLhs ? free.size() : 0); // g has: batch, free dimensions of lhs, free dimensions of rhs
  Tensor product = dot_general(g, other, range(0, batch.size()), otherBatch, range(at, otherFree.size()), otherFree);
  Ints from = batch; // the dimension of `mine` for each dimension of the product
  from.insert(from.end(), free.begin(), free.end());
  for (int64_t i = 0; i < other.rank(); ++i)
    if (auto found = std::ranges::find(otherContract, i); found != otherContract.end())
      from.push_back(contract[size_t(found - otherContract.begin())]);
  return transpose(product, inverse(from));
}

Tensor convGradient(const Tensor &g, const Tensor &x, const Tensor &weight, const Ints &strides, const Ints &padding,
                    const Ints &dilations, int64_t groups) {
  size_t spatial = strides.size();
  Ints rest;
  for (size_t i = 0; i < spatial; ++i) {
    Dim reached = (g.shape()[2 + i] - 1) * strides[i] - padding[i] - padding[spatial + i] +
                  (weight.shape()[2 + i] - 1) * dilations[i] + 1;
    Dim left = x.shape()[2 + i] - reached; // less than a stride
    rest.push_back(left.isStatic() ? left.value() : strides[i] - 1);
  }
  return cropTo(conv_transpose(g, weight, std::nullopt, strides, padding, dilations, groups, rest), x.shape());
}

/// A convolution with batch and channels exchanged, and strides and dilations, too.
Tensor kernelGradient(const Tensor &g, const Tensor &x, const Tensor &weight, const Ints &strides, const Ints &padding,
                      const Ints &dilations, int64_t groups) {
  if (!std::all_of(g.shape().begin() + 2, g.shape().end(), [](const Dim &size) { return size.isStatic(); })) {
    Ints kernel;
    for (size_t i = 2; i < weight.shape().size(); ++i)
      kernel.push_back(weight.shape()[i].value());
    return kernelGradientByPlaces(g, x, weight, {kernel, strides, padding, dilations}, groups);
  }
  Shape grouped{x.shape()[0], groups, floordiv(x.shape()[1], groups)};
  grouped.insert(grouped.end(), x.shape().begin() + 2, x.shape().end());
  Ints order{2, 1, 0}, swapped{1, 0};
  for (int64_t i = 2; i < x.rank(); ++i) {
    order.push_back(i + 1);
    swapped.push_back(i);
  }
  Tensor image = transpose(reshapeTo(x, grouped), order); // [channels of a group, groups, batch, …]
  Shape joined{image.shape()[0], image.shape()[1] * image.shape()[2]};
  joined.insert(joined.end(), image.shape().begin() + 3, image.shape().end());
  Tensor kernel =
      conv(reshapeTo(image, joined), transpose(g, swapped), std::nullopt, dilations, padding, strides, groups);
  return cropTo(transpose(kernel, swapped), weight.shape());
}

// ---- normalisation

Tensor Normalized::gradient(const Tensor &g) const {
  Tensor scaled = reshapeTo(weight.defined() ? g * weight : g, grouped), unit = reshapeTo(standard, grouped);
  Ints axes = range(size_t(axis), grouped.size() - size_t(axis));
  Tensor result = scaled - unit * reduce_mean(scaled * unit, axes, true);
  if (isCentered)
    result = result - reduce_mean(scaled, axes, true);
  return reshapeAs(result * inverse, g);
}

static Normalized normalize(const Tensor &x, const Tensor &weight, Shape grouped, int64_t axis, double epsilon,
                            bool isCentered) {
  Tensor group = reshapeTo(x, grouped);
  Ints axes = range(size_t(axis), grouped.size() - size_t(axis));
  Tensor centered = isCentered ? group - reduce_mean(group, axes, true) : group;
  Tensor inverse = rsqrt(reduce_mean(centered * centered, axes, true) + epsilon);
  return {weight, reshapeAs(centered * inverse, x), inverse, std::move(grouped), axis, isCentered, std::nullopt};
}

Normalized layerNorm(const Tensor &x, const Tensor &weight, int64_t axis, double epsilon) {
  Normalized result = normalize(x, weight, x.shape(), axis, epsilon, true);
  result.parameter = Shape(x.shape().begin() + axis, x.shape().end());
  return result;
}

Normalized rmsNorm(const Tensor &x, const Tensor &weight, int64_t axis, double epsilon) {
  Normalized result = normalize(x, weight, x.shape(), axis, epsilon, false);
  result.parameter = Shape(x.shape().begin() + axis, x.shape().end());
  return result;
}

static Normalized normalizeGroups(const Tensor &x, const Tensor &weight, const Dim &groups, const Dim &channels,
                                  double epsilon) {
  Dim size = channels * elements({x.shape().begin() + 2, x.shape().end()});
  Tensor scale = weight.defined() ? perChannel(weight, x) : weight;
  return normalize(x, scale, {x.shape()[0], groups, size}, 2, epsilon, true);
}
Normalized groupNorm(const Tensor &x, const Tensor &weight, int64_t groups, double epsilon) {
  return normalizeGroups(x, weight, groups, floordiv(x.shape()[1], groups), epsilon);
}
Normalized instanceNorm(const Tensor &x, const Tensor &weight, double epsilon) {
  return normalizeGroups(x, weight, x.shape()[1], 1, epsilon);
}

// ---- attention

Attention::Attention(const Tensor &query, const Tensor &key, const Tensor &value, const Tensor &mask, bool isCausal,
                     double scale)
    : q(query), k(key), v(value), m(mask) {
  factor = scale != 0 ? full({}, scale, q.dtype()) : rsqrt(detail::sizeTensor(q.shape().back()).to(q.dtype()));
  Tensor scores = matmul(q, k.t()) * factor;
  const Shape &shape = scores.shape();
  if (mask.defined())
    scores = mask.dtype() == DType::boolean ? where(mask, scores, -INFINITY) : scores + mask;
  if (isCausal) {
    Shape plane(shape.end() - 2, shape.end());
    scores = where(iota(plane, DType::i64, 0) >= iota(plane, DType::i64, 1), scores, -INFINITY);
  }
  Tensor seesNothing = reduce_max(scores, {-1}, true) == -INFINITY;
  weights = where(seesNothing, 0.0, softmax(scores, -1));
}

Tensor Attention::ofScores(const Tensor &g) const {
  Tensor ofWeights = matmul(g, v.t());
  return weights * (ofWeights - reduce_sum(ofWeights * weights, {-1}, true));
}

} // namespace burin::gradients
