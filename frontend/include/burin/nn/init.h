// Initial values of weights, by the formulas of the literature. They use the process's sequence of seeds (manual_seed).
#pragma once
#include "burin/nn/module.h"
#include <string>

namespace burin::detail {
/// Sets a parameter to a value, and returns that.
inline Tensor filled(Parameter &parameter, const Tensor &value, const Location &where) {
  parameter.set(value, where);
  return value;
}
} // namespace burin::detail

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

// ---- the same for a parameter, which gets the value, with PyTorch's names: torch.nn.init.xavier_uniform_ and so on

inline Tensor uniform_(Parameter parameter, double low = 0, double high = 1, Location where = Location::current()) {
  return burin::detail::filled(parameter, init::uniform(parameter.shape(), low, high, parameter.dtype(), where), where);
}
inline Tensor normal_(Parameter parameter, double mean = 0, double deviation = 1,
                      Location where = Location::current()) {
  return burin::detail::filled(parameter, init::normal(parameter.shape(), mean, deviation, parameter.dtype(), where),
                               where);
}
inline Tensor trunc_normal_(Parameter parameter, double mean = 0, double deviation = 1, double low = -2,
                            double high = 2, Location where = Location::current()) {
  return burin::detail::filled(
      parameter, trunc_normal(parameter.shape(), mean, deviation, low, high, parameter.dtype(), where), where);
}
inline Tensor constant_(Parameter parameter, double value, Location where = Location::current()) {
  return burin::detail::filled(parameter, constant(parameter.shape(), value, parameter.dtype(), where), where);
}
inline Tensor zeros_(Parameter parameter, Location where = Location::current()) {
  return constant_(std::move(parameter), 0, where);
}
inline Tensor ones_(Parameter parameter, Location where = Location::current()) {
  return constant_(std::move(parameter), 1, where);
}
inline Tensor kaiming_uniform_(Parameter parameter, double slope = 0, Fan fan = Fan::In,
                               Location where = Location::current()) {
  return burin::detail::filled(parameter, kaiming_uniform(parameter.shape(), slope, fan, parameter.dtype(), where),
                               where);
}
inline Tensor kaiming_normal_(Parameter parameter, double slope = 0, Fan fan = Fan::In,
                              Location where = Location::current()) {
  return burin::detail::filled(parameter, kaiming_normal(parameter.shape(), slope, fan, parameter.dtype(), where),
                               where);
}
inline Tensor xavier_uniform_(Parameter parameter, double gain = 1, Location where = Location::current()) {
  return burin::detail::filled(parameter, xavier_uniform(parameter.shape(), gain, parameter.dtype(), where), where);
}
inline Tensor xavier_normal_(Parameter parameter, double gain = 1, Location where = Location::current()) {
  return burin::detail::filled(parameter, xavier_normal(parameter.shape(), gain, parameter.dtype(), where), where);
}
inline Tensor orthogonal_(Parameter parameter, double gain = 1, Location where = Location::current()) {
  return burin::detail::filled(parameter, orthogonal(parameter.shape(), gain, parameter.dtype(), where), where);
}
inline Tensor eye_(Parameter parameter, Location where = Location::current()) {
  return burin::detail::filled(parameter, eye(parameter.shape(), parameter.dtype(), where), where);
}
inline Tensor dirac_(Parameter parameter, int64_t groups = 1, Location where = Location::current()) {
  return burin::detail::filled(parameter, dirac(parameter.shape(), groups, parameter.dtype(), where), where);
}

} // namespace burin::nn::init
