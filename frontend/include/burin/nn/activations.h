// More activations, pads and pools, and functions as layers. Names, parameters and defaults are PyTorch's.
#pragma once
#include "burin/functional.h"
#include "burin/nn/layers.h"

namespace burin::nn {

// ---- activations

/// min(max(x, 0), 6). Source: torch.nn.ReLU6.
struct BURIN_API ReLU6 : Module {
  explicit ReLU6(Location where = Location::current());
  explicit ReLU6(bool, Location where = Location::current()) : ReLU6(where) {}
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
/// ELU, scaled so that activations keep zero mean and unit variance. Source: Klambauer et al. 2017, torch.nn.SELU.
struct BURIN_API SELU : Module {
  explicit SELU(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
/// max(x, 0) + min(0, alpha · (exp(x / alpha) - 1)). Source: Barron 2017, torch.nn.CELU.
struct BURIN_API CELU : Module {
  explicit CELU(double alpha = 1, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double alpha;
};
/// min(max(x, min_val), max_val). Source: torch.nn.Hardtanh.
struct BURIN_API Hardtanh : Module {
  explicit Hardtanh(double min_val = -1, double max_val = 1, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double min_val, max_val;
};
/// log(sigmoid(x)), without overflow. Source: torch.nn.LogSigmoid.
struct BURIN_API LogSigmoid : Module {
  explicit LogSigmoid(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
/// x / (1 + |x|). Source: torch.nn.Softsign.
struct BURIN_API Softsign : Module {
  explicit Softsign(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
/// x - tanh(x). Source: torch.nn.Tanhshrink.
struct BURIN_API Tanhshrink : Module {
  explicit Tanhshrink(Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
};
/// x moved by lambd towards 0, and 0 for |x| <= lambd. Source: torch.nn.Softshrink.
struct BURIN_API Softshrink : Module {
  explicit Softshrink(double lambd = 0.5, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double lambd;
};
/// x for |x| > lambd, else 0. Source: torch.nn.Hardshrink.
struct BURIN_API Hardshrink : Module {
  explicit Hardshrink(double lambd = 0.5, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double lambd;
};
/// x for x > threshold, else `value`. Source: torch.nn.Threshold.
struct BURIN_API Threshold : Module {
  Threshold(double threshold, double value, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double threshold, value;
};
/// The first half along `axis` times the sigmoid of the second. Source: Dauphin et al. 2017, torch.nn.GLU.
struct BURIN_API GLU : Module {
  explicit GLU(int64_t axis = -1, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  int64_t axis;
};
/// softmax(-x) along `axis`. Source: torch.nn.Softmin.
struct BURIN_API Softmin : Module {
  explicit Softmin(int64_t axis = -1, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  int64_t axis;
};

// ---- shapes

/// Splits dimension `axis` into several; one size may be -1. Source: torch.nn.Unflatten.
struct BURIN_API Unflatten : Module {
  Unflatten(int64_t axis, Shape sizes, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  int64_t axis;
  Shape sizes;
};

/// Base of the pads of the spatial dimensions of x [N, C, spatial…]. `padding` has pairs from the last dimension
/// backwards, {left, right, top, bottom}, or one number for all; negative numbers crop where values are constant.
/// Source: torch.nn.ConstantPad1d, ReflectionPad1d, ReplicationPad1d and their kind.
struct BURIN_API PadNd : Module {
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  IntList padding;
  std::string mode;
  double value;

protected:
  PadNd(const char *kind, size_t dimensions, IntList padding, std::string mode, double value, const Location &where);
};
/// Declares the pads of 1, 2 and 3 dimensions.
#define BURIN_PADS(dimensions)                                                                                         \
  /** Pads with `value`. */                                                                                            \
  struct BURIN_API ConstantPad##dimensions##d : PadNd {                                                                \
    ConstantPad##dimensions##d(IntList padding, double value, Location where = Location::current())                    \
        : PadNd("ConstantPad" #dimensions "d", dimensions, std::move(padding), "constant", value, where) {}            \
  };                                                                                                                   \
  /** Pads with zeros. */                                                                                              \
  struct BURIN_API ZeroPad##dimensions##d : PadNd {                                                                    \
    explicit ZeroPad##dimensions##d(IntList padding, Location where = Location::current())                             \
        : PadNd("ZeroPad" #dimensions "d", dimensions, std::move(padding), "constant", 0, where) {}                    \
  };                                                                                                                   \
  /** Mirrors x at its first and last elements, which are not repeated. */                                             \
  struct BURIN_API ReflectionPad##dimensions##d : PadNd {                                                              \
    explicit ReflectionPad##dimensions##d(IntList padding, Location where = Location::current())                       \
        : PadNd("ReflectionPad" #dimensions "d", dimensions, std::move(padding), "reflect", 0, where) {}               \
  };                                                                                                                   \
  /** Continues at the other end of x. */                                                                              \
  struct BURIN_API CircularPad##dimensions##d : PadNd {                                                                \
    explicit CircularPad##dimensions##d(IntList padding, Location where = Location::current())                         \
        : PadNd("CircularPad" #dimensions "d", dimensions, std::move(padding), "circular", 0, where) {}                \
  };                                                                                                                   \
  /** Repeats the first and last elements of x. */                                                                     \
  struct BURIN_API ReplicationPad##dimensions##d : PadNd {                                                             \
    explicit ReplicationPad##dimensions##d(IntList padding, Location where = Location::current())                      \
        : PadNd("ReplicationPad" #dimensions "d", dimensions, std::move(padding), "replicate", 0, where) {}            \
  };
BURIN_PADS(1)
BURIN_PADS(2)
BURIN_PADS(3)
#undef BURIN_PADS

/// Maxima of windows of x [N, C, spatial…], placed so that the result has the spatial sizes `output`; those of x may be
/// symbolic. Equal maxima share the gradient.
/// Source: torch.nn.AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d.
struct BURIN_API AdaptiveMaxPoolNd : Module {
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  IntList output;

protected:
  AdaptiveMaxPoolNd(const char *kind, size_t dimensions, IntList output, const Location &where);
};
/// x [N, C, length].
struct BURIN_API AdaptiveMaxPool1d : AdaptiveMaxPoolNd {
  explicit AdaptiveMaxPool1d(IntList output, Location where = Location::current())
      : AdaptiveMaxPoolNd("AdaptiveMaxPool1d", 1, std::move(output), where) {}
};
/// x [N, C, height, width].
struct BURIN_API AdaptiveMaxPool2d : AdaptiveMaxPoolNd {
  explicit AdaptiveMaxPool2d(IntList output, Location where = Location::current())
      : AdaptiveMaxPoolNd("AdaptiveMaxPool2d", 2, std::move(output), where) {}
};
/// x [N, C, depth, height, width].
struct BURIN_API AdaptiveMaxPool3d : AdaptiveMaxPoolNd {
  explicit AdaptiveMaxPool3d(IntList output, Location where = Location::current())
      : AdaptiveMaxPoolNd("AdaptiveMaxPool3d", 3, std::move(output), where) {}
};

/// Puts elements back at the positions that MaxPool2d::forward_with_indices returned for them, with zeros elsewhere:
/// the inverse of a max pool. `output_size` is the shape, or the spatial sizes, of the pool's operand, which several
/// sizes may give. Source: torch.nn.MaxUnpool1d, MaxUnpool2d, MaxUnpool3d.
struct BURIN_API MaxUnpoolNd : Module {
  Tensor operator()(const Tensor &x, const Tensor &indices, const Shape &output_size = {},
                    Location where = Location::current()) const;
  IntList kernel, stride, padding;

protected:
  MaxUnpoolNd(const char *kind, size_t dimensions, IntList kernel, IntList stride, IntList padding,
              const Location &where);
};
/// The p-th root of the sum of each window's elements to the power p. Source: torch.nn.LPPool1d, LPPool2d, LPPool3d.
struct BURIN_API LPPoolNd : Module {
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double p;
  IntList kernel, stride;
  bool ceil_mode;

protected:
  LPPoolNd(const char *kind, size_t dimensions, double p, IntList kernel, IntList stride, bool ceil_mode,
           const Location &where);
};
/// Declares the pools of 1, 2 and 3 dimensions.
#define BURIN_POOLS(dimensions)                                                                                        \
  /** Without a stride, that is the kernel. */                                                                         \
  struct BURIN_API MaxUnpool##dimensions##d : MaxUnpoolNd {                                                            \
    explicit MaxUnpool##dimensions##d(IntList kernel, IntList stride = {}, IntList padding = 0,                        \
                                      Location where = Location::current())                                            \
        : MaxUnpoolNd("MaxUnpool" #dimensions "d", dimensions, std::move(kernel), std::move(stride),                   \
                      std::move(padding), where) {}                                                                    \
  };                                                                                                                   \
  /** Without a stride, that is the kernel. */                                                                         \
  struct BURIN_API LPPool##dimensions##d : LPPoolNd {                                                                  \
    LPPool##dimensions##d(double p, IntList kernel, IntList stride = {}, bool ceil_mode = false,                       \
                          Location where = Location::current())                                                        \
        : LPPoolNd("LPPool" #dimensions "d", dimensions, p, std::move(kernel), std::move(stride), ceil_mode, where) {} \
  };
BURIN_POOLS(1)
BURIN_POOLS(2)
BURIN_POOLS(3)
#undef BURIN_POOLS

// ---- functions of burin/functional.h as layers, with the names and defaults of their options

/// local_response_norm(). Source: Krizhevsky et al. 2012, torch.nn.LocalResponseNorm.
struct BURIN_API LocalResponseNorm : Module {
  explicit LocalResponseNorm(int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1,
                             Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  int64_t size;
  double alpha, beta, k;
};
/// alpha_dropout() in training. Source: Klambauer et al. 2017, torch.nn.AlphaDropout.
struct BURIN_API AlphaDropout : Module {
  explicit AlphaDropout(double p = 0.5, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double p;
};
/// rrelu(), with random slopes in training. Source: Xu et al. 2015, torch.nn.RReLU.
struct BURIN_API RReLU : Module {
  explicit RReLU(double lower = 1.0 / 8, double upper = 1.0 / 3, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  double lower, upper;
};
/// channel_shuffle(). Source: Zhang et al. 2017, torch.nn.ChannelShuffle.
struct BURIN_API ChannelShuffle : Module {
  explicit ChannelShuffle(int64_t groups, Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  int64_t groups;
};
/// unfold(). Source: torch.nn.Unfold.
struct BURIN_API Unfold : Module {
  explicit Unfold(IntList kernel, IntList dilation = 1, IntList padding = 0, IntList stride = 1,
                  Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  IntList kernel, dilation, padding, stride;
};
/// fold(). Source: torch.nn.Fold.
struct BURIN_API Fold : Module {
  Fold(Shape output_size, IntList kernel, IntList dilation = 1, IntList padding = 0, IntList stride = 1,
       Location where = Location::current());
  Tensor operator()(const Tensor &x, Location where = Location::current()) const;
  Shape output_size;
  IntList kernel, dilation, padding, stride;
};
/// cosine_similarity(). Source: torch.nn.CosineSimilarity.
struct BURIN_API CosineSimilarity : Module {
  explicit CosineSimilarity(int64_t axis = 1, double eps = 1e-8, Location where = Location::current());
  Tensor operator()(const Tensor &x, const Tensor &y, Location where = Location::current()) const;
  int64_t axis;
  double eps;
};
/// pairwise_distance(). Source: torch.nn.PairwiseDistance.
struct BURIN_API PairwiseDistance : Module {
  explicit PairwiseDistance(double p = 2, double eps = 1e-6, bool keepdims = false,
                            Location where = Location::current());
  Tensor operator()(const Tensor &x, const Tensor &y, Location where = Location::current()) const;
  double p, eps;
  bool keepdims;
};

} // namespace burin::nn
