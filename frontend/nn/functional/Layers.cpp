// Layers as functions.
#include "burin/functional.h"
#include "burin/tensor/creation.h"
#include "burin/training/gradients.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/composed/Composed.h"
#include <cmath>

namespace burin {

using namespace detail;

static int64_t firstNormalized(const Tensor &x, std::initializer_list<int64_t> normalized, const char *op,
                               const Location &where) {
  const Shape &shape = x.shape(where);
  const Shape sizes(normalized.begin(), normalized.end());
  bool fits = !sizes.empty() && sizes.size() <= shape.size();
  for (size_t i = 0; fits && i < sizes.size(); ++i)
    fits = mayEqual(shape[shape.size() - sizes.size() + i], sizes[i]);
  if (!fits)
    throw Error(inScope(where), op,
                "the last dimensions of " + str(x.spec(where)) + " do not have the normalized shape " + str(sizes));
  return -int64_t(sizes.size());
}

Tensor layer_norm(const Tensor &x, std::initializer_list<int64_t> normalized, const std::optional<Tensor> &weight,
                  const std::optional<Tensor> &bias, double eps, Location where) {
  return layer_norm(x, weight, bias, firstNormalized(x, normalized, "layer_norm", where), eps, where);
}
Tensor rms_norm(const Tensor &x, std::initializer_list<int64_t> normalized, const std::optional<Tensor> &weight,
                double eps, Location where) {
  return rms_norm(x, weight, firstNormalized(x, normalized, "rms_norm", where), eps, where);
}

Tensor dropout2d(const Tensor &x, double p, bool training, Location where) {
  nn::requireProbability(p, "dropout2d", where);
  Shape shape = x.shape(where);
  if (shape.size() < 2)
    throw Error(inScope(where), "dropout2d", "x is " + str(x.spec(where)) + ", but must be [N, C, …]");
  std::fill(shape.begin() + 2, shape.end(), Dim(1));
  return training && p > 0 ? nn::dropped(x, p, shape, where) : detail::dropout(x, p, where);
}

Tensor channel_shuffle(const Tensor &x, int64_t groups, Location where) {
  LocationScope scope(inScope(where));
  const Shape &shape = x.shape();
  if (shape.size() < 2 || groups < 1 || (shape[1].isStatic() && shape[1].value() % groups))
    throw Error(inScope(where), "channel_shuffle",
                std::to_string(groups) + " groups do not divide the channels of " + str(x.spec()));
  Shape apart = shape;
  apart[1] = floordiv(shape[1], groups);
  apart.insert(apart.begin() + 1, Dim(groups));
  return reshape(swapaxes(reshape(x, apart), 1, 2), shape);
}

/// alpha_dropout with one random choice per element of `shape`, which broadcasts to that of x.
static Tensor alphaDropped(const Tensor &x, double p, const Shape &shape) {
  if (p == 1)
    return x * 0.0;
  // What selu() approaches at -infinity, and the scale and the shift that restore variance 1 and mean 0.
  constexpr double lowest = -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717;
  const double scale = 1 / std::sqrt((lowest * lowest * p + 1) * (1 - p)), shift = -scale * lowest * p;
  const Tensor keep = rand(shape, DType::f32) >= p;
  return burin::where(keep, x * scale, lowest * scale) + shift;
}
Tensor alpha_dropout(const Tensor &x, double p, bool training, Location where) {
  LocationScope scope(inScope(where));
  nn::requireProbability(p, "alpha_dropout", where);
  Beside beside(x, where);
  return training && p > 0 ? alphaDropped(x, p, x.shape()) : detail::dropout(x, p, where);
}
Tensor feature_alpha_dropout(const Tensor &x, double p, bool training, Location where) {
  LocationScope scope(inScope(where));
  nn::requireProbability(p, "feature_alpha_dropout", where);
  Shape shape = x.shape();
  if (shape.size() < 2)
    throw Error(inScope(where), "feature_alpha_dropout", "x is " + str(x.spec()) + ", but must be [N, C, …]");
  std::fill(shape.begin() + 2, shape.end(), Dim(1));
  Beside beside(x, where);
  return training && p > 0 ? alphaDropped(x, p, shape) : detail::dropout(x, p, where);
}

Tensor gumbel_softmax(const Tensor &logits, double tau, bool hard, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  if (!isFloat(logits.dtype()) || !(tau > 0))
    throw Error(inScope(where), "gumbel_softmax",
                "it takes floats and a positive temperature, not " + str(logits.spec()) + " and " +
                    std::to_string(tau));
  axis = axisOf(logits, axis, "gumbel_softmax");
  Beside beside(logits, where);
  const DType dtype = logits.dtype() == DType::f64 ? DType::f64 : DType::f32;
  // An exponential number is 0 with a small probability; its logarithm would be infinite.
  const Tensor noise = -log(maximum(default_generator().exponential(logits.shape(), 1, dtype), 1e-37));
  Tensor soft = softmax((logits.to(dtype) + noise) / tau, axis).to(logits.dtype());
  if (!hard)
    return soft;
  const Tensor isLargest = iota(soft.shape(), DType::i64, axis) == argmax(soft, axis, true);
  return isLargest.to(soft.dtype()) - detach(soft) + soft;
}

Tensor rrelu(const Tensor &x, double lower, double upper, bool training, Location where) {
  LocationScope scope(inScope(where));
  if (!(lower <= upper))
    throw Error(inScope(where), "rrelu",
                "lower " + std::to_string(lower) + " must not be above upper " + std::to_string(upper));
  if (!training)
    return leaky_relu(x, (lower + upper) / 2);
  Beside beside(x, where);
  return burin::where(x >= 0, x, x * uniform(x.shape(), lower, upper, x.dtype()));
}

Tensor local_response_norm(const Tensor &x, int64_t size, double alpha, double beta, double k, Location where) {
  LocationScope scope(inScope(where));
  if (x.rank() < 3 || size < 1)
    throw Error(inScope(where), "local_response_norm",
                "x is " + str(x.spec()) + " and the size " + std::to_string(size) +
                    ", but they must be [N, C, …] of 3 dimensions or more, and positive");
  IntList low = std::vector<int64_t>(size_t(x.rank()), 0), high = low;
  low[1] = size / 2, high[1] = (size - 1) / 2;
  const Tensor squares = burin::pad(x * x, low, high);
  Tensor sum = narrow(squares, 1, 0, x.shape()[1]);
  for (int64_t i = 1; i < size; ++i)
    sum = sum + narrow(squares, 1, i, x.shape()[1]);
  return x / pow(sum * (alpha / double(size)) + k, beta);
}

} // namespace burin
