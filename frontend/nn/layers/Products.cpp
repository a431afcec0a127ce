// Linear and attention.
#include "burin/functional.h"
#include "burin/nn/init.h"
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include <cmath>
#include <limits>

namespace burin::nn {

Tensor weightFor(const Shape &shape, const Location &where) {
  return init::kaiming_uniform(shape, std::sqrt(5.0), init::Fan::In, DType::f32, where);
}
Tensor biasFor(int64_t size, const Shape &weight, const Location &where) {
  int64_t fanIn = init::fans(weight).first;
  double bound = fanIn > 0 ? 1 / std::sqrt(double(fanIn)) : 0;
  return uniform({size}, -bound, bound, DType::f32, where);
}

Linear::Linear(int64_t in, int64_t out, LinearOptions options, Location where) : Module("Linear", where) {
  describe(listed(in, out));
  Shape shape{out, in};
  weight = register_parameter("weight", weightFor(shape, where), where);
  if (options.bias)
    bias = register_parameter("bias", biasFor(out, shape, where), where);
}

Tensor Linear::forward(const Tensor &x, const Tensor &now, Location where) const {
  ModuleScope inModule(*this);
  return linear(x, now, optionally(bias), where);
}

// ---- attention

MultiheadAttention::MultiheadAttention(int64_t size, int64_t heads, AttentionOptions options, Location where)
    : Module("MultiheadAttention", where), out_proj(size, size, {.bias = options.bias}, where), heads(heads),
      options(options) {
  requireProbability(options.dropout, "MultiheadAttention", where);
  requireSize(size, 1, "the size", "MultiheadAttention", where);
  if (heads < 1 || size % heads)
    throw Error(detail::inScope(where), "MultiheadAttention",
                std::to_string(heads) + " heads do not divide the size " + std::to_string(size));
  describe(listed(size, heads));
  in_proj_weight =
      register_parameter("in_proj_weight", init::xavier_uniform({3 * size, size}, 1, DType::f32, where), where);
  if (options.bias) {
    in_proj_bias = register_parameter("in_proj_bias", zeros({3 * size}, DType::f32, where), where);
    out_proj.bias.set(zeros({size}, DType::f32, where), where);
  }
  register_module("out_proj", out_proj, where);
}

/// [..., L, heads * size] to [..., heads, L, size].
static Tensor splitHeads(const Tensor &x, int64_t heads, const Location &where) {
  Shape shape = x.shape(where);
  int64_t size = int64_t(x.size(-1, where)) / heads, rank = int64_t(shape.size());
  shape.back() = heads;
  shape.push_back(size);
  std::vector<int64_t> order;
  for (int64_t i = 0; i <= rank; ++i)
    order.push_back(i);
  std::swap(order[rank - 2], order[rank - 1]);
  return transpose(reshape(x, shape, where), order, where);
}

/// scaled_dot_product_attention with dropout of its weights.
static Tensor attendWithDropout(const Tensor &query, const Tensor &key, const Tensor &value,
                                const std::optional<Tensor> &mask, bool isCausal, double p, const Location &where) {
  LocationScope scope(where);
  // Finite, so that differences are finite.
  constexpr double kNever = -std::numeric_limits<double>::infinity(), kLow = -3e4;
  const Tensor scale = 1 / sqrt(detail::sizeTensor(query.shape().back()).to(query.dtype()));
  Tensor scores = matmul(query * scale, key.t());
  if (mask)
    scores = isBool(mask->dtype()) ? burin::where(*mask, scores, kNever) : scores + *mask;
  if (isCausal) {
    const Dim rows = scores.shape()[scores.shape().size() - 2], columns = scores.shape().back();
    scores = burin::where(iota({rows, columns}, DType::i64, 0) >= iota({rows, columns}, DType::i64, 1), scores, kNever);
  }
  Tensor isLeftOut = scores == kNever;
  Tensor weights = burin::where(isLeftOut, 0.0, softmax(burin::where(isLeftOut, kLow, scores)));
  return matmul(dropped(weights, p, weights.shape(), where), value);
}

Tensor MultiheadAttention::operator()(const Tensor &query, const Tensor &key, const Tensor &value,
                                      const std::optional<Tensor> &mask, bool is_causal, Location where) const {
  ModuleScope inModule(*this);
  int64_t size = int64_t(in_proj_weight->size(1, where));
  for (const Tensor *x : {&query, &key, &value})
    if (x->rank(where) < 2 || x->shape(where).back() != Dim(size))
      throw Error(detail::inScope(where), "MultiheadAttention",
                  "query, key and value are " + burin::str(query.spec(where)) + ", " + burin::str(key.spec(where)) +
                      " and " + burin::str(value.spec(where)) + ", but must be [..., L, " + std::to_string(size) +
                      "] and [..., S, " + std::to_string(size) + "]");
  std::vector<Tensor> weights = split(in_proj_weight, {size, size, size}, 0, where), biases(3);
  if (in_proj_bias.defined())
    biases = split(in_proj_bias, {size, size, size}, 0, where);
  auto project = [&](const Tensor &x, size_t i) {
    auto bias = biases[i].defined() ? std::optional(biases[i]) : std::nullopt;
    return splitHeads(linear(x, weights[i], bias, where), heads, where);
  };
  Tensor q = project(query, 0), k = project(key, 1), v = project(value, 2);
  Tensor mixed = options.dropout > 0 && is_training()
                     ? attendWithDropout(q, k, v, mask, is_causal, options.dropout, where)
                     : scaled_dot_product_attention(q, k, v, mask, is_causal, 0, where);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < mixed.rank(where); ++i)
    order.push_back(i);
  std::swap(order[order.size() - 3], order[order.size() - 2]);
  Shape shape = query.shape(where);
  shape.back() = size;
  return out_proj(reshape(transpose(mixed, order, where), shape, where), where);
}

} // namespace burin::nn
