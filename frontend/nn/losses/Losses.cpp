// Losses that compare elements or vectors; ClassLosses.cpp has those over classes and sequences.
#include "burin/nn/losses.h"
#include "burin/ops.h"
#include "burin/training/gradients.h"
#include "frontend/nn/losses/LossChecks.h"
#include "frontend/tensor/context/AutocastScope.h"
#include "frontend/tensor/context/LocationScope.h"
#include <cmath>

namespace burin {

using namespace detail;

void detail::requireFloat(const Tensor &x, const char *what, const char *op, const Location &where) {
  if (!isFloat(x.dtype(where)))
    throw Error(where, op,
                "the " + std::string(what) + " is " + str(x.spec(where)) + ", but must be floats; convert it: to(f32)");
}

void detail::requireSameShape(const Tensor &input, const Tensor &target, const char *what, const char *op,
                              const Location &where) {
  if (input.shape(where) != target.shape(where))
    throw Error(where, op,
                "the " + std::string(what) + " is " + str(target.spec(where)) + ", but the input is " +
                    str(input.spec(where)) + "; they must have one shape, reshape or broadcast_to one of them");
}

static void requireElements(const Shape &shape, const char *op, const Location &where) {
  if (elements(shape) == Dim(0))
    throw Error(where, op,
                "the mean over an empty batch " + str(shape) + " is not a number; skip the batch, or use Sum");
}

Tensor detail::reduceLoss(const Tensor &loss, Reduction reduction, const char *op, const Location &where) {
  switch (reduction) {
  case Reduction::None:
    return loss;
  case Reduction::Sum:
    return reduce_sum(loss);
  case Reduction::Mean:
    requireElements(loss.shape(), op, where);
    return reduce_mean(loss);
  case Reduction::BatchMean:
    break;
  }
  throw Error(where, op, "BatchMean is a reduction of kl_div only; use Mean or Sum");
}

// ---- regression

/// `loss` of the difference, reduced.
template <class F>
static Tensor ofDifference(const Tensor &input, const Tensor &target, Reduction reduction, const char *op,
                           const Location &where, F loss) {
  LocationScope scope(where);
  const Location place = inScope(where);
  requireFloat(input, "input", op, place);
  requireSameShape(input, target, "target", op, place);
  return reduceLoss(loss(castForLoss(input, place) - castForLoss(target, place)), reduction, op, place);
}

Tensor mse_loss(const Tensor &input, const Tensor &target, Reduction reduction, Location where) {
  return ofDifference(input, target, reduction, "mse_loss", where, [](const Tensor &d) { return d * d; });
}
Tensor l1_loss(const Tensor &input, const Tensor &target, Reduction reduction, Location where) {
  return ofDifference(input, target, reduction, "l1_loss", where, [](const Tensor &d) { return abs(d); });
}
Tensor smooth_l1_loss(const Tensor &input, const Tensor &target, Reduction reduction, double beta, Location where) {
  if (!(beta >= 0))
    throw Error(inScope(where), "smooth_l1_loss", "beta is " + std::to_string(beta) + ", but must not be negative");
  return ofDifference(input, target, reduction, "smooth_l1_loss", where, [=](const Tensor &d) {
    Tensor size = abs(d);
    return beta == 0 ? size : burin::where(size < beta, d * d * (0.5 / beta), size - 0.5 * beta);
  });
}
Tensor huber_loss(const Tensor &input, const Tensor &target, Reduction reduction, double delta, Location where) {
  if (!(delta > 0))
    throw Error(inScope(where), "huber_loss", "delta is " + std::to_string(delta) + ", but must be positive");
  return ofDifference(input, target, reduction, "huber_loss", where, [=](const Tensor &d) {
    Tensor size = abs(d);
    return burin::where(size <= delta, d * d * 0.5, (size - 0.5 * delta) * delta);
  });
}

// ---- probabilities

/// log x, clamped to at least -100. Its slope is 1 / x, at most 1e12.
static Tensor limitedLog(const Tensor &x) {
  constexpr double kLeast = 1e-12;
  Tensor isSmall = x < kLeast, constant = detach(x);
  // The second term is 0; it has the slope.
  Tensor small = maximum(log(constant), -100.0) + (x - constant) * (1 / kLeast);
  return where(isSmall, small, log(where(isSmall, 1.0, x)));
}

static Tensor weighed(const Tensor &loss, const std::optional<Tensor> &weight, const char *op, const Location &where) {
  if (!weight)
    return loss;
  Tensor result = loss * *weight;
  if (result.shape() != loss.shape())
    throw Error(where, op,
                "the weight " + str(weight->spec()) + " does not broadcast to the input's shape " + str(loss.shape()));
  return result;
}

Tensor binary_cross_entropy(const Tensor &given, const Tensor &wanted, const BceOptions &options, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  const Tensor input = castForLoss(given, place), target = castForLoss(wanted, place);
  constexpr auto op = "binary_cross_entropy";
  requireFloat(input, "input", op, place);
  requireFloat(target, "target", op, place);
  requireSameShape(input, target, "target", op, place);
  Tensor areProbabilities = (input >= 0.0) & (input <= 1.0) & (target >= 0.0) & (target <= 1.0);
  Tensor x = check(areProbabilities, input,
                   std::string(op) + ": elements of input and target must lie in [0, 1]; apply sigmoid to the input, "
                                     "or use binary_cross_entropy_with_logits",
                   place);
  Tensor loss = -(target * limitedLog(x) + (1.0 - target) * limitedLog(1.0 - x));
  return reduceLoss(weighed(loss, options.weight, op, place), options.reduction, op, place);
}

Tensor binary_cross_entropy_with_logits(const Tensor &given, const Tensor &wanted, const BceWithLogitsOptions &options,
                                        Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  const Tensor input = castForLoss(given, place), target = castForLoss(wanted, place);
  constexpr auto op = "binary_cross_entropy_with_logits";
  requireFloat(input, "input", op, place);
  requireFloat(target, "target", op, place);
  requireSameShape(input, target, "target", op, place);
  Tensor negative = log1p(exp(-abs(input))) + maximum(-input, 0.0); // -log sigmoid(input)
  if (options.pos_weight)
    negative = weighed(negative, 1.0 + (*options.pos_weight - 1.0) * target, op, place);
  Tensor loss = (1.0 - target) * input + negative;
  return reduceLoss(weighed(loss, options.weight, op, place), options.reduction, op, place);
}

Tensor kl_div(const Tensor &given, const Tensor &wanted, Reduction reduction, bool log_target, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  const Tensor input = castForLoss(given, place), target = castForLoss(wanted, place);
  requireFloat(input, "input", "kl_div", place);
  requireFloat(target, "target", "kl_div", place);
  requireSameShape(input, target, "target", "kl_div", place);
  Tensor loss;
  if (log_target) {
    loss = exp(target) * (target - input);
  } else {
    Tensor isZero = target == 0.0;
    loss = burin::where(isZero, 0.0, target * log(burin::where(isZero, 1.0, target))) - target * input;
  }
  if (reduction != Reduction::BatchMean)
    return reduceLoss(loss, reduction, "kl_div", place);
  requireElements(loss.shape(), "kl_div", place);
  if (loss.rank() == 0)
    throw Error(place, "kl_div", "BatchMean needs a batch dimension, but the input is a scalar");
  return reduce_sum(loss) / sizeTensor(loss.shape()[0]).to(loss.dtype());
}

// ---- vectors

Tensor cosine_embedding_loss(const Tensor &given1, const Tensor &given2, const Tensor &target, double margin,
                             Reduction reduction, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  const Tensor input1 = castForLoss(given1, place), input2 = castForLoss(given2, place);
  constexpr auto op = "cosine_embedding_loss";
  constexpr double kEpsilon = 1e-12; // torch's EPSILON for this loss, added to the squared norms
  requireFloat(input1, "input", op, place);
  requireSameShape(input1, input2, "second input", op, place);
  const Shape &shape = input1.shape();
  if (shape.empty() || shape.size() > 2 || target.shape() != Shape(shape.begin(), shape.end() - 1))
    throw Error(place, op,
                "the inputs must be [N, D] and the target [N], or [D] and []; they are " + str(input1.spec()) +
                    " and " + str(target.spec()));
  if (std::isnan(margin))
    throw Error(place, op, "the margin is NaN");
  Tensor dot = reduce_sum(input1 * input2, {-1});
  auto square = [&](const Tensor &x) { return reduce_sum(x * x, {-1}) + kEpsilon; };
  Tensor cosine = dot / sqrt(square(input1) * square(input2));
  Tensor zero = zeros_like(cosine);
  Tensor loss = burin::where(target == 1, 1.0 - cosine, zero) +
                burin::where(target == -1, burin::where(cosine - margin > 0.0, cosine - margin, zero), zero);
  return reduceLoss(loss, reduction, op, place);
}

/// The p-norm of a - b + eps over the last dimension. At a norm of 0 the slope is 0.
static Tensor distance(const Tensor &a, const Tensor &b, double p, double eps) {
  Tensor size = abs(a - b + eps);
  if (std::isinf(p))
    return reduce_max(size, {-1});
  if (p == 1)
    return reduce_sum(size, {-1});
  Tensor sum = reduce_sum(p == 2 ? size * size : pow(size, p), {-1}), isZero = sum == 0.0;
  Tensor safe = where(isZero, 1.0, sum);
  return where(isZero, 0.0, p == 2 ? sqrt(safe) : pow(safe, 1 / p));
}

Tensor triplet_margin_loss(const Tensor &givenAnchor, const Tensor &givenPositive, const Tensor &givenNegative,
                           const TripletMarginOptions &options, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  const Tensor anchor = castForLoss(givenAnchor, place), positive = castForLoss(givenPositive, place),
               negative = castForLoss(givenNegative, place);
  constexpr auto op = "triplet_margin_loss";
  requireFloat(anchor, "anchor", op, place);
  requireSameShape(anchor, positive, "positive", op, place);
  requireSameShape(anchor, negative, "negative", op, place);
  if (anchor.rank() < 1)
    throw Error(place, op, "the tensors must have a dimension to take distances over: [N, D] or [D]");
  if (!(options.p >= 1) || !(options.margin > 0) || std::isnan(options.eps))
    throw Error(place, op, "p must be at least 1, the margin positive, and eps a number");
  Tensor near = distance(anchor, positive, options.p, options.eps);
  Tensor far = distance(anchor, negative, options.p, options.eps);
  if (options.swap)
    far = minimum(far, distance(positive, negative, options.p, options.eps));
  return reduceLoss(relu(near - far + options.margin), options.reduction, op, place);
}

// ---- modules

namespace nn {

MSELoss::MSELoss(Reduction reduction, Location where) : Module("MSELoss", where), reduction(reduction) {}
Tensor MSELoss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  return mse_loss(input, target, reduction, where);
}
L1Loss::L1Loss(Reduction reduction, Location where) : Module("L1Loss", where), reduction(reduction) {}
Tensor L1Loss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  return l1_loss(input, target, reduction, where);
}
SmoothL1Loss::SmoothL1Loss(Reduction reduction, double beta, Location where)
    : Module("SmoothL1Loss", where), reduction(reduction), beta(beta) {}
Tensor SmoothL1Loss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  return smooth_l1_loss(input, target, reduction, beta, where);
}
HuberLoss::HuberLoss(Reduction reduction, double delta, Location where)
    : Module("HuberLoss", where), reduction(reduction), delta(delta) {}
Tensor HuberLoss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  return huber_loss(input, target, reduction, delta, where);
}
KLDivLoss::KLDivLoss(Reduction reduction, bool log_target, Location where)
    : Module("KLDivLoss", where), reduction(reduction), log_target(log_target) {}
Tensor KLDivLoss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  return kl_div(input, target, reduction, log_target, where);
}
CosineEmbeddingLoss::CosineEmbeddingLoss(double margin, Reduction reduction, Location where)
    : Module("CosineEmbeddingLoss", where), margin(margin), reduction(reduction) {}
Tensor CosineEmbeddingLoss::operator()(const Tensor &input1, const Tensor &input2, const Tensor &target,
                                       Location where) const {
  ModuleScope inModule(*this);
  return cosine_embedding_loss(input1, input2, target, margin, reduction, where);
}
TripletMarginLoss::TripletMarginLoss(TripletMarginOptions options, Location where)
    : Module("TripletMarginLoss", where), options(options) {}
Tensor TripletMarginLoss::operator()(const Tensor &anchor, const Tensor &positive, const Tensor &negative,
                                     Location where) const {
  ModuleScope inModule(*this);
  return triplet_margin_loss(anchor, positive, negative, options, where);
}

BCELoss::BCELoss(BceOptions given, Location where) : Module("BCELoss", where), options(std::move(given)) {
  if (options.weight)
    weight = register_buffer("weight", *options.weight, where);
}
Tensor BCELoss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  BceOptions now = options;
  now.weight = optionally(weight);
  return binary_cross_entropy(input, target, now, where);
}
BCEWithLogitsLoss::BCEWithLogitsLoss(BceWithLogitsOptions given, Location where)
    : Module("BCEWithLogitsLoss", where), options(std::move(given)) {
  if (options.weight)
    weight = register_buffer("weight", *options.weight, where);
  if (options.pos_weight)
    pos_weight = register_buffer("pos_weight", *options.pos_weight, where);
}
Tensor BCEWithLogitsLoss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  BceWithLogitsOptions now = options;
  now.weight = optionally(weight);
  now.pos_weight = optionally(pos_weight);
  return binary_cross_entropy_with_logits(input, target, now, where);
}

} // namespace nn
} // namespace burin
