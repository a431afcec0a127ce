// Normalisation and pooling.
#include "burin/creation.h"
#include "burin/ops.h"
#include "burin/reductions.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/LocationScope.h"

namespace burin::nn {

BatchNorm2d::BatchNorm2d(int64_t features, BatchNormOptions given, Location where)
    : Module("BatchNorm2d", where), options(given) {
  describe(std::to_string(features));
  if (options.affine) {
    weight = register_parameter("weight", ones({features}, DType::f32, where), where);
    bias = register_parameter("bias", zeros({features}, DType::f32, where), where);
  }
  running_mean = register_buffer("running_mean", zeros({features}, DType::f32, where), where);
  running_var = register_buffer("running_var", ones({features}, DType::f32, where), where);
  num_batches_tracked = register_buffer("num_batches_tracked", zeros({}, DType::i64, where), where);
}

Tensor BatchNorm2d::operator()(const Tensor &x, Location where) {
  LocationScope scope(detail::inScope(where));
  if (x.rank() != 4)
    throw Error(where, "BatchNorm2d", "the input is " + burin::str(x.spec()) + ", not [N, C, H, W]");
  Tensor mean = running_mean, variance = running_var;
  if (is_training()) {
    if (x.isTraced())
      throw Error(
          detail::inScope(where), "BatchNorm2d",
          "in training mode this layer updates its statistics, which a traced graph cannot do; call eval() first");
    mean = reduce_mean(x, {0, 2, 3});
    variance = reduce_var(x, {0, 2, 3}, false, 0);
    double count = double(x.numel()) / double(x.size(1)), momentum = options.momentum;
    Tensor unbiased = variance * (count > 1 ? count / (count - 1) : 1.0);
    running_mean.set(running_mean * (1 - momentum) + mean * momentum);
    running_var.set(running_var * (1 - momentum) + unbiased * momentum);
    num_batches_tracked.set(num_batches_tracked + 1);
  }
  Tensor scale = options.affine ? weight.value() : ones_like(mean),
         shift = options.affine ? bias.value() : zeros_like(mean);
  return batch_norm(x, mean, variance, scale, shift, options.eps);
}

static Shape shapeOf(const IntList &normalized) { return {normalized.begin(), normalized.end()}; }

LayerNorm::LayerNorm(IntList sizes, double eps, bool affine, Location where)
    : Module("LayerNorm", where), normalized(std::move(sizes)), eps(eps) {
  describe(burin::str(shapeOf(normalized)));
  if (affine) {
    weight = register_parameter("weight", ones(shapeOf(normalized), DType::f32, where), where);
    bias = register_parameter("bias", zeros(shapeOf(normalized), DType::f32, where), where);
  }
}
Tensor LayerNorm::operator()(const Tensor &x, Location where) const {
  return layer_norm(x, optionally(weight), optionally(bias), -int64_t(normalized.size()), eps, where);
}

RMSNorm::RMSNorm(IntList sizes, double eps, bool affine, Location where)
    : Module("RMSNorm", where), normalized(std::move(sizes)), eps(eps) {
  describe(burin::str(shapeOf(normalized)));
  if (affine)
    weight = register_parameter("weight", ones(shapeOf(normalized), DType::f32, where), where);
}
Tensor RMSNorm::operator()(const Tensor &x, Location where) const {
  return rms_norm(x, optionally(weight), -int64_t(normalized.size()), eps, where);
}

GroupNorm::GroupNorm(int64_t groups, int64_t channels, double eps, bool affine, Location where)
    : Module("GroupNorm", where), groups(groups), eps(eps) {
  describe(std::to_string(groups) + ", " + std::to_string(channels));
  if (groups < 1 || channels % groups)
    throw Error(detail::inScope(where), "GroupNorm",
                std::to_string(groups) + " groups do not divide " + std::to_string(channels) + " channels");
  if (affine) {
    weight = register_parameter("weight", ones({channels}, DType::f32, where), where);
    bias = register_parameter("bias", zeros({channels}, DType::f32, where), where);
  }
}
Tensor GroupNorm::operator()(const Tensor &x, Location where) const {
  return group_norm(x, groups, optionally(weight), optionally(bias), eps, where);
}

// ---- pooling

static IntList pair(IntList list) { return list.size() == 1 ? IntList{list[0], list[0]} : list; }

MaxPool2d::MaxPool2d(IntList kernel, PoolOptions options, Location where)
    : Module("MaxPool2d", where), kernel(pair(std::move(kernel))), options(std::move(options)) {}
Tensor MaxPool2d::operator()(const Tensor &x, Location where) const {
  return max_pool(x, kernel, options.stride, options.padding, options.dilation, options.ceil_mode, "nchw", where);
}

AvgPool2d::AvgPool2d(IntList kernel, AvgPoolOptions options, Location where)
    : Module("AvgPool2d", where), kernel(pair(std::move(kernel))), options(std::move(options)) {}
Tensor AvgPool2d::operator()(const Tensor &x, Location where) const {
  return avg_pool(x, kernel, options.stride, options.padding, {}, options.ceil_mode, options.count_include_pad, "nchw",
                  where);
}

AdaptiveAvgPool2d::AdaptiveAvgPool2d(IntList output, Location where)
    : Module("AdaptiveAvgPool2d", where), output(pair(std::move(output))) {}
Tensor AdaptiveAvgPool2d::operator()(const Tensor &x, Location where) const {
  return adaptive_avg_pool(x, output, "nchw", where);
}

} // namespace burin::nn
