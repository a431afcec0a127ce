// Initial values of weights, by the formulas of the literature. Draw from the process's sequence of seeds
// (manual_seed).
#pragma once
#include "burin/tensor.h"

namespace burin::nn::init {

enum class Fan { In, Out };
/// Inputs and outputs per unit of a weight [out, in, kernel…].
BURIN_API std::pair<int64_t, int64_t> fans(const Shape &weight);

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
