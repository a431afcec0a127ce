// Layers with products: Linear, convolutions, Embedding, attention.
#include "burin/creation.h"
#include "burin/init.h"
#include "burin/ops.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/LocationScope.h"
#include "frontend/trace/Trace.h"
#include <cmath>

namespace burin::nn {

/// PyTorch's default for products: both weight and bias are uniform within 1 / sqrt(fan_in).
static Tensor weightFor(const Shape &shape, const Location &where) {
  return init::kaiming_uniform(shape, std::sqrt(5.0), init::Fan::In, DType::f32, where);
}
static Tensor biasFor(int64_t size, const Shape &weight, const Location &where) {
  int64_t fanIn = init::fans(weight).first;
  double bound = fanIn > 0 ? 1 / std::sqrt(double(fanIn)) : 0;
  return uniform({size}, -bound, bound, DType::f32, where);
}

Linear::Linear(int64_t in, int64_t out, bool hasBias, Location where) : Module("Linear", where) {
  describe(listed(in, out));
  Shape shape{out, in};
  weight = register_parameter("weight", weightFor(shape, where), where);
  if (hasBias)
    bias = register_parameter("bias", biasFor(out, shape, where), where);
}

static Tensor linear(const Tensor &x, const Tensor &weight, const std::optional<Tensor> &bias, const Location &where) {
  // Where it runs now, as one op that reads the weight as it lies; in a graph, the compiler sees to that.
  bool isNow = !Trace::active() && x.rank() > 0 && x.shape().back() == weight.shape().back();
  Tensor product =
      isNow ? dot_general(x, weight, {}, {}, {x.rank() - 1}, {1}, where) : matmul(x, weight.t(where), where);
  return bias ? add(product, *bias, where) : product;
}
Tensor Linear::operator()(const Tensor &x, Location where) const { return linear(x, weight, optionally(bias), where); }

IntList perDimension(IntList list, size_t dimensions, const char *layer, const char *what, const Location &where) {
  if (list.size() == 1)
    list.assign(dimensions, list[0]);
  if (list.size() != dimensions)
    throw Error(detail::inScope(where), layer,
                std::string(what) + " takes one number or " + std::to_string(dimensions) + ", not " +
                    std::to_string(list.size()));
  return list;
}

static Shape convShape(int64_t first, int64_t second, int64_t groups, const IntList &kernel, size_t dimensions,
                       const char *layer, const Location &where) {
  if (groups < 1 || second % groups)
    throw Error(detail::inScope(where), layer,
                std::to_string(groups) + " groups do not divide " + std::to_string(second) + " channels");
  Shape shape{first, second / groups};
  for (int64_t size : perDimension(kernel, dimensions, layer, "kernel", where))
    shape.push_back(size);
  return shape;
}

Conv1d::Conv1d(int64_t in, int64_t out, IntList kernel, ConvOptions given, Location where)
    : Module("Conv1d", where), options(std::move(given)) {
  describe(listed(in, out, kernel));
  Shape shape = convShape(out, in, options.groups, kernel, 1, "Conv1d", where);
  weight = register_parameter("weight", weightFor(shape, where), where);
  if (options.bias)
    bias = register_parameter("bias", biasFor(out, shape, where), where);
}
Tensor Conv1d::operator()(const Tensor &x, Location where) const {
  return conv(x, weight, optionally(bias), options.stride, options.padding, options.dilation, options.groups, "nchw",
              where);
}

Conv2d::Conv2d(int64_t in, int64_t out, IntList kernel, ConvOptions given, Location where)
    : Module("Conv2d", where), options(std::move(given)) {
  describe(listed(in, out, kernel));
  Shape shape = convShape(out, in, options.groups, kernel, 2, "Conv2d", where);
  weight = register_parameter("weight", weightFor(shape, where), where);
  if (options.bias)
    bias = register_parameter("bias", biasFor(out, shape, where), where);
}
Tensor Conv2d::operator()(const Tensor &x, Location where) const {
  return conv(x, weight, optionally(bias), options.stride, options.padding, options.dilation, options.groups, "nchw",
              where);
}

ConvTranspose2d::ConvTranspose2d(int64_t in, int64_t out, IntList kernel, ConvTransposeOptions given, Location where)
    : Module("ConvTranspose2d", where), options(std::move(given)) {
  describe(listed(in, out, kernel));
  Shape shape = convShape(in, out, options.groups, kernel, 2, "ConvTranspose2d", where);
  weight = register_parameter("weight", weightFor(shape, where), where);
  if (options.bias)
    bias = register_parameter("bias", biasFor(out, shape, where), where);
}
Tensor ConvTranspose2d::operator()(const Tensor &x, Location where) const {
  return conv_transpose(x, weight, optionally(bias), options.stride, options.padding, options.dilation, options.groups,
                        options.output_padding, where);
}

Embedding::Embedding(int64_t count, int64_t size, Location where) : Module("Embedding", where) {
  describe(listed(count, size));
  weight = register_parameter("weight", randn({count, size}, DType::f32, where), where);
}
Tensor Embedding::operator()(const Tensor &indices, Location where) const { return take(weight, indices, 0, where); }

// ---- attention

MultiheadAttention::MultiheadAttention(int64_t size, int64_t heads, AttentionOptions options, Location where)
    : Module("MultiheadAttention", where), out_proj(size, size, options.bias, where), heads(heads), options(options) {
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

Tensor MultiheadAttention::operator()(const Tensor &query, const Tensor &key, const Tensor &value,
                                      const std::optional<Tensor> &mask, bool is_causal, Location where) const {
  if (options.dropout > 0 && is_training())
    throw Error(detail::inScope(where), "MultiheadAttention",
                "dropout of attention weights is not supported; call eval()");
  int64_t size = int64_t(in_proj_weight->size(1, where));
  std::vector<Tensor> weights = split(in_proj_weight, {size, size, size}, 0, where), biases(3);
  if (in_proj_bias.defined())
    biases = split(in_proj_bias, {size, size, size}, 0, where);
  auto project = [&](const Tensor &x, size_t i) {
    auto bias = biases[i].defined() ? std::optional(biases[i]) : std::nullopt;
    return splitHeads(linear(x, weights[i], bias, where), heads, where);
  };
  Tensor mixed =
      scaled_dot_product_attention(project(query, 0), project(key, 1), project(value, 2), mask, is_causal, 0, where);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < mixed.rank(where); ++i)
    order.push_back(i);
  std::swap(order[order.size() - 3], order[order.size() - 2]);
  Shape shape = query.shape(where);
  shape.back() = size;
  return out_proj(reshape(transpose(mixed, order, where), shape, where), where);
}

} // namespace burin::nn
