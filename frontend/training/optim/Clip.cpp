// Clipping of gradients, and averages of parameters.
#include "burin/tensor/reductions.h"
#include "burin/training/gradients.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/training/optim/OptimizerState.h"
#include <cmath>

namespace burin::optim {

using detail::inScope;

/// The p-norm of all elements of all tensors; 0 without tensors.
static Tensor globalNorm(const std::vector<Tensor> &tensors, double p) {
  Tensor sum;
  for (const Tensor &x : tensors) {
    if (!x.defined())
      continue;
    Tensor part = std::isinf(p) ? x.abs().max() : (p == 2 ? x * x : pow(x.abs(), p)).sum();
    sum = !sum.defined() ? part : std::isinf(p) ? maximum(sum, part) : sum + part;
  }
  if (!sum.defined())
    return full({}, 0, DType::f32);
  return std::isinf(p) ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / p);
}

std::pair<std::vector<Tensor>, Tensor> clip_by_global_norm(const std::vector<Tensor> &gradients, double max_norm,
                                                           double norm_type, Location where) {
  LocationScope scope(where);
  if (!(max_norm >= 0) || !(norm_type > 0))
    throw Error(inScope(where), "clip_by_global_norm", "the norm must not be negative, and its type must be positive");
  for (const Tensor &x : gradients)
    if (x.defined() && !isFloat(x.dtype()))
      throw Error(inScope(where), "clip_by_global_norm", "a gradient is " + str(x.spec()) + ", but must be floats");
  NoGrad noGrad;
  Tensor norm = globalNorm(gradients, norm_type);
  Tensor factor = minimum(max_norm / (norm + 1e-6), 1.0);
  std::vector<Tensor> clipped;
  for (const Tensor &x : gradients)
    clipped.push_back(x.defined() ? x * factor.to(x.dtype()) : Tensor());
  return {clipped, norm};
}

static std::vector<Tensor> gradientsOf(const std::vector<Parameter> &params, const Location &where) {
  std::vector<Tensor> gradients;
  for (const Parameter &parameter : params)
    gradients.push_back(parameter->requires_grad() ? parameter->grad(where) : Tensor());
  return gradients;
}

Tensor clip_grad_norm_(const std::vector<Parameter> &params, double max_norm, double norm_type, Location where) {
  auto [clipped, norm] = clip_by_global_norm(gradientsOf(params, where), max_norm, norm_type, where);
  for (size_t i = 0; i < params.size(); ++i)
    if (clipped[i].defined())
      params[i]->set_grad(clipped[i], where);
  return norm;
}

void clip_grad_value_(const std::vector<Parameter> &params, double clip_value, Location where) {
  if (!(clip_value >= 0))
    throw Error(inScope(where), "clip_grad_value_", "the limit must not be negative");
  NoGrad noGrad;
  std::vector<Tensor> gradients = gradientsOf(params, where);
  for (size_t i = 0; i < params.size(); ++i)
    if (gradients[i].defined())
      params[i]->set_grad(clamp(gradients[i], -clip_value, clip_value, where), where);
}

// ---- averages

struct EMA::State {
  double decay;
  std::vector<std::pair<std::string, Parameter>> params, averages;
};

EMA::EMA(const nn::Module &module, double decay, Location where) : state(new State{decay, {}, {}}) {
  if (!(decay >= 0 && decay <= 1))
    throw Error(inScope(where), "EMA", "the decay " + std::to_string(decay) + " must lie in [0, 1]");
  state->params = module.named_parameters();
  for (const auto &[name, parameter] : state->params)
    state->averages.emplace_back(name, Parameter::state(detail::following(detach(parameter)), "average." + name));
}

void EMA::update(Location where) {
  LocationScope scope(where);
  NoGrad noGrad;
  for (size_t i = 0; i < state->params.size(); ++i) {
    Parameter &average = state->averages[i].second;
    average.set(average * state->decay + state->params[i].second * (1 - state->decay), where);
  }
}

StateDict EMA::state_dict() const {
  StateDict result;
  for (const auto &[name, average] : state->averages)
    result.emplace_back(name, average.value());
  return result;
}

void EMA::load_state_dict(const StateDict &given, Location where) {
  const Location place = inScope(where);
  std::vector<Tensor> values;
  for (const auto &[name, average] : state->averages) {
    values.push_back(given.at(name, place).to(average->dtype(), place));
    if (values.back().shape() != average->shape())
      throw Error(place, "load_state_dict",
                  name + " is " + str(values.back().spec()) + ", but its parameter is " + str(average->spec()));
  }
  for (size_t i = 0; i < values.size(); ++i)
    state->averages[i].second.set(values[i], place);
}

} // namespace burin::optim
