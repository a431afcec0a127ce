#include "burin/tensor/creation.h"
#include "burin/training/transforms.h"
#include "frontend/tensor/context/LocationScope.h"
#include <cmath>

namespace burin::data {

using detail::inScope;

namespace {

/// From the gamma distribution of this shape and scale 1 (Marsaglia and Tsang 2000).
double gamma(double shape, Random &random) {
  if (shape < 1)
    return gamma(shape + 1, random) * std::pow(1 - random.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal(), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v))
      return d * v;
  }
}

double beta(double alpha, Random &random) {
  const double x = gamma(alpha, random), y = gamma(alpha, random);
  return x + y > 0 ? x / (x + y) : 0.5;
}

/// Mixes each row with the one before it.
Tensor mixed(const std::vector<float> &rows, TensorSpec spec, double lambda) {
  const size_t count = size_t(spec.shape[0].value()), width = count ? rows.size() / count : 0;
  std::vector<float> result(rows.size());
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0, before = (i + count - 1) % count; j < width; ++j)
      result[i * width + j] = float(lambda * rows[i * width + j] + (1 - lambda) * rows[before * width + j]);
  return from_bytes(result.data(), spec);
}

/// Classes as probabilities.
std::vector<float> probabilities(const Tensor &targets, int64_t count, int64_t classes) {
  const TensorSpec spec = targets.spec();
  if (spec == TensorSpec{DType::f32, {count, classes}}) {
    auto given = targets.data<float>();
    return {given.begin(), given.end()};
  }
  if (spec != TensorSpec{DType::i64, {count}})
    throw Error(inScope({}), "mixup",
                "the targets of a batch of " + std::to_string(count) + " are " + str(spec) +
                    ", but must be i64[N] or f32[N, " + std::to_string(classes) + "]");
  std::vector<float> result(size_t(count * classes));
  auto given = targets.data<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t target = given[size_t(i)];
    if (target < 0 || target >= classes)
      throw Error(inScope({}), "mixup",
                  "there is a class " + std::to_string(target) + " among " + std::to_string(classes));
    result[size_t(i * classes + target)] = 1;
  }
  return result;
}

} // namespace

Transform mixup(int64_t num_classes, double alpha, Location where) {
  if (num_classes < 1 || !(alpha > 0))
    throw Error(inScope(where), "mixup", "the number of classes and alpha must be positive");
  return [=](Example batch, Random &random) {
    if (batch.size() < 2 || batch[0].dtype() != DType::f32 || batch[0].rank() < 1)
      throw Error(inScope({}), "mixup",
                  "it takes batches of images f32[N, …] and targets" +
                      (batch.empty() ? "" : ", not of " + str(batch[0].spec())) + "; is it the batch_transform?");
    const double lambda = beta(alpha, random);
    const TensorSpec spec = batch[0].spec();
    const int64_t count = spec.shape[0].value();
    auto images = batch[0].data<float>();
    batch[1] = mixed(probabilities(batch[1], count, num_classes), {DType::f32, {count, num_classes}}, lambda);
    batch[0] = mixed({images.begin(), images.end()}, spec, lambda);
    return batch;
  };
}

} // namespace burin::data
