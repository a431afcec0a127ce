// Layers whose weight is computed from other parameters. Names in state_dict are PyTorch's.
#pragma once
#include "burin/nn/layers.h"

namespace burin::nn {

namespace parametrize {
/// Computes the weight of a layer from other parameters.
class BURIN_API WeightNormalizer : public Module {
public:
  WeightNormalizer(const Tensor &weight, int64_t dim, Location where);
  Tensor weight() const;

private:
  Parameter size, direction;
  int64_t dim;
};
/// A weight divided by its largest singular value, estimated by power iteration. See spectral_norm.
class BURIN_API SpectralNormalizer : public Module {
public:
  SpectralNormalizer(const Tensor &weight, int64_t iterations, double eps, int64_t dim, Location where);
  /// In training mode, improves the vectors first.
  Tensor weight();

private:
  void iterate(const Tensor &matrix, int64_t iterations);
  Tensor matrix(const Tensor &weight) const;
  Parameter original, u, v;
  int64_t iterations, dim;
  double eps;
};
/// A module with a single child of this name.
BURIN_API Module namedChild(const std::string &name, const Module &child, Location where);
} // namespace parametrize

/// A layer (Linear, a convolution) whose weight has separate directions and magnitudes: weight = original0 · original1
/// / |original1|, with one magnitude per index of dimension `dim`.
/// Source: Salimans and Kingma 2016, torch.nn.utils.parametrizations.weight_norm.
template <class Layer> struct WeightNorm : Module {
  explicit WeightNorm(Layer given, int64_t dim = 0, Location where = Location::current())
      : Module(given.kind(), where), layer(std::move(given)), normalizer(layer.weight, dim, where) {
    if (layer.bias.defined())
      layer.bias = register_parameter("bias", layer.bias.value(), where);
    register_module("parametrizations", parametrize::namedChild("weight", normalizer, where), where);
  }
  Tensor operator()(const Tensor &x, Location where = Location::current()) const {
    return layer.forward(x, normalizer.weight(), where);
  }
  Layer layer;

private:
  parametrize::WeightNormalizer normalizer;
};

/// A layer whose weight is divided by its largest singular value, estimated by `n_power_iterations` steps of the power
/// method in each call in training mode. Source: Miyato et al. 2018, torch.nn.utils.parametrizations.spectral_norm.
template <class Layer> struct SpectralNorm : Module {
  explicit SpectralNorm(Layer given, int64_t n_power_iterations = 1, double eps = 1e-12, int64_t dim = 0,
                        Location where = Location::current())
      : Module(given.kind(), where), layer(std::move(given)),
        normalizer(layer.weight, n_power_iterations, eps, dim, where) {
    if (layer.bias.defined())
      layer.bias = register_parameter("bias", layer.bias.value(), where);
    register_module("parametrizations", parametrize::namedChild("weight", normalizer, where), where);
  }
  Tensor operator()(const Tensor &x, Location where = Location::current()) {
    return layer.forward(x, normalizer.weight(), where);
  }
  Layer layer;

private:
  parametrize::SpectralNormalizer normalizer;
};

} // namespace burin::nn
