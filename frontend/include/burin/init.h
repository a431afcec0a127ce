// Initial values of weights, by the formulas of the literature. Draw from the process's sequence of seeds
// (manual_seed).
#pragma once
#include "burin/tensor.h"
#include <string>

namespace burin::nn::init {

enum class Fan { In, Out };
/// Inputs and outputs per unit of a weight [out, in, kernel…].
BURIN_API std::pair<int64_t, int64_t> fans(const Shape &weight);

/// The deviation that keeps the size of activations behind `nonlinearity`: "linear", "conv1d" … "conv_transpose3d",
/// "sigmoid", "tanh", "relu", "leaky_relu" (`param`: its slope, 0.01 unless given) or "selu".
/// Source: torch.nn.init.calculate_gain.
BURIN_API double calculate_gain(const std::string &nonlinearity, std::optional<double> param = std::nullopt,
                                Location where = Location::current());

BURIN_API Tensor uniform(const Shape &shape, double low = 0, double high = 1, DType dtype = f32,
                         Location where = Location::current());
BURIN_API Tensor constant(const Shape &shape, double value, DType dtype = f32, Location where = Location::current());
/// The identity of a Linear: 1 on the diagonal of a matrix.
BURIN_API Tensor eye(const Shape &shape, DType dtype = f32, Location where = Location::current());
/// The identity of a convolution: as many channels as possible of each group pass unchanged.
/// Source: torch.nn.init.dirac_.
BURIN_API Tensor dirac(const Shape &shape, int64_t groups = 1, DType dtype = f32, Location where = Location::current());
/// Normal, but for the part `sparsity` of each column, rounded up, which is 0. Source: Martens 2010,
/// torch.nn.init.sparse_.
BURIN_API Tensor sparse(const Shape &shape, double sparsity, double deviation = 0.01, DType dtype = f32,
                        Location where = Location::current());

/// He et al. 2015, for rectifiers with this slope below 0.
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
/// Normal, limited to [low, high] by drawing from that part of the distribution only.
BURIN_API Tensor trunc_normal(const Shape &shape, double mean = 0, double deviation = 1, double low = -2,
                              double high = 2, DType dtype = f32, Location where = Location::current());
/// Saxe et al. 2013: orthonormal rows or columns of the matrix [first, rest].
BURIN_API Tensor orthogonal(const Shape &shape, double gain = 1, DType dtype = f32,
                            Location where = Location::current());

} // namespace burin::nn::init
