#include "burin/tensor/composed.h"
#include "burin/training/autocast.h"
#include "burin/training/gradients.h"
#include "frontend/training/optim/OptimizerState.h"
#include <algorithm>

namespace burin::optim {

using detail::inScope;

struct GradScaler::State {
  GradScalerOptions options;
  Parameter scale;                                // f32[]
  Parameter tracker;                              // i32[]: steps since the last change of the scale
  Parameter isFound;                              // bool[]: whether a gradient since the last update was not finite
  std::vector<const Optimizer::State *> unscaled; // since the last update

  bool isUnscaled(const Optimizer &optimizer) const {
    return std::ranges::count(unscaled, optimizer.shared().get()) != 0;
  }
};

GradScaler::GradScaler(GradScalerOptions options, Location where) : state(new State) {
  const Location place = inScope(where);
  if (!(options.init_scale > 0) || !(options.growth_factor > 1) || !(options.backoff_factor > 0) ||
      !(options.backoff_factor < 1) || options.growth_interval < 1)
    throw Error(place, "GradScaler",
                "init_scale must be positive, growth_factor above 1, backoff_factor between 0 and 1, growth_interval "
                "at least 1");
  state->options = options;
  state->scale = scalarCell("scale", options.init_scale, DType::f32, place);
  state->tracker = scalarCell("_growth_tracker", 0, DType::i32, place);
  state->isFound = scalarCell("found_inf", 0, DType::boolean, place);
}

Tensor GradScaler::scale(const Tensor &loss, Location where) const {
  LocationScope scope(where);
  return loss * state->scale->to(loss.dtype());
}

void GradScaler::unscale_(Optimizer &optimizer, Location where) {
  LocationScope scope(where);
  if (state->isUnscaled(optimizer))
    throw Error(inScope(where), "GradScaler",
                "the gradients of this optimiser have been divided by the scale since the last update() already");
  NoGrad noGrad;
  Tensor factor = 1.0 / state->scale.value(), isFound = state->isFound;
  for (const Parameter &parameter : optimizer.parameters()) {
    Tensor gradient = parameter->requires_grad() ? parameter->grad() : Tensor();
    if (!gradient.defined())
      continue;
    isFound = isFound | logical_not(is_finite(gradient).all());
    parameter->set_grad(gradient * factor.to(gradient.dtype()));
  }
  state->isFound.set(isFound);
  state->unscaled.push_back(optimizer.shared().get());
}

void GradScaler::step(Optimizer &optimizer, Location where) {
  LocationScope scope(where);
  if (!state->isUnscaled(optimizer))
    unscale_(optimizer, where);
  std::vector<Tensor> gradients;
  for (const Parameter &parameter : optimizer.parameters())
    gradients.push_back(parameter->requires_grad() ? parameter->grad() : Tensor());
  optimizer.shared()->step(gradients, inScope(where), state->isFound);
}

void GradScaler::update(Location where) {
  LocationScope scope(where);
  NoGrad noGrad;
  const GradScalerOptions &o = state->options;
  Tensor isFound = state->isFound, scale = state->scale, calm = state->tracker + 1;
  Tensor isDue = calm >= o.growth_interval, grown = scale * o.growth_factor;
  grown = burin::where(isDue & is_finite(grown), grown, scale);
  state->scale.set(burin::where(isFound, scale * o.backoff_factor, grown));
  state->tracker.set(burin::where(isFound | isDue, 0, calm).to(DType::i32));
  state->isFound.set(zeros({}, DType::boolean));
  state->unscaled.clear();
}

double GradScaler::get_scale(Location where) const { return state->scale->item(where); }

StateDict GradScaler::state_dict() const {
  StateDict result;
  result.emplace_back("scale", state->scale.value());
  result.emplace_back("_growth_tracker", state->tracker.value());
  return result;
}

void GradScaler::load_state_dict(const StateDict &given, Location where) {
  const Location place = inScope(where);
  LocationScope scope(place);
  Tensor scale = given.at("scale", place), tracker = given.at("_growth_tracker", place);
  if (scale.shape() != Shape{} || tracker.shape() != Shape{})
    throw Error(place, "load_state_dict", "the state does not fit a GradScaler: its numbers are single elements");
  state->scale.set(scale.to(DType::f32));
  state->tracker.set(tracker.to(DType::i32));
}

} // namespace burin::optim
