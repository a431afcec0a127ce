// Helpers of the layers.
#pragma once
#include "burin/nn/layers.h"
#include "burin/ops.h"
#include <string>

namespace burin::nn {

/// The tensor of an optional parameter.
inline std::optional<Tensor> optionally(const Parameter &parameter) {
  return parameter.defined() ? std::optional(parameter.value()) : std::nullopt;
}

/// Text of numbers for str(): "3, [1, 2]".
inline std::string text(int64_t n) { return std::to_string(n); }
inline std::string text(const IntList &list) {
  std::string s;
  for (int64_t n : list)
    s += (s.empty() ? "" : ", ") + std::to_string(n);
  return list.size() == 1 ? s : "[" + s + "]";
}
template <class... T> std::string listed(const T &...values) {
  std::string s;
  ((s += (s.empty() ? "" : ", ") + text(values)), ...);
  return s;
}

/// PyTorch's initial values for products: weight and bias are uniform within 1 / sqrt(fan_in).
Tensor weightFor(const Shape &shape, const Location &where);
Tensor biasFor(int64_t size, const Shape &weight, const Location &where);

/// Mean and biased variance of each channel of x [N, C, …].
std::pair<Tensor, Tensor> batchStatistics(const Tensor &x);
/// Number of values of each channel of x [N, C, …].
Dim valuesPerChannel(const Tensor &x);
/// Adds a part, a scalar, of statistics of `values` values to running ones: the variance, which is given with its bias,
/// without it.
void trackStatistics(Parameter &runningMean, Parameter &runningVariance, const Dim &values, const Tensor &mean,
                     const Tensor &variance, const Tensor &part);
/// Drops elements of x as in training; `shape` broadcasts to that of x and has one random choice per element.
Tensor dropped(const Tensor &x, double p, const Shape &shape, const Location &where);

// ---- checks of options, which throw an error of the layer

void require(bool isGood, const char *layer, const std::string &problem, const Location &where);
/// Throws unless p is a probability.
void requireProbability(double p, const char *layer, const Location &where);
/// Throws for NaN.
void requireNumber(double x, const char *what, const char *layer, const Location &where);
/// Throws for numbers that are negative or not finite: `eps` is added to a variance.
void requireEpsilon(double eps, const char *layer, const Location &where);
void requireSize(int64_t size, int64_t least, const char *what, const char *layer, const Location &where);
/// A list with one number per dimension, each at least `least`, from such a list or from one number for all.
IntList perDimension(IntList list, size_t dimensions, int64_t least, const char *layer, const char *what,
                     const Location &where);
/// Throws unless strides and dilations are positive and paddings not negative, one for all, one per dimension, or none;
/// paddings may also be two per dimension.
struct WindowLists {
  const IntList &stride, &padding, &dilation;
};
void requireWindow(const WindowLists &lists, size_t dimensions, const char *layer, const Location &where);

} // namespace burin::nn
