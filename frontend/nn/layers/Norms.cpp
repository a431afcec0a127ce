// Normalisation.
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "burin/tensor/reductions.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"

namespace burin::nn {

static void requireMomentum(double momentum, const char *kind, const Location &where) {
  require(momentum >= 0 && momentum <= 1, kind,
          "momentum is " + std::to_string(momentum) +
              ", but must lie in [0, 1]: it is the weight of a new batch in the running statistics",
          where);
}

BatchNormNd::BatchNormNd(const char *kind, size_t dimensions, int64_t features, BatchNormOptions given,
                         const Location &where)
    : Module(kind, where), options(given), dimensions(dimensions) {
  requireSize(features, 1, "the number of features", kind, where);
  requireEpsilon(options.eps, kind, where);
  if (options.momentum)
    requireMomentum(*options.momentum, kind, where);
  describe(std::to_string(features));
  if (options.affine) {
    weight = register_parameter("weight", ones({features}, DType::f32, where), where);
    bias = register_parameter("bias", zeros({features}, DType::f32, where), where);
  }
  if (options.track_running_stats) {
    running_mean = register_buffer("running_mean", zeros({features}, DType::f32, where), where);
    running_var = register_buffer("running_var", ones({features}, DType::f32, where), where);
    num_batches_tracked = register_buffer("num_batches_tracked", zeros({}, DType::i64, where), where);
  }
}

/// "[N, C, H, W]".
static const char *shapeOfInput(size_t dimensions) {
  return dimensions == 1 ? "[N, C, L]" : dimensions == 2 ? "[N, C, H, W]" : "[N, C, D, H, W]";
}

void BatchNormNd::checkInput(const Tensor &x, const Location &where) const {
  size_t rank = size_t(x.rank());
  if (rank != dimensions + 2 && !(dimensions == 1 && rank == 2))
    throw Error(where, kind(),
                "the input is " + burin::str(x.spec()) + ", not " + (dimensions == 1 ? "[N, C] or " : "") +
                    shapeOfInput(dimensions));
}

void BatchNormNd::update(const Tensor &x, const Tensor &mean, const Tensor &variance) const {
  Parameter count = num_batches_tracked, runningMean = running_mean, runningVariance = running_var; // handles
  count.set(count + 1);
  // An average over all batches so far gives them equal weights.
  trackStatistics(runningMean, runningVariance, valuesPerChannel(x), mean, variance,
                  options.momentum ? full({}, *options.momentum, mean.dtype()) : 1.0 / count->to(mean.dtype()));
}

Tensor BatchNormNd::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  LocationScope scope(detail::inScope(where));
  const Location place = detail::inScope(where);
  checkInput(x, place);
  Tensor mean = running_mean, variance = running_var;
  if (is_training() || !options.track_running_stats) {
    if (is_training() && elements(x.shape()).isStatic() && x.numel() <= x.size(1))
      throw Error(place, kind(),
                  "the input " + burin::str(x.spec()) +
                      " has one value per feature, of which there is no variance; "
                      "train with larger batches, or call eval() first");
    std::tie(mean, variance) = batchStatistics(x);
    if (options.track_running_stats)
      update(x, mean, variance);
  }
  Tensor scale = options.affine ? weight.value() : ones_like(mean),
         shift = options.affine ? bias.value() : zeros_like(mean);
  return batch_norm(x, mean, variance, scale, shift, options.eps);
}

InstanceNormNd::InstanceNormNd(const char *kind, size_t dimensions, int64_t features, InstanceNormOptions given,
                               const Location &where)
    : Module(kind, where), options(given), dimensions(dimensions), features(features) {
  requireSize(features, 1, "the number of features", kind, where);
  requireEpsilon(options.eps, kind, where);
  requireMomentum(options.momentum, kind, where);
  describe(std::to_string(features));
  if (options.affine) {
    weight = register_parameter("weight", ones({features}, DType::f32, where), where);
    bias = register_parameter("bias", zeros({features}, DType::f32, where), where);
  }
  if (options.track_running_stats) {
    running_mean = register_buffer("running_mean", zeros({features}, DType::f32, where), where);
    running_var = register_buffer("running_var", ones({features}, DType::f32, where), where);
    // PyTorch's state has it, and never counts.
    num_batches_tracked = register_buffer("num_batches_tracked", zeros({}, DType::i64, where), where);
  }
}

void InstanceNormNd::checkInput(const Tensor &x, const Dim &pixels, const Location &place) const {
  if (const Dim &channels = x.shape(place)[1]; channels.isStatic() && channels.value() != features)
    throw Error(place, kind(),
                "the input " + burin::str(x.spec(place)) + " has " + channels.str() +
                    " channels, but the layer was made for " + std::to_string(features));
  if (pixels == Dim(1))
    throw Error(place, kind(),
                "the input " + burin::str(x.spec(place)) +
                    " has one element per channel, of which there is no variance");
}

/// Means over the images of the batch enter the running statistics, of variances without bias.
void InstanceNormNd::update(const Tensor &x, const Dim &pixels) const {
  Parameter runningMean = running_mean, runningVariance = running_var; // handles
  IntList spatial;
  for (int64_t i = 2; i < x.rank(); ++i)
    spatial.push_back(i);
  trackStatistics(runningMean, runningVariance, pixels, reduce_mean(reduce_mean(x, spatial), {0}),
                  reduce_mean(reduce_var(x, spatial, false, 0), {0}), full({}, options.momentum, x.dtype()));
}

Tensor InstanceNormNd::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  LocationScope scope(detail::inScope(where));
  const Location place = detail::inScope(where);
  if (size_t(x.rank(place)) != dimensions + 2)
    throw Error(place, kind(), "the input is " + burin::str(x.spec(place)) + ", not " + shapeOfInput(dimensions));
  if (!is_training() && options.track_running_stats) {
    Tensor scale = options.affine ? weight.value() : ones_like(running_mean.value()),
           shift = options.affine ? bias.value() : zeros_like(running_mean.value());
    return batch_norm(x, running_mean, running_var, scale, shift, options.eps);
  }
  Dim pixels = 1;
  for (size_t i = 2; i < x.shape(place).size(); ++i)
    pixels = pixels * x.shape(place)[i];
  checkInput(x, pixels, place);
  if (options.track_running_stats)
    update(x, pixels);
  return instance_norm(x, optionally(weight), optionally(bias), options.eps, place);
}

#define BURIN_NORM(dimensions)                                                                                         \
  BatchNorm##dimensions##d::BatchNorm##dimensions##d(int64_t features, BatchNormOptions options, Location where)       \
      : BatchNormNd("BatchNorm" #dimensions "d", dimensions, features, options, where) {}                              \
  InstanceNorm##dimensions##d::InstanceNorm##dimensions##d(int64_t features, InstanceNormOptions options,              \
                                                           Location where)                                             \
      : InstanceNormNd("InstanceNorm" #dimensions "d", dimensions, features, options, where) {}
BURIN_NORM(1)
BURIN_NORM(2)
BURIN_NORM(3)
#undef BURIN_NORM

static Shape shapeOf(const IntList &normalized) { return {normalized.begin(), normalized.end()}; }

static void requireNormalized(const IntList &sizes, double eps, const char *layer, const Location &where) {
  require(!sizes.empty(), layer, "there must be at least one dimension to normalise over", where);
  for (int64_t size : sizes)
    requireSize(size, 1, "a size", layer, where);
  requireEpsilon(eps, layer, where);
}

LayerNorm::LayerNorm(IntList sizes, double eps, bool affine, Location where)
    : Module("LayerNorm", where), normalized(std::move(sizes)), eps(eps) {
  requireNormalized(normalized, eps, "LayerNorm", where);
  describe(burin::str(shapeOf(normalized)));
  if (affine) {
    weight = register_parameter("weight", ones(shapeOf(normalized), DType::f32, where), where);
    bias = register_parameter("bias", zeros(shapeOf(normalized), DType::f32, where), where);
  }
}
Tensor LayerNorm::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return layer_norm(x, optionally(weight), optionally(bias), -int64_t(normalized.size()), eps, where);
}

RMSNorm::RMSNorm(IntList sizes, double eps, bool affine, Location where)
    : Module("RMSNorm", where), normalized(std::move(sizes)), eps(eps) {
  requireNormalized(normalized, eps, "RMSNorm", where);
  describe(burin::str(shapeOf(normalized)));
  if (affine)
    weight = register_parameter("weight", ones(shapeOf(normalized), DType::f32, where), where);
}
Tensor RMSNorm::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return rms_norm(x, optionally(weight), -int64_t(normalized.size()), eps, where);
}

GroupNorm::GroupNorm(int64_t groups, int64_t channels, double eps, bool affine, Location where)
    : Module("GroupNorm", where), groups(groups), eps(eps) {
  describe(std::to_string(groups) + ", " + std::to_string(channels));
  requireSize(channels, 1, "the number of channels", "GroupNorm", where);
  requireEpsilon(eps, "GroupNorm", where);
  if (groups < 1 || channels % groups)
    throw Error(detail::inScope(where), "GroupNorm",
                std::to_string(groups) + " groups do not divide " + std::to_string(channels) + " channels");
  if (affine) {
    weight = register_parameter("weight", ones({channels}, DType::f32, where), where);
    bias = register_parameter("bias", zeros({channels}, DType::f32, where), where);
  }
}
Tensor GroupNorm::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return group_norm(x, groups, optionally(weight), optionally(bias), eps, where);
}

} // namespace burin::nn
