#include "burin/nn/activations.h"
#include "burin/functional.h"
#include "burin/tensor/composed.h"
#include "burin/tensor/creation.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/composed/Composed.h"
#include "frontend/tensor/context/AutocastScope.h"
#include "frontend/tensor/context/LocationScope.h"
#include <cmath>

namespace burin::nn {

Identity::Identity(Location where) : Module("Identity", where) {}
Tensor Identity::operator()(const Tensor &x, Location) const {
  ModuleScope inModule(*this);
  return x;
}

// Calls ops with the layer's location; scopes inside of them override `where`.
#define BURIN_LAYER(Name, call)                                                                                        \
  Name::Name(Location where) : Module(#Name, where) {}                                                                 \
  Tensor Name::operator()(const Tensor &x, Location where) const {                                                     \
    ModuleScope inModule(*this);                                                                                       \
    return call;                                                                                                       \
  }
BURIN_LAYER(ReLU, relu(x, where))
BURIN_LAYER(SiLU, silu(x, where))
BURIN_LAYER(Sigmoid, sigmoid(x, where))
BURIN_LAYER(Tanh, tanh(x, where))
BURIN_LAYER(Hardswish, hardswish(x, where))
BURIN_LAYER(Hardsigmoid, hardsigmoid(x, where))
BURIN_LAYER(ReLU6, relu6(x, where))
BURIN_LAYER(SELU, selu(x, where))
BURIN_LAYER(LogSigmoid, logsigmoid(x, where))
BURIN_LAYER(Softsign, softsign(x, where))
BURIN_LAYER(Tanhshrink, sub(x, tanh(x, where), where))
#undef BURIN_LAYER

LeakyReLU::LeakyReLU(double negative_slope, Location where)
    : Module("LeakyReLU", where), negative_slope(negative_slope) {
  requireNumber(negative_slope, "negative_slope", "LeakyReLU", where);
}
Tensor LeakyReLU::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return leaky_relu(x, negative_slope, where);
}

ELU::ELU(double alpha, Location where) : Module("ELU", where), alpha(alpha) {
  requireNumber(alpha, "alpha", "ELU", where);
}
Tensor ELU::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return elu(x, alpha, where);
}

GELU::GELU(std::string given, Location where) : Module("GELU", where), approximate(std::move(given)) {
  require(approximate == "none" || approximate == "tanh", "GELU",
          "approximate is \"" + approximate + "\", but must be \"none\" or \"tanh\"", where);
}
Tensor GELU::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return gelu(x, approximate, where);
}

Softplus::Softplus(double beta, double threshold, Location where)
    : Module("Softplus", where), beta(beta), threshold(threshold) {
  require(beta != 0 && !std::isnan(beta), "Softplus", "beta must be a number other than 0", where);
  requireNumber(threshold, "threshold", "Softplus", where);
}
Tensor Softplus::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return softplus(x, beta, threshold, where);
}

Softmax::Softmax(int64_t axis, Location where) : Module("Softmax", where), axis(axis) {}
Tensor Softmax::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return softmax(x, axis, where);
}

LogSoftmax::LogSoftmax(int64_t axis, Location where) : Module("LogSoftmax", where), axis(axis) {}
Tensor LogSoftmax::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return log_softmax(x, axis, where);
}

CELU::CELU(double alpha, Location where) : Module("CELU", where), alpha(alpha) {
  require(alpha != 0 && !std::isnan(alpha), "CELU", "alpha must be a number other than 0", where);
}
Tensor CELU::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  LocationScope scope(where);
  return maximum(x, 0.0) + minimum(expm1(x / alpha) * alpha, 0.0);
}

Hardtanh::Hardtanh(double min_val, double max_val, Location where)
    : Module("Hardtanh", where), min_val(min_val), max_val(max_val) {
  require(min_val <= max_val, "Hardtanh", "min_val must not be above max_val", where);
}
Tensor Hardtanh::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return clamp(x, min_val, max_val, where);
}

Softshrink::Softshrink(double lambd, Location where) : Module("Softshrink", where), lambd(lambd) {
  require(lambd >= 0, "Softshrink", "lambd must not be negative", where);
}
Tensor Softshrink::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  LocationScope scope(where);
  return burin::where(x > lambd, x - lambd, burin::where(x < -lambd, x + lambd, x * 0.0));
}

Hardshrink::Hardshrink(double lambd, Location where) : Module("Hardshrink", where), lambd(lambd) {
  requireNumber(lambd, "lambd", "Hardshrink", where);
}
Tensor Hardshrink::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  LocationScope scope(where);
  return burin::where((x >= -lambd) & (x <= lambd), 0.0, x);
}

Threshold::Threshold(double threshold, double value, Location where)
    : Module("Threshold", where), threshold(threshold), value(value) {
  requireNumber(threshold, "threshold", "Threshold", where);
}
Tensor Threshold::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  LocationScope scope(where);
  return burin::where(x <= threshold, value, x);
}

GLU::GLU(int64_t axis, Location where) : Module("GLU", where), axis(axis) {}
Tensor GLU::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return glu(x, axis, where);
}

Softmin::Softmin(int64_t axis, Location where) : Module("Softmin", where), axis(axis) {}
Tensor Softmin::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return softmax(neg(x, where), axis, where);
}

// ---- shapes

Unflatten::Unflatten(int64_t axis, Shape sizes, Location where)
    : Module("Unflatten", where), axis(axis), sizes(std::move(sizes)) {}
Tensor Unflatten::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return unflatten(x, axis, sizes, where);
}

PadNd::PadNd(const char *kind, size_t dimensions, IntList given, std::string mode, double value, const Location &where)
    : Module(kind, where), padding(std::move(given)), mode(std::move(mode)), value(value) {
  if (padding.size() == 1)
    padding.assign(2 * dimensions, padding[0]);
  if (padding.size() != 2 * dimensions)
    throw Error(detail::inScope(where), kind,
                "padding has " + std::to_string(padding.size()) + " numbers, but needs 1 or " +
                    std::to_string(2 * dimensions));
  describe(text(padding));
}
Tensor PadNd::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  const size_t dimensions = padding.size() / 2;
  if (size_t(x.rank(where)) != dimensions + 2 && size_t(x.rank(where)) != dimensions + 1)
    throw Error(detail::inScope(where), kind(),
                "the input is " + burin::str(x.spec(where)) + ", but must be [N, C] or [C], and " +
                    std::to_string(dimensions) + " spatial dimensions");
  return detail::padded(x, Padding(padding, where), mode, value);
}

Flatten::Flatten(int64_t start, int64_t end, Location where) : Module("Flatten", where), start(start), end(end) {}
Tensor Flatten::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return x.flatten(start, end, where);
}

Mish::Mish(Location where) : Module("Mish", where) {}
Tensor Mish::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return mul(x, tanh(softplus(x, 1, 20, where), where), where);
}

PReLU::PReLU(int64_t num_parameters, double init, Location where) : Module("PReLU", where) {
  requireSize(num_parameters, 1, "num_parameters", "PReLU", where);
  requireNumber(init, "init", "PReLU", where);
  describe(text(num_parameters));
  weight = register_parameter("weight", full({num_parameters}, init, where), where);
}
Tensor PReLU::operator()(const Tensor &given, Location where) const {
  ModuleScope inModule(*this);
  LocationScope scope(where);
  const Location place = detail::inScope(where);
  Tensor x = detail::castForProduct(given, place), slope = detail::castForProduct(weight.value(), place);
  if (x.rank() > 1 && slope.shape() != Shape{1}) { // one per channel
    if (slope.shape()[0] != x.shape()[1])
      throw Error(place, "PReLU",
                  "there are " + slope.shape()[0].str() + " weights, but the input is " + burin::str(x.spec()));
    Shape shape(x.shape().size(), Dim(1));
    shape[1] = slope.shape()[0];
    slope = reshape(slope, shape);
  }
  return burin::where(x > 0, x, x * slope);
}

// ---- functions as layers

LocalResponseNorm::LocalResponseNorm(int64_t size, double alpha, double beta, double k, Location where)
    : Module("LocalResponseNorm", where), size(size), alpha(alpha), beta(beta), k(k) {
  requireSize(size, 1, "size", "LocalResponseNorm", where);
  describe(text(size));
}
Tensor LocalResponseNorm::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return local_response_norm(x, size, alpha, beta, k, where);
}

AlphaDropout::AlphaDropout(double p, Location where) : Module("AlphaDropout", where), p(p) {
  requireProbability(p, "AlphaDropout", where);
}
Tensor AlphaDropout::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return alpha_dropout(x, p, is_training(), where);
}

RReLU::RReLU(double lower, double upper, Location where) : Module("RReLU", where), lower(lower), upper(upper) {
  require(lower <= upper, "RReLU", "lower must not be above upper", where);
}
Tensor RReLU::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return rrelu(x, lower, upper, is_training(), where);
}

ChannelShuffle::ChannelShuffle(int64_t groups, Location where) : Module("ChannelShuffle", where), groups(groups) {
  requireSize(groups, 1, "groups", "ChannelShuffle", where);
  describe(text(groups));
}
Tensor ChannelShuffle::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return channel_shuffle(x, groups, where);
}

Unfold::Unfold(IntList kernel, IntList dilation, IntList padding, IntList stride, Location where)
    : Module("Unfold", where), kernel(std::move(kernel)), dilation(std::move(dilation)), padding(std::move(padding)),
      stride(std::move(stride)) {
  describe(text(this->kernel));
}
Tensor Unfold::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return unfold(x, kernel, dilation, padding, stride, where);
}
Fold::Fold(Shape output_size, IntList kernel, IntList dilation, IntList padding, IntList stride, Location where)
    : Module("Fold", where), output_size(std::move(output_size)), kernel(std::move(kernel)),
      dilation(std::move(dilation)), padding(std::move(padding)), stride(std::move(stride)) {
  describe(text(this->kernel));
}
Tensor Fold::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return fold(x, output_size, kernel, dilation, padding, stride, where);
}

CosineSimilarity::CosineSimilarity(int64_t axis, double eps, Location where)
    : Module("CosineSimilarity", where), axis(axis), eps(eps) {
  requireEpsilon(eps, "CosineSimilarity", where);
}
Tensor CosineSimilarity::operator()(const Tensor &x, const Tensor &y, Location where) const {
  ModuleScope inModule(*this);
  return cosine_similarity(x, y, axis, eps, where);
}
PairwiseDistance::PairwiseDistance(double p, double eps, bool keepdims, Location where)
    : Module("PairwiseDistance", where), p(p), eps(eps), keepdims(keepdims) {
  requireNumber(p, "p", "PairwiseDistance", where);
  requireEpsilon(eps, "PairwiseDistance", where);
}
Tensor PairwiseDistance::operator()(const Tensor &x, const Tensor &y, Location where) const {
  ModuleScope inModule(*this);
  return pairwise_distance(x, y, p, eps, keepdims, where);
}

// ---- dropout

Tensor dropped(const Tensor &x, double p, const Shape &shape, const Location &where) {
  if (p == 1)
    return mul(x, 0.0, where);
  detail::Beside scope(x, where);
  Tensor keep = ge(rand(shape, DType::f32, where), p, where);
  return burin::where(keep, mul(x, 1 / (1 - p), where), 0.0, where);
}

Dropout::Dropout(double p, Location where) : Module("Dropout", where), p(p) { requireProbability(p, "Dropout", where); }
Tensor Dropout::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  return is_training() && p > 0 ? dropped(x, p, x.shape(where), where) : detail::dropout(x, p, where);
}

DropoutNd::DropoutNd(const char *kind, size_t dimensions, double p, const Location &where)
    : Module(kind, where), p(p), dimensions(dimensions) {
  requireProbability(p, kind, where);
}
Tensor DropoutNd::operator()(const Tensor &x, Location where) const {
  ModuleScope inModule(*this);
  Shape shape = x.shape(where);
  if (shape.size() != dimensions + 2)
    throw Error(detail::inScope(where), kind(),
                "the input is " + burin::str(x.spec(where)) + ", but must be [N, C] and " + std::to_string(dimensions) +
                    " spatial dimensions");
  std::fill(shape.begin() + 2, shape.end(), Dim(1));
  return is_training() && p > 0 ? dropped(x, p, shape, where) : detail::dropout(x, p, where);
}
Dropout1d::Dropout1d(double p, Location where) : DropoutNd("Dropout1d", 1, p, where) {}
Dropout2d::Dropout2d(double p, Location where) : DropoutNd("Dropout2d", 2, p, where) {}
Dropout3d::Dropout3d(double p, Location where) : DropoutNd("Dropout3d", 3, p, where) {}

} // namespace burin::nn

burin::Tensor burin::dropout(const Tensor &x, double p, bool training, Location where) {
  nn::requireProbability(p, "dropout", where);
  return training && p > 0 ? nn::dropped(x, p, x.shape(where), where) : detail::dropout(x, p, where);
}
