// The layers of burin::nn. Names, parameters and defaults are PyTorch's.
#pragma once
#include "burin/module.h"

namespace burin::nn {

/// One number per spatial dimension, or one for all.
using IntList = Axes;

// ---- products

/// x · weightᵀ + bias; weight [out, in].
struct BURIN_API Linear : Module {
  Linear(int64_t in, int64_t out, bool bias = true, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  Parameter weight, bias;
};

struct ConvOptions {
  IntList stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};
/// x [N, in, length], weight [out, in/groups, kernel].
struct BURIN_API Conv1d : Module {
  Conv1d(int64_t in, int64_t out, IntList kernel, ConvOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  Parameter weight, bias;
  ConvOptions options;
};
/// x [N, in, height, width], weight [out, in/groups, kernel, kernel].
struct BURIN_API Conv2d : Module {
  Conv2d(int64_t in, int64_t out, IntList kernel, ConvOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  Parameter weight, bias;
  ConvOptions options;
};
struct ConvTransposeOptions {
  IntList stride = 1, padding = 0, output_padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};
/// weight [in, out/groups, kernel, kernel].
struct BURIN_API ConvTranspose2d : Module {
  ConvTranspose2d(int64_t in, int64_t out, IntList kernel, ConvTransposeOptions options = {},
                  Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  Parameter weight, bias;
  ConvTransposeOptions options;
};

/// Rows of weight [count, size] chosen by integers.
struct BURIN_API Embedding : Module {
  Embedding(int64_t count, int64_t size, Location where = Location::current());
  Tensor operator()(const Tensor &indices, Location where = Location::current()) const;
  Parameter weight;
};

struct AttentionOptions {
  bool bias = true;
  double dropout = 0;
};
/// Attention of several heads; query [..., L, size], key and value [..., S, size].
struct BURIN_API MultiheadAttention : Module {
  MultiheadAttention(int64_t size, int64_t heads, AttentionOptions options = {}, Location where = Location::current());
  /// `mask` as in scaled_dot_product_attention, broadcasting to [..., heads, L, S].
  Tensor operator()(const Tensor &query, const Tensor &key, const Tensor &value,
                    const std::optional<Tensor> &mask = std::nullopt, bool is_causal = false,
                    Location where = Location::current()) const;
  /// Self-attention.
  Tensor operator()(const Tensor &x, Location where = Location::current()) const {
    return (*this)(x, x, x, std::nullopt, false, where);
  }
  Parameter in_proj_weight, in_proj_bias;
  Linear out_proj;
  int64_t heads;
  AttentionOptions options;
};

// ---- normalisation

struct BatchNormOptions {
  double eps = 1e-5, momentum = 0.1;
  bool affine = true;
};
/// x [N, features, height, width]. In training mode with the statistics of x, which also update the stored ones; else
/// with the stored ones.
struct BURIN_API BatchNorm2d : Module {
  explicit BatchNorm2d(int64_t features, BatchNormOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current());
  Parameter weight, bias, running_mean, running_var, num_batches_tracked;
  BatchNormOptions options;
};
/// Over the last dimensions, which have the shape `normalized`.
struct BURIN_API LayerNorm : Module {
  explicit LayerNorm(IntList normalized, double eps = 1e-5, bool affine = true, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  Parameter weight, bias;
  IntList normalized;
  double eps;
};
struct BURIN_API RMSNorm : Module {
  explicit RMSNorm(IntList normalized, double eps = 1e-6, bool affine = true, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  Parameter weight;
  IntList normalized;
  double eps;
};
struct BURIN_API GroupNorm : Module {
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5, bool affine = true,
            Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  Parameter weight, bias;
  int64_t groups;
  double eps;
};

// ---- windows

struct PoolOptions {
  IntList stride, padding = 0, dilation = 1; // no stride: the kernel
  bool ceil_mode = false;
};
struct BURIN_API MaxPool2d : Module {
  explicit MaxPool2d(IntList kernel, PoolOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  IntList kernel;
  PoolOptions options;
};
struct AvgPoolOptions {
  IntList stride, padding = 0;
  bool ceil_mode = false, count_include_pad = true;
};
struct BURIN_API AvgPool2d : Module {
  explicit AvgPool2d(IntList kernel, AvgPoolOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  IntList kernel;
  AvgPoolOptions options;
};
struct BURIN_API AdaptiveAvgPool2d : Module {
  explicit AdaptiveAvgPool2d(IntList output, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  IntList output;
};

// ---- activations and shapes

struct BURIN_API ReLU : Module {
  explicit ReLU(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
struct BURIN_API LeakyReLU : Module {
  explicit LeakyReLU(double negative_slope = 0.01, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double negative_slope;
};
struct BURIN_API ELU : Module {
  explicit ELU(double alpha = 1, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double alpha;
};
/// `approximate`: "none" or "tanh".
struct BURIN_API GELU : Module {
  explicit GELU(std::string approximate = "none", Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  std::string approximate;
};
struct BURIN_API SiLU : Module {
  explicit SiLU(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
struct BURIN_API Sigmoid : Module {
  explicit Sigmoid(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
struct BURIN_API Tanh : Module {
  explicit Tanh(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
struct BURIN_API Softplus : Module {
  explicit Softplus(double beta = 1, double threshold = 20, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double beta, threshold;
};
struct BURIN_API Hardswish : Module {
  explicit Hardswish(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
struct BURIN_API Hardsigmoid : Module {
  explicit Hardsigmoid(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
struct BURIN_API Softmax : Module {
  explicit Softmax(int64_t axis = -1, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  int64_t axis;
};
struct BURIN_API LogSoftmax : Module {
  explicit LogSoftmax(int64_t axis = -1, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  int64_t axis;
};
/// In training mode, each element becomes 0 with probability p and is scaled by 1 / (1 - p) otherwise.
struct BURIN_API Dropout : Module {
  explicit Dropout(double p = 0.5, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double p;
};
struct BURIN_API Flatten : Module {
  explicit Flatten(int64_t start = 1, int64_t end = -1, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  int64_t start, end;
};
struct BURIN_API Identity : Module {
  explicit Identity(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};

} // namespace burin::nn
