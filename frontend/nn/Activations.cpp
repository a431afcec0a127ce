#include "burin/creation.h"
#include "burin/layers.h"
#include "burin/ops.h"
#include "frontend/tensor/LocationScope.h"

namespace burin::nn {

// Ops called with the layer's place; `where` gives way to a scope inside of them.
#define BURIN_LAYER(Name, call)                                                                                        \
  Name::Name(Location where) : Module(#Name, where) {}                                                                 \
  Tensor Name::operator()(const Tensor &x, Location where) const { return call; }
BURIN_LAYER(ReLU, relu(x, where))
BURIN_LAYER(SiLU, silu(x, where))
BURIN_LAYER(Sigmoid, sigmoid(x, where))
BURIN_LAYER(Tanh, tanh(x, where))
BURIN_LAYER(Hardswish, hardswish(x, where))
BURIN_LAYER(Hardsigmoid, hardsigmoid(x, where))
BURIN_LAYER(Identity, x)
#undef BURIN_LAYER

LeakyReLU::LeakyReLU(double negative_slope, Location where)
    : Module("LeakyReLU", where), negative_slope(negative_slope) {}
Tensor LeakyReLU::operator()(const Tensor &x, Location where) const { return leaky_relu(x, negative_slope, where); }

ELU::ELU(double alpha, Location where) : Module("ELU", where), alpha(alpha) {}
Tensor ELU::operator()(const Tensor &x, Location where) const { return elu(x, alpha, where); }

GELU::GELU(std::string approximate, Location where) : Module("GELU", where), approximate(std::move(approximate)) {}
Tensor GELU::operator()(const Tensor &x, Location where) const { return gelu(x, approximate, where); }

Softplus::Softplus(double beta, double threshold, Location where)
    : Module("Softplus", where), beta(beta), threshold(threshold) {}
Tensor Softplus::operator()(const Tensor &x, Location where) const { return softplus(x, beta, threshold, where); }

Softmax::Softmax(int64_t axis, Location where) : Module("Softmax", where), axis(axis) {}
Tensor Softmax::operator()(const Tensor &x, Location where) const { return softmax(x, axis, where); }

LogSoftmax::LogSoftmax(int64_t axis, Location where) : Module("LogSoftmax", where), axis(axis) {}
Tensor LogSoftmax::operator()(const Tensor &x, Location where) const { return log_softmax(x, axis, where); }

Flatten::Flatten(int64_t start, int64_t end, Location where) : Module("Flatten", where), start(start), end(end) {}
Tensor Flatten::operator()(const Tensor &x, Location where) const { return x.flatten(start, end, where); }

Dropout::Dropout(double p, Location where) : Module("Dropout", where), p(p) {
  if (!(p >= 0 && p < 1))
    throw Error(detail::inScope(where), "Dropout", "the probability " + std::to_string(p) + " must lie in [0, 1)");
}
Tensor Dropout::operator()(const Tensor &x, Location where) const {
  if (!is_training() || p == 0)
    return dropout(x, p, where);
  if (x.isTraced())
    throw Error(
        detail::inScope(where), "Dropout",
        "in training mode each call drops other elements, but a traced graph would repeat its choice; call eval() "
        "first");
  Tensor keep = rand(x.shape(where), DType::f32, where);
  keep = ge(keep, p, where);
  return burin::where(keep, mul(x, 1 / (1 - p), where), 0.0, where);
}

} // namespace burin::nn
