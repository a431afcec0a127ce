// The layers of burin::nn. Names, parameters and defaults are PyTorch's.
#pragma once
#include "burin/nn/module.h"

namespace burin::nn {

/// One number per spatial dimension, or one for all.
using burin::IntList;

// ---- products

/// Options of Linear.
struct LinearOptions {
  bool bias = true;
};
/// x · weightᵀ + bias; weight [out, in].
struct BURIN_API Linear : Module {
  Linear(int64_t in, int64_t out, LinearOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const { return forward(x, weight, where); }
  /// Computes with another weight of the same shape.
  Tensor forward(const Tensor &x, const Tensor &weight, Location where = Location::current()) const;
  Parameter weight, bias;
};

/// Options of the convolutions; numbers per spatial dimension, or one for all.
struct ConvOptions {
  IntList stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};
/// Base of convolutions over 1, 2 and 3 dimensions. x [N, in, spatial…], weight [out, in/groups, kernel…], bias [out].
/// A kernel or an option is one number per spatial dimension, or one for all.
/// Source: torch.nn.Conv1d, Conv2d, Conv3d.
struct BURIN_API ConvNd : Module {
  Tensor operator()(const Tensor &x, Location where = Location::current()) const { return forward(x, weight, where); }
  /// Computes with another weight of the same shape.
  Tensor forward(const Tensor &x, const Tensor &weight, Location where = Location::current()) const;
  Parameter weight, bias;
  ConvOptions options;

protected:
  ConvNd(const char *kind, size_t dimensions, int64_t in, int64_t out, const IntList &kernel, ConvOptions options,
         const Location &where);
};
/// x [N, in, length].
struct BURIN_API Conv1d : ConvNd {
  Conv1d(int64_t in, int64_t out, IntList kernel, ConvOptions options = {}, Location where = Location::current());
};
/// x [N, in, height, width].
struct BURIN_API Conv2d : ConvNd {
  Conv2d(int64_t in, int64_t out, IntList kernel, ConvOptions options = {}, Location where = Location::current());
};
/// x [N, in, depth, height, width].
struct BURIN_API Conv3d : ConvNd {
  Conv3d(int64_t in, int64_t out, IntList kernel, ConvOptions options = {}, Location where = Location::current());
};

/// Options of the transposed convolutions. `output_padding` is added to one side of the result.
struct ConvTransposeOptions {
  IntList stride = 1, padding = 0, output_padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};
/// Base of transposed convolutions: weight [in, out/groups, kernel…], otherwise like ConvNd.
/// Source: torch.nn.ConvTranspose1d, ConvTranspose2d, ConvTranspose3d.
struct BURIN_API ConvTransposeNd : Module {
  Tensor operator()(const Tensor &x, Location where = Location::current()) const { return forward(x, weight, where); }
  /// Computes with another weight of the same shape.
  Tensor forward(const Tensor &x, const Tensor &weight, Location where = Location::current()) const;
  Parameter weight, bias;
  ConvTransposeOptions options;

protected:
  ConvTransposeNd(const char *kind, size_t dimensions, int64_t in, int64_t out, const IntList &kernel,
                  ConvTransposeOptions options, const Location &where);
};
/// x [N, in, length].
struct BURIN_API ConvTranspose1d : ConvTransposeNd {
  ConvTranspose1d(int64_t in, int64_t out, IntList kernel, ConvTransposeOptions options = {},
                  Location where = Location::current());
};
/// x [N, in, height, width].
struct BURIN_API ConvTranspose2d : ConvTransposeNd {
  ConvTranspose2d(int64_t in, int64_t out, IntList kernel, ConvTransposeOptions options = {},
                  Location where = Location::current());
};
/// x [N, in, depth, height, width].
struct BURIN_API ConvTranspose3d : ConvTransposeNd {
  ConvTranspose3d(int64_t in, int64_t out, IntList kernel, ConvTransposeOptions options = {},
                  Location where = Location::current());
};

/// Options of Embedding.
struct EmbeddingOptions {
  /// A row that is initially 0 and is not trained: its gradient is 0.
  std::optional<int64_t> padding_idx = std::nullopt;
  /// backward() stores the gradient of the weight as the rows that were looked up, as long as nothing else uses the
  /// weight. SGD (without momentum and decay), Adagrad (without decay) and SparseAdam then read and write only those
  /// rows. grad() of the weight returns the full gradient.
  bool sparse = false;
};
/// Rows of weight [count, size] selected by integers. Source: torch.nn.Embedding.
struct BURIN_API Embedding : Module {
  Embedding(int64_t count, int64_t size, Location where = Location::current())
      : Embedding(count, size, EmbeddingOptions(), where) {}
  Embedding(int64_t count, int64_t size, EmbeddingOptions options, Location where = Location::current());
  Tensor operator()(const Tensor &indices, Location where = Location::current()) const;
  Parameter weight;
  EmbeddingOptions options;
};
/// Sums, means or maxima of rows of weight [count, size]. Source: torch.nn.EmbeddingBag.
struct BURIN_API EmbeddingBag : Module {
  /// `mode`: "mean", "sum" or "max".
  EmbeddingBag(int64_t count, int64_t size, std::string mode = "mean", Location where = Location::current());
  /// One bag per row of the indices [bags, length]; `weights` of the same shape scale the rows (mode "sum" only).
  Tensor operator()(const Tensor &indices, const std::optional<Tensor> &weights = std::nullopt,
                    Location where = Location::current()) const;
  /// Bag i has the elements of `indices` [n] from offsets[i] to offsets[i + 1]; offsets [bags] start with 0 and ascend.
  /// An empty bag gives zeros.
  Tensor forward(const Tensor &indices, const Tensor &offsets, const std::optional<Tensor> &weights = std::nullopt,
                 Location where = Location::current()) const;
  Parameter weight;
  std::string mode;
};

/// Options of MultiheadAttention: biases of its four products; the probability of dropping an attention weight in
/// training.
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

/// Options of the batch norms: `eps` is added to the variance; `momentum` is the weight of a new batch in the running
/// statistics; `affine` adds a scale and a shift per feature.
struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1; ///< none: the mean over all batches so far
  bool affine = true;
  bool track_running_stats = true; ///< false: eval mode uses the statistics of x, too
};
/// Base of batch normalisation over 1, 2 and 3 spatial dimensions: x [N, features, spatial…]. Training mode uses the
/// statistics of x, and updates the stored ones; eval mode uses the stored ones. Training needs more than one value per
/// feature. Source: Ioffe and Szegedy 2015, torch.nn.BatchNorm1d, BatchNorm2d, BatchNorm3d.
struct BURIN_API BatchNormNd : Module {
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  Parameter weight, bias, running_mean, running_var, num_batches_tracked;
  BatchNormOptions options;

protected:
  BatchNormNd(const char *kind, size_t dimensions, int64_t features, BatchNormOptions options, const Location &where);
  size_t dimensions;

private:
  void checkInput(const Tensor &x, const Location &where) const;
  void update(const Tensor &x, const Tensor &mean, const Tensor &variance) const;
};
/// x [N, features] or [N, features, length].
struct BURIN_API BatchNorm1d : BatchNormNd {
  explicit BatchNorm1d(int64_t features, BatchNormOptions options = {}, Location where = Location::current());
};
/// x [N, features, height, width].
struct BURIN_API BatchNorm2d : BatchNormNd {
  explicit BatchNorm2d(int64_t features, BatchNormOptions options = {}, Location where = Location::current());
};
/// x [N, features, depth, height, width].
struct BURIN_API BatchNorm3d : BatchNormNd {
  explicit BatchNorm3d(int64_t features, BatchNormOptions options = {}, Location where = Location::current());
};

/// Options of the instance norms: `eps` is added to the variance; `affine` adds a scale and a shift per channel;
/// `momentum` is the weight of new images in the running statistics, which `track_running_stats` keeps.
struct InstanceNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = false;
  bool track_running_stats = false;
};
/// Zero mean and unit variance over the spatial dimensions of each channel of each image, then with `affine` a scale
/// and a shift per channel. With `track_running_stats`, training mode averages the statistics of all images, and eval
/// mode uses the averages. Source: torch.nn.InstanceNorm1d, InstanceNorm2d, InstanceNorm3d.
struct BURIN_API InstanceNormNd : Module {
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  Parameter weight, bias, running_mean, running_var, num_batches_tracked;
  InstanceNormOptions options;

protected:
  InstanceNormNd(const char *kind, size_t dimensions, int64_t features, InstanceNormOptions options,
                 const Location &where);
  size_t dimensions;
  int64_t features;

private:
  void checkInput(const Tensor &x, const Dim &pixels, const Location &where) const;
  void update(const Tensor &x, const Dim &pixels) const;
};
/// x [N, features, length].
struct BURIN_API InstanceNorm1d : InstanceNormNd {
  explicit InstanceNorm1d(int64_t features, InstanceNormOptions options = {}, Location where = Location::current());
};
/// x [N, features, height, width].
struct BURIN_API InstanceNorm2d : InstanceNormNd {
  explicit InstanceNorm2d(int64_t features, InstanceNormOptions options = {}, Location where = Location::current());
};
/// x [N, features, depth, height, width].
struct BURIN_API InstanceNorm3d : InstanceNormNd {
  explicit InstanceNorm3d(int64_t features, InstanceNormOptions options = {}, Location where = Location::current());
};

/// Normalises over the last dimensions, which have the shape `normalized`.
struct BURIN_API LayerNorm : Module {
  explicit LayerNorm(IntList normalized, double eps = 1e-5, bool affine = true, Location where = Location::current());
  explicit LayerNorm(std::initializer_list<int64_t> normalized, double eps = 1e-5, bool affine = true,
                     Location where = Location::current())
      : LayerNorm(IntList(normalized), eps, affine, where) {}
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  Parameter weight, bias;
  IntList normalized;
  double eps;
};
/// x / sqrt(mean(x²) + eps) · weight over the last dimensions, which have the shape `normalized`. PyTorch's default of
/// eps is the machine epsilon. Source: Zhang and Sennrich 2019, torch.nn.RMSNorm.
struct BURIN_API RMSNorm : Module {
  explicit RMSNorm(IntList normalized, double eps = 1e-6, bool affine = true, Location where = Location::current());
  explicit RMSNorm(std::initializer_list<int64_t> normalized, double eps = 1e-6, bool affine = true,
                   Location where = Location::current())
      : RMSNorm(IntList(normalized), eps, affine, where) {}
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  Parameter weight;
  IntList normalized;
  double eps;
};
/// Zero mean and unit variance over each of `groups` groups of channels of x [N, channels, spatial…], then with
/// `affine` a scale and a shift per channel. `channels` is a multiple of `groups`. Source: Wu and He 2018,
/// torch.nn.GroupNorm.
struct BURIN_API GroupNorm : Module {
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5, bool affine = true,
            Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  Parameter weight, bias;
  int64_t groups;
  double eps;
};

// ---- windows

/// Options of the max pools. With `ceil_mode` the result includes a last window that is cut off.
struct PoolOptions {
  IntList stride = {}, padding = 0, dilation = 1; ///< default stride: the kernel
  bool ceil_mode = false;
};
/// The largest element of each window of x [N, C, spatial…]. Source: torch.nn.MaxPool1d, MaxPool2d, MaxPool3d.
struct BURIN_API MaxPoolNd : Module {
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  /// Also the positions that MaxUnpool takes, see max_pool2d_with_indices. As with return_indices=True.
  SortResult forward_with_indices(const Tensor &x, Location where = Location::current()) const;
  IntList kernel;
  PoolOptions options;

protected:
  MaxPoolNd(const char *kind, size_t dimensions, IntList kernel, PoolOptions options, const Location &where);
};
/// x [N, C, length].
struct BURIN_API MaxPool1d : MaxPoolNd {
  explicit MaxPool1d(IntList kernel, PoolOptions options = {}, Location where = Location::current());
};
/// x [N, C, height, width].
struct BURIN_API MaxPool2d : MaxPoolNd {
  explicit MaxPool2d(IntList kernel, PoolOptions options = {}, Location where = Location::current());
};
/// x [N, C, depth, height, width].
struct BURIN_API MaxPool3d : MaxPoolNd {
  explicit MaxPool3d(IntList kernel, PoolOptions options = {}, Location where = Location::current());
};
/// Options of the average pools. With `count_include_pad` the mean includes the zeros of the padding.
struct AvgPoolOptions {
  IntList stride = {}, padding = 0; ///< default stride: the kernel
  bool ceil_mode = false, count_include_pad = true;
};
/// The mean of each window of x [N, C, spatial…]. Source: torch.nn.AvgPool1d, AvgPool2d, AvgPool3d.
struct BURIN_API AvgPoolNd : Module {
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  IntList kernel;
  AvgPoolOptions options;

protected:
  AvgPoolNd(const char *kind, size_t dimensions, IntList kernel, AvgPoolOptions options, const Location &where);
};
/// x [N, C, length].
struct BURIN_API AvgPool1d : AvgPoolNd {
  explicit AvgPool1d(IntList kernel, AvgPoolOptions options = {}, Location where = Location::current());
};
/// x [N, C, height, width].
struct BURIN_API AvgPool2d : AvgPoolNd {
  explicit AvgPool2d(IntList kernel, AvgPoolOptions options = {}, Location where = Location::current());
};
/// x [N, C, depth, height, width].
struct BURIN_API AvgPool3d : AvgPoolNd {
  explicit AvgPool3d(IntList kernel, AvgPoolOptions options = {}, Location where = Location::current());
};
/// Means of windows of x [N, C, spatial…], placed so that the result has the spatial sizes `output`.
/// Source: torch.nn.AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d.
struct BURIN_API AdaptiveAvgPoolNd : Module {
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  IntList output;

protected:
  AdaptiveAvgPoolNd(const char *kind, size_t dimensions, IntList output, const Location &where);
};
/// x [N, C, length].
struct BURIN_API AdaptiveAvgPool1d : AdaptiveAvgPoolNd {
  explicit AdaptiveAvgPool1d(IntList output, Location where = Location::current());
};
/// x [N, C, height, width].
struct BURIN_API AdaptiveAvgPool2d : AdaptiveAvgPoolNd {
  explicit AdaptiveAvgPool2d(IntList output, Location where = Location::current());
};
/// x [N, C, depth, height, width].
struct BURIN_API AdaptiveAvgPool3d : AdaptiveAvgPoolNd {
  explicit AdaptiveAvgPool3d(IntList output, Location where = Location::current());
};

// ---- activations and shapes. The flag that some take is PyTorch's `inplace`, without effect, as tensors never change

/// max(x, 0). Source: torch.nn.ReLU.
struct BURIN_API ReLU : Module {
  explicit ReLU(Location where = Location::current());
  explicit ReLU(bool, Location where = Location::current()) : ReLU(where) {}
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
/// x for x > 0, negative_slope · x otherwise. Source: torch.nn.LeakyReLU.
struct BURIN_API LeakyReLU : Module {
  explicit LeakyReLU(double negative_slope = 0.01, Location where = Location::current());
  LeakyReLU(double negative_slope, bool, Location where = Location::current()) : LeakyReLU(negative_slope, where) {}
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double negative_slope;
};
/// x for x > 0, alpha · (exp(x) - 1) otherwise. Source: Clevert et al. 2015, torch.nn.ELU.
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
/// x · sigmoid(x). Source: torch.nn.SiLU.
struct BURIN_API SiLU : Module {
  explicit SiLU(Location where = Location::current());
  explicit SiLU(bool, Location where = Location::current()) : SiLU(where) {}
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
/// 1 / (1 + exp(-x)). Source: torch.nn.Sigmoid.
struct BURIN_API Sigmoid : Module {
  explicit Sigmoid(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
/// tanh(x). Source: torch.nn.Tanh.
struct BURIN_API Tanh : Module {
  explicit Tanh(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
/// log(1 + exp(beta · x)) / beta, and x where beta · x is above `threshold`. Source: torch.nn.Softplus.
struct BURIN_API Softplus : Module {
  explicit Softplus(double beta = 1, double threshold = 20, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double beta, threshold;
};
/// x · min(max(x + 3, 0), 6) / 6. Source: Howard et al. 2019, torch.nn.Hardswish.
struct BURIN_API Hardswish : Module {
  explicit Hardswish(Location where = Location::current());
  explicit Hardswish(bool, Location where = Location::current()) : Hardswish(where) {}
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
/// min(max(x / 6 + 1/2, 0), 1). Source: torch.nn.Hardsigmoid.
struct BURIN_API Hardsigmoid : Module {
  explicit Hardsigmoid(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
/// exp(x) divided by its sum along `axis`, without overflow. Source: torch.nn.Softmax.
struct BURIN_API Softmax : Module {
  explicit Softmax(int64_t axis = -1, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  int64_t axis;
};
/// log(softmax(x)) along `axis`, without overflow. Source: torch.nn.LogSoftmax.
struct BURIN_API LogSoftmax : Module {
  explicit LogSoftmax(int64_t axis = -1, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  int64_t axis;
};
/// x · tanh(softplus(x)). Source: Misra 2019, torch.nn.Mish.
struct BURIN_API Mish : Module {
  explicit Mish(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
/// x for x > 0, weight · x otherwise; one weight, or one per channel of x [N, C, …]. Source: torch.nn.PReLU.
struct BURIN_API PReLU : Module {
  explicit PReLU(int64_t num_parameters = 1, double init = 0.25, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  Parameter weight;
};
/// In training mode, each element becomes 0 with probability p and is scaled by 1 / (1 - p) otherwise.
struct BURIN_API Dropout : Module {
  explicit Dropout(double p = 0.5, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double p;
};
/// Dropout of whole channels of x [N, C, spatial…]. Source: torch.nn.Dropout1d, Dropout2d, Dropout3d.
struct BURIN_API DropoutNd : Module {
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double p;

protected:
  DropoutNd(const char *kind, size_t dimensions, double p, const Location &where);
  size_t dimensions;
};
/// x [N, C, length].
struct BURIN_API Dropout1d : DropoutNd {
  explicit Dropout1d(double p = 0.5, Location where = Location::current());
};
/// x [N, C, height, width].
struct BURIN_API Dropout2d : DropoutNd {
  explicit Dropout2d(double p = 0.5, Location where = Location::current());
};
/// x [N, C, depth, height, width].
struct BURIN_API Dropout3d : DropoutNd {
  explicit Dropout3d(double p = 0.5, Location where = Location::current());
};
/// Merges dimensions `start` to `end` (both included). Source: torch.nn.Flatten.
struct BURIN_API Flatten : Module {
  explicit Flatten(int64_t start = 1, int64_t end = -1, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  int64_t start, end;
};
/// Options of Upsample and interpolate: either `size` or `scale_factor` is required.
struct UpsampleOptions {
  IntList size = {};                     ///< of the result
  std::vector<double> scale_factor = {}; ///< one per spatial dimension, or one for all
  std::string mode = "nearest";          ///< "nearest", "linear", "bilinear", "trilinear" or "bicubic"
  bool align_corners = false;            ///< align the corners of x with those of the result; not with "nearest"
};
/// Calls `interpolate` for the spatial dimensions of x [N, C, spatial…]. Source: torch.nn.Upsample.
struct BURIN_API Upsample : Module {
  explicit Upsample(UpsampleOptions options, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  UpsampleOptions options;
};
/// [..., C·r², H, W] to [..., C, H·r, W·r]. Source: torch.nn.PixelShuffle.
struct BURIN_API PixelShuffle : Module {
  explicit PixelShuffle(int64_t upscale_factor, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  int64_t upscale_factor;
};
/// [..., C, H·r, W·r] to [..., C·r², H, W]. Source: torch.nn.PixelUnshuffle.
struct BURIN_API PixelUnshuffle : Module {
  explicit PixelUnshuffle(int64_t downscale_factor, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  int64_t downscale_factor;
};
/// Returns x. Source: torch.nn.Identity.
struct BURIN_API Identity : Module {
  explicit Identity(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};

} // namespace burin::nn

namespace burin {
/// Resizes the spatial dimensions of x [N, C, spatial…], whose sizes must be static, by the nearest element or by
/// interpolation ("linear", "bilinear" and "trilinear" for 1, 2 and 3 dimensions, "bicubic" for 2).
/// Source: torch.nn.functional.interpolate.
BURIN_API Tensor interpolate(const Tensor &x, const nn::UpsampleOptions &options, Location where = Location::current());
} // namespace burin
