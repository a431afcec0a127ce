#include "burin/functional.h"
#include "burin/tensor/creation.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"

namespace burin {

std::pair<Tensor, Tensor> nn::batchStatistics(const Tensor &x) {
  IntList axes;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != 1)
      axes.push_back(i);
  return {reduce_mean(x, axes), reduce_var(x, axes, false, 0)};
}

Dim nn::valuesPerChannel(const Tensor &x) { return floordiv(elements(x.shape()), x.shape()[1]); }

void nn::trackStatistics(Parameter &runningMean, Parameter &runningVariance, const Dim &values, const Tensor &mean,
                         const Tensor &variance, const Tensor &part) {
  Tensor count = detail::sizeTensor(values).to(DType::f64);
  Tensor unbiased = variance * (count / (count - 1.0)).to(variance.dtype());
  runningMean.set(runningMean * (1.0 - part) + mean * part);
  runningVariance.set(runningVariance * (1.0 - part) + unbiased * part);
}

/// Normalises by these statistics.
static Tensor normalised(const Tensor &x, const Tensor &mean, const Tensor &variance, const Tensor &weight,
                         const Tensor &bias, double eps) {
  return batch_norm(x, mean, variance, weight.defined() ? weight : ones_like(mean),
                    bias.defined() ? bias : zeros_like(mean), eps);
}

static void requireChannels(const Tensor &x, bool training, const Location &where) {
  if (x.rank(where) < 2)
    throw Error(where, "batch_norm", "x is " + str(x.spec(where)) + ", but must be [N, C, …]");
  if (training && elements(x.shape()).isStatic() && x.numel() <= x.size(1))
    throw Error(where, "batch_norm",
                "x " + str(x.spec()) +
                    " has one value per channel, of which there is no variance; train with larger "
                    "batches");
}

Tensor detail::batchNorm(const Tensor &x, const Tensor &mean, const Tensor &variance, const Tensor &weight,
                         const Tensor &bias, bool training, double eps, const Location &where) {
  LocationScope scope(inScope(where));
  const Location place = inScope(where);
  requireChannels(x, training, place);
  if (training && (mean.defined() || variance.defined()))
    throw Error(place, "batch_norm",
                "in training the running statistics change, so they must be Parameters (buffers), not tensors\n  pass "
                "{} for both to go without them, or training = false to normalise by them");
  if (!training && !(mean.defined() && variance.defined()))
    throw Error(place, "batch_norm", "without training it normalises by running statistics, which are not given");
  if (!training)
    return normalised(x, mean, variance, weight, bias, eps);
  const auto [ofBatch, varianceOfBatch] = nn::batchStatistics(x);
  return normalised(x, ofBatch, varianceOfBatch, weight, bias, eps);
}

Tensor batch_norm(const Tensor &x, Parameter running_mean, Parameter running_var, const Tensor &weight,
                  const Tensor &bias, bool training, double momentum, double eps, Location where) {
  LocationScope scope(detail::inScope(where));
  if (!training)
    return detail::batchNorm(x, running_mean, running_var, weight, bias, false, eps, where);
  requireChannels(x, true, detail::inScope(where));
  const auto [mean, variance] = nn::batchStatistics(x);
  if (running_mean.defined() && running_var.defined())
    nn::trackStatistics(running_mean, running_var, nn::valuesPerChannel(x), mean, variance,
                        full({}, momentum, mean.dtype()));
  return normalised(x, mean, variance, weight, bias, eps);
}

} // namespace burin
