// Layers as functions.
#include "burin/functional.h"
#include "burin/tensor/creation.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/composed/Composed.h"

namespace burin {

using namespace detail;

static int64_t firstNormalized(const Tensor &x, std::initializer_list<int64_t> normalized, const char *op,
                               const Location &where) {
  const Shape shape = x.shape(where), sizes(normalized.begin(), normalized.end());
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
  const Shape shape = x.shape();
  if (shape.size() < 2 || groups < 1 || (shape[1].isStatic() && shape[1].value() % groups))
    throw Error(inScope(where), "channel_shuffle",
                std::to_string(groups) + " groups do not divide the channels of " + str(x.spec()));
  Shape apart = shape;
  apart[1] = floordiv(shape[1], groups);
  apart.insert(apart.begin() + 1, Dim(groups));
  return reshape(swapaxes(reshape(x, apart), 1, 2), shape);
}

} // namespace burin
