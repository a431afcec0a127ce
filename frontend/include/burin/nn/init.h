// Initial values of weights, by the formulas of the literature. They use the process's sequence of seeds (manual_seed).
#pragma once
#include "burin/tensor.h"
#include <string>

namespace burin::nn::init {

enum class Fan { In, Out };
/// Fan-in and fan-out of a weight [out, in, kernel…].
BURIN_API std::pair<int64_t, int64_t> fans(const Shape &weight);

/// The gain that keeps the variance of activations after `nonlinearity`: "linear", "conv1d" … "conv_transpose3d",
/// "sigmoid", "tanh", "relu", "leaky_relu" (`param`: its slope, by default 0.01) or "selu".
/// Source: torch.nn.init.calculate_gain.
BURIN_API double calculate_gain(const std::string &nonlinearity, std::optional<double> param = std::nullopt,
                                Location where = Location::current());

BURIN_API Tensor uniform(const Shape &shape, double low = 0, double high = 1, DType dtype = f32,
                         Location where = Location::current());
BURIN_API Tensor constant(const Shape &shape, double value, DType dtype = f32, Location where = Location::current());
/// The identity as weight of a Linear: 1 on the diagonal of a matrix.
BURIN_API Tensor eye(const Shape &shape, DType dtype = f32, Location where = Location::current());
/// The identity as weight of a convolution: as many channels of each group as possible pass unchanged.
/// Source: torch.nn.init.dirac_.
BURIN_API Tensor dirac(const Shape &shape, int64_t groups = 1, DType dtype = f32, Location where = Location::current());
/// Normal, with the fraction `sparsity` of each column, rounded up, set to 0. Source: Martens 2010,
/// torch.nn.init.sparse_.
BURIN_API Tensor sparse(const Shape &shape, double sparsity, double deviation = 0.01, DType dtype = f32,
                        Location where = Location::current());

/// He et al. 2015, for rectifiers with this negative slope.
BURIN_API Tensor kaiming_uniform(const Shape &shape, double slope = 0, Fan fan = Fan::In, DType dtype = f32,
                                 Location where = Location::current());
BURIN_API Tensor kaiming_normal(const Shape &shape, double slope = 0, Fan fan = Fan::In, DType dtype = f32,
                                Location where = Location::current());
/// Glorot and Bengio 2010.
BURIN_API Tensor xavier_uniform(const Shape &shape, double gain = 1, DType dtype = f32,
                                Location where = Location::current());
BURIN_API Tensor xavier_normal(const Shape &shape, double gain = 1, DType dtype = f32,
                               Location where = Location::current());
BURIN_API Tensor normal(const Shape &shape, double mean = 0, double deviation = 1, DType dtype = f32,
                        Location where = Location::current());
/// Normal, truncated to [low, high] by drawing from that part of the distribution only.
BURIN_API Tensor trunc_normal(const Shape &shape, double mean = 0, double deviation = 1, double low = -2,
                              double high = 2, DType dtype = f32, Location where = Location::current());
/// Saxe et al. 2013: orthonormal rows or columns of the matrix [first, rest].
BURIN_API Tensor orthogonal(const Shape &shape, double gain = 1, DType dtype = f32,
                            Location where = Location::current());

} // namespace burin::nn::init
