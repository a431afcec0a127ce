// Losses, gradients and optimiser steps.
#include "burin/training/gradients.h"
#include "frontend/autodiff/gradients/Rules.h"
#include "frontend/onnx/import/Node.h"
#include <algorithm>

namespace burin::onnx {

namespace {

/// -weight[target] * x[…, target, …], reduced; `x` holds logarithms of probabilities along dimension 1. The index of
/// what is ignored need not be that of a class.
Tensor negativeLogLikelihood(Node &n, const Tensor &x, Tensor target, const std::optional<Tensor> &weight) {
  std::optional<Tensor> isIgnored;
  if (n.hasAttribute("ignore_index")) {
    isIgnored = target == n.attribute("ignore_index", int64_t(0));
    target = where(*isIgnored, 0, target);
  }
  Tensor picked = squeeze(gather(x, unsqueeze(target, {1}), 1), {1});
  Tensor scale = weight ? take(*weight, target, 0) : full(target.shape(), 1, x.dtype());
  if (isIgnored)
    scale = where(*isIgnored, 0.0, scale);
  Tensor loss = -picked * scale;
  std::string reduction = n.attribute("reduction", "mean");
  if (reduction == "none")
    return loss;
  Tensor sum = reduce_sum(loss);
  return reduction == "sum" ? sum : sum / reduce_sum(scale);
}

Values nllLoss(Node &n) { return negativeLogLikelihood(n, n[0], n[1], n.optional(2)); }

Values crossEntropy(Node &n) {
  Tensor logs = log_softmax(n[0], 1);
  return Values({negativeLogLikelihood(n, logs, n[1], n.optional(2)), logs});
}

// ---- optimiser steps: inputs are the rate, the number of the step, and the same number of tensors of each kind

constexpr const char *kTraining = "ai.onnx.preview.training";

/// The tensors of one parameter: value, gradient, states.
std::vector<Tensor> groupOf(Node &n, size_t index, size_t kinds) {
  size_t count = (n.inputCount() - std::min<size_t>(n.inputCount(), 2)) / kinds;
  std::vector<Tensor> group;
  for (size_t kind = 0; kind < kinds; ++kind)
    group.push_back(n[2 + kind * count + index]);
  return group;
}
/// Runs `step`, which returns the new value and the new states, for each parameter; groups the results by kind.
template <class F> Values optimize(Node &n, size_t kinds, F &&step) {
  if (n.inputCount() < 2 + kinds || (n.inputCount() - 2) % kinds)
    n.fail("its inputs are not " + std::to_string(kinds) + " for each parameter");
  size_t count = (n.inputCount() - 2) / kinds;
  Values results(count * (kinds - 1));
  for (size_t i = 0; i < count; ++i) {
    std::vector<Tensor> group = groupOf(n, i, kinds);
    group[1] = group[1] + group[0] * n.attribute("norm_coefficient", 0.0);
    std::vector<Tensor> updated = step(group);
    for (size_t kind = 0; kind + 1 < kinds; ++kind)
      results[kind * count + i] = updated[kind];
  }
  return results;
}

Values adagrad(Node &n) {
  Tensor rate = n[0] / (1.0 + n[1].to(n.dtype()) * n.attribute("decay_factor", 0.0));
  double epsilon = n.attribute("epsilon", 1e-6);
  return optimize(n, 3, [&](const std::vector<Tensor> &t) -> std::vector<Tensor> {
    Tensor squares = t[2] + t[1] * t[1];
    return {t[0] - rate * t[1] / (sqrt(squares) + epsilon), squares};
  });
}

Values momentum(Node &n) {
  double alpha = n.attribute("alpha", 0.9);
  Tensor rate = n[0], beta = where(n[1] > 0, n.attribute("beta", 1.0), 1.0).to(n.dtype());
  bool isNesterov = n.attribute("mode", "standard") == "nesterov";
  return optimize(n, 3, [&](const std::vector<Tensor> &t) -> std::vector<Tensor> {
    Tensor velocity = t[2] * alpha + beta * t[1];
    return {t[0] - rate * (isNesterov ? t[1] + velocity * alpha : velocity), velocity};
  });
}

Values adam(Node &n) {
  double alpha = n.attribute("alpha", 0.9), beta = n.attribute("beta", 0.999), epsilon = n.attribute("epsilon", 1e-6);
  DType dtype = n.dtype();
  Tensor step = n[1].to(dtype), one = full({}, 1, dtype);
  Tensor corrected = n[0] * sqrt(1.0 - pow(one * beta, step)) / (1.0 - pow(one * alpha, step));
  Tensor rate = where(n[1] > 0, corrected, n[0]);
  return optimize(n, 4, [&](const std::vector<Tensor> &t) -> std::vector<Tensor> {
    Tensor mean = t[2] * alpha + t[1] * (1 - alpha), squares = t[3] * beta + t[1] * t[1] * (1 - beta);
    Tensor x = t[0] - rate * mean / (sqrt(squares) + epsilon);
    return {x * (1 - n.attribute("norm_coefficient_post", 0.0)), mean, squares};
  });
}

// ---- gradients

/// The gradient of the sum of y's elements, with the inputs as values of the names xs and zs. Nodes between them and y
/// are imported again for these; if the values are the same, common subexpression elimination removes the duplicates.
Values gradient(Node &n) {
  std::vector<std::string> xs = n.attributeStrings("xs"), names = xs, zs = n.attributeStrings("zs");
  std::string y = n.attribute("y", "");
  names.insert(names.end(), zs.begin(), zs.end());
  if (xs.empty() || y.empty())
    n.fail("it needs the attributes \"xs\" and \"y\", names of values of the graph");
  if (n.inputCount() != names.size())
    n.fail("it has " + std::to_string(n.inputCount()) + " inputs for the " + std::to_string(names.size()) +
           " names in \"xs\" and \"zs\"");
  std::vector<Tensor> variables;
  GivenValues given;
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::find(names.begin(), names.begin() + std::ptrdiff_t(i), names[i]) !=
        names.begin() + std::ptrdiff_t(i))
      n.fail("it names " + quoted(names[i]) + " twice");
    given.emplace_back(names[i], n.value(i));
    if (i >= xs.size())
      continue;
    if (!isFloat(n.dtype(i)))
      n.fail("its input for " + quoted(names[i]) + " is " + str(n[i].spec()) + "; only floats have gradients");
    variables.push_back(reshape(n[i], n.shape(i))); // a separate value, also for equal inputs
    given.back().second = variables.back();
  }
  Value target = n.recompute(y, given);
  if (target.sequence || !isFloat(tensorOf(target).dtype()))
    n.fail("its \"y\", " + quoted(y) + ", is no tensor of floats; only those have gradients");
  try {
    return grad(tensorOf(target), variables, ones_like(tensorOf(target)));
  } catch (const gradients::NoGradient &error) {
    n.unsupported(error.message);
  }
}

constexpr OpEntry table[] = {
    {"Adagrad", adagrad, {}, kTraining},    {"Adam", adam, {}, kTraining},
    {"Gradient", gradient, {}, kTraining},  {"Momentum", momentum, {}, kTraining},
    {"NegativeLogLikelihoodLoss", nllLoss}, {"SoftmaxCrossEntropyLoss", crossEntropy},
};

} // namespace

std::span<const OpEntry> trainingOps() { return table; }

} // namespace burin::onnx
