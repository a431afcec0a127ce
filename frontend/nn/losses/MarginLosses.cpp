// Losses with margins, and likelihoods of regression.
#include "burin/ops.h"
#include "burin/tensor/composed.h"
#include "burin/tensor/reductions.h"
#include "burin/training/gradients.h"
#include "frontend/nn/losses/LossChecks.h"
#include "frontend/tensor/context/LocationScope.h"
#include <cmath>
#include <numbers>

namespace burin {

using namespace detail;

// ---- likelihoods

Tensor gaussian_nll_loss(const Tensor &input, const Tensor &target, const Tensor &var,
                         const GaussianNllOptions &options, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  constexpr auto op = "gaussian_nll_loss";
  requireFloat(input, "input", op, place);
  requireFloat(var, "variance", op, place);
  requireSameShape(input, target, "target", op, place);
  const Shape &shape = input.shape();
  Shape perRow = shape;
  if (!perRow.empty())
    perRow.pop_back();
  Tensor given = var;
  if (var.shape() != shape && var.shape() == perRow)
    given = unsqueeze(var, {-1});
  perRow.push_back(1);
  if (given.shape() != shape && given.shape() != perRow)
    throw Error(place, op,
                "the variance is " + str(var.spec()) + ", but for the input " + str(input.spec()) +
                    " it must have the same shape, or 1 or nothing in place of the last dimension");
  Tensor known = detach(given), variance = given + (maximum(known, options.eps) - known);
  Tensor difference = input - target, loss = 0.5 * (log(variance) + difference * difference / variance);
  if (options.full)
    loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return reduceLoss(loss, options.reduction, op, place);
}

Tensor poisson_nll_loss(const Tensor &input, const Tensor &target, const PoissonNllOptions &options, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  constexpr auto op = "poisson_nll_loss";
  requireFloat(input, "input", op, place);
  requireSameShape(input, target, "target", op, place);
  Tensor loss = options.log_input ? exp(input) - target * input : input - target * log(input + options.eps);
  if (options.full) {
    Tensor counted = burin::where(target > 1, target, 1).to(input.dtype());
    Tensor stirling = counted * log(counted) - counted + 0.5 * log(2 * std::numbers::pi * counted);
    loss = loss + burin::where(target > 1, stirling, 0.0);
  }
  return reduceLoss(loss, options.reduction, op, place);
}

// ---- margins

Tensor hinge_embedding_loss(const Tensor &input, const Tensor &target, double margin, Reduction reduction,
                            Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  requireFloat(input, "input", "hinge_embedding_loss", place);
  requireSameShape(input, target, "target", "hinge_embedding_loss", place);
  Tensor far = burin::where(target != 1, relu(margin - input), 0.0), near = burin::where(target != -1, input, 0.0);
  return reduceLoss(near + far, reduction, "hinge_embedding_loss", place);
}

Tensor margin_ranking_loss(const Tensor &input1, const Tensor &input2, const Tensor &target, double margin,
                           Reduction reduction, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  constexpr auto op = "margin_ranking_loss";
  requireFloat(input1, "input", op, place);
  requireSameShape(input1, input2, "second input", op, place);
  requireSameShape(input1, target, "target", op, place);
  return reduceLoss(relu(margin - target * (input1 - input2)), reduction, op, place);
}

Tensor soft_margin_loss(const Tensor &input, const Tensor &target, Reduction reduction, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  requireFloat(input, "input", "soft_margin_loss", place);
  requireSameShape(input, target, "target", "soft_margin_loss", place);
  return reduceLoss(-logsigmoid(target * input), reduction, "soft_margin_loss", place);
}

// ---- margins between classes, along the last dimension

/// Throws unless input is [N, C] or [C].
static void requireClassesLast(const Tensor &input, const char *op, const Location &where) {
  requireFloat(input, "input", op, where);
  if (input.rank() != 1 && input.rank() != 2)
    throw Error(where, op, "the input is " + str(input.spec()) + ", but must be [N, C] or [C]");
}
/// The number of classes, and a weight [C] in the input's type.
static Tensor classCount(const Tensor &input) { return sizeTensor(input.shape().back()).to(input.dtype()); }
static Tensor weightsOf(const Tensor &weight, const Tensor &input, const char *op, const Location &where) {
  if (weight.shape(where) != Shape{input.shape().back()})
    throw Error(where, op,
                "the weight is " + str(weight.spec()) + ", but must have one factor for each of the " +
                    input.shape().back().str() + " classes");
  return weight.to(input.dtype());
}

Tensor multilabel_soft_margin_loss(const Tensor &input, const Tensor &target, const std::optional<Tensor> &weight,
                                   Reduction reduction, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  constexpr auto op = "multilabel_soft_margin_loss";
  requireFloat(input, "input", op, place);
  requireSameShape(input, target, "target", op, place);
  if (input.rank() == 0)
    throw Error(place, op, "the input is a scalar, but its last dimension must be the classes");
  Tensor loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input));
  if (weight)
    loss = loss * weightsOf(*weight, input, op, place);
  return reduceLoss(reduce_mean(loss, {-1}), reduction, op, place);
}

Tensor multi_margin_loss(const Tensor &input, const Tensor &target, const MultiMarginOptions &options, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  constexpr auto op = "multi_margin_loss";
  requireClassesLast(input, op, place);
  if (!isInteger(target.dtype()) || target.shape() != Shape(input.shape().begin(), input.shape().end() - 1))
    throw Error(place, op,
                "the target is " + str(target.spec()) + ", but for the input " + str(input.spec()) +
                    " it must be one integer per row");
  if (options.p != 1 && options.p != 2)
    throw Error(place, op, "p is " + std::to_string(options.p) + ", but must be 1 or 2");
  Tensor wanted = unsqueeze(target.to(DType::i64), {-1});
  Tensor isTarget = wanted == iota({input.shape().back()}, DType::i64);
  Tensor excess = relu(options.margin - gather(input, wanted, input.rank() - 1) + input);
  if (options.p == 2)
    excess = excess * excess;
  if (options.weight)
    excess = excess * take(weightsOf(*options.weight, input, op, place), wanted, 0);
  Tensor loss = reduce_sum(burin::where(isTarget, 0.0, excess), {-1}) / classCount(input);
  return reduceLoss(loss, options.reduction, op, place);
}

Tensor multilabel_margin_loss(const Tensor &input, const Tensor &target, Reduction reduction, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  constexpr auto op = "multilabel_margin_loss";
  requireClassesLast(input, op, place);
  requireSameShape(input, target, "target", op, place);
  if (!isInteger(target.dtype()))
    throw Error(place, op, "the target is " + str(target.spec()) + ", but must be integers, the classes of each row");
  Tensor wide = target.to(DType::i64), ends = cumsum((wide < 0).to(DType::i64), -1), counts = ends == 0;
  Tensor labels = burin::where(counts, wide, 0), ofLabel = unsqueeze(labels, {-1});
  Tensor isLabel = (ofLabel == iota({input.shape().back()}, DType::i64)) & unsqueeze(counts, {-1}); // [..., label, C]
  Tensor isWanted = any(isLabel, {-2}, true);
  Tensor excess = relu(1 - unsqueeze(gather(input, labels, input.rank() - 1), {-1}) + unsqueeze(input, {-2}));
  excess = burin::where(unsqueeze(counts, {-1}) & !isWanted, excess, 0.0);
  return reduceLoss(reduce_sum(excess, {-2, -1}) / classCount(input), reduction, op, place);
}

// ---- modules

namespace nn {

GaussianNLLLoss::GaussianNLLLoss(GaussianNllOptions options, Location where)
    : Module("GaussianNLLLoss", where), options(options) {}
Tensor GaussianNLLLoss::operator()(const Tensor &input, const Tensor &target, const Tensor &var, Location where) const {
  ModuleScope inModule(*this);
  return gaussian_nll_loss(input, target, var, options, where);
}
PoissonNLLLoss::PoissonNLLLoss(PoissonNllOptions options, Location where)
    : Module("PoissonNLLLoss", where), options(options) {}
Tensor PoissonNLLLoss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  return poisson_nll_loss(input, target, options, where);
}
HingeEmbeddingLoss::HingeEmbeddingLoss(double margin, Reduction reduction, Location where)
    : Module("HingeEmbeddingLoss", where), margin(margin), reduction(reduction) {}
Tensor HingeEmbeddingLoss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  return hinge_embedding_loss(input, target, margin, reduction, where);
}
MarginRankingLoss::MarginRankingLoss(double margin, Reduction reduction, Location where)
    : Module("MarginRankingLoss", where), margin(margin), reduction(reduction) {}
Tensor MarginRankingLoss::operator()(const Tensor &input1, const Tensor &input2, const Tensor &target,
                                     Location where) const {
  ModuleScope inModule(*this);
  return margin_ranking_loss(input1, input2, target, margin, reduction, where);
}
SoftMarginLoss::SoftMarginLoss(Reduction reduction, Location where)
    : Module("SoftMarginLoss", where), reduction(reduction) {}
Tensor SoftMarginLoss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  return soft_margin_loss(input, target, reduction, where);
}
MultiLabelMarginLoss::MultiLabelMarginLoss(Reduction reduction, Location where)
    : Module("MultiLabelMarginLoss", where), reduction(reduction) {}
Tensor MultiLabelMarginLoss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  return multilabel_margin_loss(input, target, reduction, where);
}
MultiLabelSoftMarginLoss::MultiLabelSoftMarginLoss(std::optional<Tensor> given, Reduction reduction, Location where)
    : Module("MultiLabelSoftMarginLoss", where), reduction(reduction) {
  if (given)
    weight = register_buffer("weight", *given, where);
}
Tensor MultiLabelSoftMarginLoss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  return multilabel_soft_margin_loss(input, target, optionally(weight), reduction, where);
}
MultiMarginLoss::MultiMarginLoss(MultiMarginOptions given, Location where)
    : Module("MultiMarginLoss", where), options(std::move(given)) {
  if (options.weight)
    weight = register_buffer("weight", *options.weight, where);
}
Tensor MultiMarginLoss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  MultiMarginOptions now = options;
  now.weight = optionally(weight);
  return multi_margin_loss(input, target, now, where);
}

} // namespace nn
} // namespace burin
