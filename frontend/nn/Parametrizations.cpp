#include "burin/nn/parametrizations.h"
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "burin/training/gradients.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/context/LocationScope.h"

namespace burin::nn::parametrize {

using detail::inScope;

namespace {
struct Holder : Module {
  Holder(const std::string &name, const Module &child, const Location &where) : Module("ModuleDict", where) {
    register_module(name, child, where);
  }
};

int64_t dimensionOf(const Tensor &weight, int64_t dim, const char *layer, const Location &where) {
  const int64_t rank = weight.rank(where);
  if (dim < -rank || dim >= rank)
    throw Error(inScope(where), layer,
                "there is no dimension " + std::to_string(dim) + " in the weight " + burin::str(weight.spec(where)));
  return dim < 0 ? dim + rank : dim;
}

/// The norms of the slices along `dim`; other sizes are 1.
Tensor lengths(const Tensor &x, int64_t dim) {
  std::vector<int64_t> others;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != dim)
      others.push_back(i);
  return sqrt(others.empty() ? x * x : reduce_sum(x * x, others, true));
}

Tensor unit(const Tensor &x, double eps) { return x / maximum(sqrt(reduce_sum(x * x)), eps); }
} // namespace

Module namedChild(const std::string &name, const Module &child, Location where) { return Holder(name, child, where); }

WeightNormalizer::WeightNormalizer(const Tensor &weight, int64_t given, Location where)
    : Module("ParametrizationList", where), dim(dimensionOf(weight, given, "WeightNorm", where)) {
  size = register_parameter("original0", detach(lengths(weight, dim)), where);
  direction = register_parameter("original1", detach(weight), where);
}
Tensor WeightNormalizer::weight() const { return direction * (size / lengths(direction, dim)); }

/// The weight as a matrix [n, rest], with dimension `dim` first.
Tensor SpectralNormalizer::matrix(const Tensor &weight) const {
  std::vector<int64_t> order{dim};
  for (int64_t i = 0; i < weight.rank(); ++i)
    if (i != dim)
      order.push_back(i);
  return reshape(transpose(weight, order), {weight.shape()[size_t(dim)], -1});
}

SpectralNormalizer::SpectralNormalizer(const Tensor &weight, int64_t iterations, double eps, int64_t given,
                                       Location where)
    : Module("ParametrizationList", where), iterations(iterations),
      dim(dimensionOf(weight, given, "SpectralNorm", where)), eps(eps) {
  if (weight.rank(where) < 2 || iterations < 1)
    throw Error(inScope(where), "SpectralNorm", "the weight must be a matrix or more, and the iterations positive");
  requireEpsilon(eps, "SpectralNorm", where);
  original = register_parameter("original", detach(weight), where);
  struct Vectors : Module {
    Parameter u, v;
    Vectors(int64_t rows, int64_t columns, const Location &where) : Module("_SpectralNorm", where) {
      u = register_buffer("_u", unit(randn({rows}, DType::f32, where), 1e-12), where);
      v = register_buffer("_v", unit(randn({columns}, DType::f32, where), 1e-12), where);
    }
  };
  const Shape shape = matrix(weight).shape();
  Vectors vectors = register_module("0", Vectors(shape[0].value(), shape[1].value(), where), where);
  u = vectors.u;
  v = vectors.v;
  iterate(matrix(weight), 15);
}

void SpectralNormalizer::iterate(const Tensor &weight, int64_t times) {
  Tensor constant = detach(weight), left = u, right = v;
  for (int64_t i = 0; i < times; ++i) {
    left = unit(matmul(constant, right), eps);
    right = unit(matmul(left, constant), eps);
  }
  u.set(detach(left));
  v.set(detach(right));
}

Tensor SpectralNormalizer::weight() {
  Tensor all = matrix(original);
  if (is_training())
    iterate(all, iterations);
  Tensor largest = reduce_sum(u * matmul(all, detach(v)));
  return original / largest;
}

} // namespace burin::nn::parametrize
