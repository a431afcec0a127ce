#include "burin/nn/init.h"
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include <cmath>

namespace burin::nn::init {

std::pair<int64_t, int64_t> fans(const Shape &weight) {
  if (weight.size() < 2)
    return {1, 1};
  int64_t field = 1;
  for (size_t i = 2; i < weight.size(); ++i)
    field *= weight[i].value();
  return {weight[1].value() * field, weight[0].value() * field};
}

static void requireMatrix(const Shape &shape, const char *op, const Location &where) {
  detail::requireSizes(shape, op, detail::inScope(where));
  if (shape.size() < 2)
    throw Error(detail::inScope(where), op, "a weight has at least two dimensions, unlike " + str(shape));
}

static double kaimingDeviation(const Shape &shape, double slope, Fan fan) {
  auto [in, out] = fans(shape);
  int64_t count = fan == Fan::In ? in : out;
  return count > 0 ? std::sqrt(2 / (1 + slope * slope)) / std::sqrt(double(count)) : 0;
}
Tensor kaiming_uniform(const Shape &shape, double slope, Fan fan, DType dtype, Location where) {
  requireMatrix(shape, "kaiming_uniform", where);
  double bound = std::sqrt(3.0) * kaimingDeviation(shape, slope, fan);
  return burin::uniform(shape, -bound, bound, dtype, where);
}
Tensor kaiming_normal(const Shape &shape, double slope, Fan fan, DType dtype, Location where) {
  requireMatrix(shape, "kaiming_normal", where);
  return burin::normal(shape, 0, kaimingDeviation(shape, slope, fan), dtype, where);
}

static double xavierDeviation(const Shape &shape, double gain) {
  auto [in, out] = fans(shape);
  return in + out > 0 ? gain * std::sqrt(2.0 / double(in + out)) : 0;
}
Tensor xavier_uniform(const Shape &shape, double gain, DType dtype, Location where) {
  requireMatrix(shape, "xavier_uniform", where);
  double bound = std::sqrt(3.0) * xavierDeviation(shape, gain);
  return burin::uniform(shape, -bound, bound, dtype, where);
}
Tensor xavier_normal(const Shape &shape, double gain, DType dtype, Location where) {
  requireMatrix(shape, "xavier_normal", where);
  return burin::normal(shape, 0, xavierDeviation(shape, gain), dtype, where);
}

/// A tensor of `dtype` from f64 numbers.
static Tensor fromReals(std::vector<double> values, const Shape &shape, DType dtype, const Location &where) {
  std::vector<char> bytes(values.size() * byteWidth(dtype));
  detail::convertElements(values.data(), DType::f64, bytes.data(), dtype, values.size());
  return from_bytes(bytes.data(), {dtype, shape}, where);
}

Tensor normal(const Shape &shape, double mean, double deviation, DType dtype, Location where) {
  return burin::normal(shape, mean, deviation, dtype, where);
}

Tensor uniform(const Shape &shape, double low, double high, DType dtype, Location where) {
  return burin::uniform(shape, low, high, dtype, where);
}
Tensor constant(const Shape &shape, double value, DType dtype, Location where) {
  return full(shape, value, dtype, where);
}

double calculate_gain(const std::string &nonlinearity, std::optional<double> param, Location where) {
  static const std::pair<std::string_view, double> known[] = {
      {"linear", 1},           {"conv1d", 1},           {"conv2d", 1},           {"conv3d", 1},
      {"conv_transpose1d", 1}, {"conv_transpose2d", 1}, {"conv_transpose3d", 1}, {"sigmoid", 1},
      {"tanh", 5.0 / 3},       {"relu", M_SQRT2},       {"selu", 0.75}};
  if (nonlinearity == "leaky_relu") {
    const double slope = param.value_or(0.01);
    return std::sqrt(2 / (1 + slope * slope));
  }
  for (const auto &[name, gain] : known)
    if (name == nonlinearity)
      return gain;
  throw Error(detail::inScope(where), "calculate_gain", "there is no gain for \"" + nonlinearity + "\"");
}

Tensor eye(const Shape &shape, DType dtype, Location where) {
  requireMatrix(shape, "eye", where);
  if (shape.size() != 2)
    throw Error(detail::inScope(where), "eye", "the weight " + str(shape) + " is no matrix; see dirac");
  return burin::eye(shape[0].value(), shape[1].value(), dtype, where);
}

Tensor dirac(const Shape &shape, int64_t groups, DType dtype, Location where) {
  requireMatrix(shape, "dirac", where);
  const int64_t out = shape[0].value(), in = shape[1].value();
  if (shape.size() < 3 || shape.size() > 5 || groups < 1 || out % groups)
    throw Error(detail::inScope(where), "dirac",
                "the weight " + str(shape) + " must have 3 to 5 dimensions, and the groups divide its first");
  int64_t field = 1, middle = 0; // size of the kernel, and index of its center
  for (size_t i = 2; i < shape.size(); ++i) {
    field *= shape[i].value();
    middle = middle * shape[i].value() + shape[i].value() / 2;
  }
  std::vector<double> values(size_t(detail::elementCount(shape)));
  for (int64_t o = 0; o < out; ++o)
    if (const int64_t channel = o % (out / groups); channel < in && field)
      values[size_t((o * in + channel) * field + middle)] = 1;
  return fromReals(std::move(values), shape, dtype, where);
}

Tensor sparse(const Shape &shape, double sparsity, double deviation, DType dtype, Location where) {
  requireMatrix(shape, "sparse", where);
  if (shape.size() != 2 || !(sparsity >= 0 && sparsity <= 1))
    throw Error(detail::inScope(where), "sparse", "it takes a matrix and a part in [0, 1]");
  const int64_t rows = shape[0].value(), columns = shape[1].value();
  const int64_t zeros = int64_t(std::ceil(sparsity * double(rows)));
  std::vector<double> values = burin::normal(shape, 0, deviation, DType::f64, where).to_vector<double>(where);
  for (int64_t column = 0; column < columns; ++column) {
    std::vector<int64_t> order = randperm(rows, where).to_vector<int64_t>(where);
    for (int64_t i = 0; i < zeros; ++i)
      values[size_t(order[size_t(i)] * columns + column)] = 0;
  }
  return fromReals(std::move(values), shape, dtype, where);
}

Tensor trunc_normal(const Shape &shape, double mean, double deviation, double low, double high, DType dtype,
                    Location where) {
  return default_generator().truncated_normal(shape, mean, deviation, low, high, dtype, where);
}

Tensor orthogonal(const Shape &shape, double gain, DType dtype, Location where) {
  requireMatrix(shape, "orthogonal", where);
  int64_t rows = shape[0].value(), columns = detail::elementCount(shape) / std::max<int64_t>(rows, 1);
  // Orthonormalises the shorter dimension, by Gram-Schmidt done twice.
  bool areRows = rows <= columns;
  int64_t count = areRows ? rows : columns, length = areRows ? columns : rows;
  std::vector<double> vectors = randn({count, length}, DType::f64, where).to_vector<double>(where);
  auto dot = [&](int64_t a, int64_t b) {
    double sum = 0;
    for (int64_t i = 0; i < length; ++i)
      sum += vectors[a * length + i] * vectors[b * length + i];
    return sum;
  };
  for (int64_t v = 0; v < count; ++v) {
    for (int64_t u = 0; u < 2 * v; ++u) {
      double projection = dot(v, u % v);
      for (int64_t i = 0; i < length; ++i)
        vectors[v * length + i] -= projection * vectors[(u % v) * length + i];
    }
    double scale = 1 / std::sqrt(dot(v, v));
    for (int64_t i = 0; i < length; ++i)
      vectors[v * length + i] *= scale;
  }
  std::vector<double> values(vectors.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      values[r * columns + c] = gain * (areRows ? vectors[r * length + c] : vectors[c * length + r]);
  return fromReals(std::move(values), shape, dtype, where);
}

} // namespace burin::nn::init
