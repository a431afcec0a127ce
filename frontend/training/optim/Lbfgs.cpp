#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "burin/tensor/reductions.h"
#include "burin/training/gradients.h"
#include "burin/training/optim.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/training/optim/LineSearch.h"
#include "frontend/training/optim/OptimizerState.h"
#include <algorithm>
#include <cmath>
#include <deque>

namespace burin::optim {

using detail::inScope;

namespace {
/// The changes in a step: of the parameters, and of their gradient.
struct Change {
  Tensor step, gradient;
  double curvature; // 1 / (step · gradient)
};
double dot(const Tensor &a, const Tensor &b) { return (a * b).sum().item(); }
double largest(const Tensor &x) { return x.abs().max().item(); }
} // namespace

struct LBFGS::State {
  std::vector<Parameter> params;
  LbfgsOptions options;
  int64_t iterations = 0;
  Tensor direction, before; // the last direction, and the gradient before that step
  double length = 0, scale = 1;
  std::deque<Change> changes;

  void clearGradients(const Location &where) const;
  Tensor evaluate(const std::function<Tensor()> &closure, Tensor &gradient, const Location &where) const;
  void remember(const Tensor &gradient);
  Tensor quasiNewton(const Tensor &gradient) const;
  std::vector<Tensor> values() const;
  void moveTo(const std::vector<Tensor> &from, double length, const Location &where);
};

LBFGS::LBFGS(std::vector<Parameter> params, LbfgsOptions options, Location where) : state(new State) {
  const Location place = inScope(where);
  if (params.empty())
    throw Error(place, "LBFGS", "there are no parameters");
  for (size_t i = 0; i < params.size(); ++i) {
    if (!params[i].defined() || !isFloat(params[i]->dtype(place)))
      throw Error(place, "LBFGS", "a parameter is absent or has integers; only floats can be trained");
    if (std::any_of(params.begin(), params.begin() + ptrdiff_t(i), [&](auto &other) { return other.is(params[i]); }))
      throw Error(place, "LBFGS", "a parameter, " + str(params[i]->spec(place)) + ", is given twice");
  }
  requireRate(options.lr, "LBFGS", place);
  if (options.max_iter < 1 || options.history_size < 1 || !isAmount(options.tolerance_grad) ||
      !isAmount(options.tolerance_change))
    throw Error(place, "LBFGS", "max_iter and history_size must be positive, and tolerances not negative");
  if (options.max_eval < 0)
    options.max_eval = options.max_iter * 5 / 4;
  if (!options.line_search_fn.empty() && options.line_search_fn != "strong_wolfe")
    throw Error(place, "LBFGS", "line_search_fn must be empty or \"strong_wolfe\"");
  state->params = std::move(params);
  state->options = options;
}

void LBFGS::State::clearGradients(const Location &where) const {
  for (const Parameter &parameter : params)
    if (parameter.requires_grad())
      parameter->set_grad(Tensor(), where);
}

/// The loss, and the gradients of all parameters as one vector: those of the closure's backward() if it calls that.
Tensor LBFGS::State::evaluate(const std::function<Tensor()> &closure, Tensor &gradient, const Location &where) const {
  std::vector<Tensor> earlier, values, parts;
  for (const Parameter &parameter : params)
    earlier.push_back(parameter.grad(where));
  clearGradients(where);
  EnableGrad record;
  const Tensor loss = closure();
  bool isDone = false;
  for (const Parameter &parameter : params) {
    values.push_back(parameter.value());
    parts.push_back(parameter.grad());
    isDone = isDone || parts.back().defined();
  }
  if (!isDone) {
    parts = burin::grad(loss, values, std::nullopt, {}, where);
    for (size_t i = 0; i < params.size(); ++i)
      if (earlier[i].defined())
        values[i].set_grad(earlier[i], where);
  }
  for (size_t i = 0; i < params.size(); ++i)
    parts[i] = reshape(parts[i].defined() ? parts[i] : zeros_like(values[i]), {-1});
  gradient = detach(concat(parts));
  return detach(loss);
}

/// Adds the change of the last step to the history.
void LBFGS::State::remember(const Tensor &gradient) {
  Change change{direction * length, gradient - before, 0};
  const double product = dot(change.gradient, change.step);
  if (product <= 1e-10)
    return;
  if (int64_t(changes.size()) == options.history_size)
    changes.pop_front();
  change.curvature = 1 / product;
  scale = product / dot(change.gradient, change.gradient);
  changes.push_back(change);
}

/// The two-loop recursion for the product of the approximate inverse Hessian and the gradient.
Tensor LBFGS::State::quasiNewton(const Tensor &gradient) const {
  Tensor q = -gradient;
  std::vector<double> alphas(changes.size());
  for (size_t i = changes.size(); i-- > 0;) {
    alphas[i] = dot(changes[i].step, q) * changes[i].curvature;
    q = q - changes[i].gradient * alphas[i];
  }
  q = q * scale;
  for (size_t i = 0; i < changes.size(); ++i)
    q = q + changes[i].step * (alphas[i] - dot(changes[i].gradient, q) * changes[i].curvature);
  return q;
}

std::vector<Tensor> LBFGS::State::values() const {
  std::vector<Tensor> list;
  for (const Parameter &parameter : params)
    list.push_back(detach(parameter));
  return list;
}

/// Sets the parameters to `from` plus `far` times the direction.
void LBFGS::State::moveTo(const std::vector<Tensor> &from, double far, const Location &where) {
  int64_t at = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    const int64_t count = int64_t(params[i]->numel());
    Tensor part = slice(direction, {at}, {at + count}, {1});
    params[i].set(from[i] + reshape(part, from[i].shape()) * far, where);
    at += count;
  }
}

void LBFGS::zero_grad(Location where) { state->clearGradients(where); }

Tensor LBFGS::step(const std::function<Tensor()> &closure, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  NoGrad noGrad;
  State &s = *state;
  const LbfgsOptions &o = s.options;
  Tensor gradient, first = s.evaluate(closure, gradient, place);
  if (first.isTraced())
    throw Error(place, "LBFGS", "a step looks at losses, which a trace does not know; call it outside of the trace");
  double loss = first.item();
  int64_t evaluations = 1;
  if (largest(gradient) <= o.tolerance_grad)
    return first;
  for (int64_t i = 1; i <= o.max_iter; ++i) {
    if (s.iterations++ > 0)
      s.remember(gradient);
    s.direction = s.quasiNewton(gradient);
    s.before = gradient;
    const double lossBefore = loss;
    s.length = s.iterations == 1 ? std::min(1.0, 1 / gradient.abs().sum().item()) * o.lr : o.lr;
    if (dot(gradient, s.direction) > -o.tolerance_change)
      break;
    const std::vector<Tensor> from = s.values();
    if (o.line_search_fn.empty()) {
      s.moveTo(from, s.length, place);
      if (i < o.max_iter) {
        loss = s.evaluate(closure, gradient, place).item();
        ++evaluations;
      }
    } else {
      auto evaluate = [&](double t) {
        LinePoint point{t, 0, 0, {}};
        s.moveTo(from, t, place);
        point.value = s.evaluate(closure, point.gradient, place).item();
        point.slope = dot(point.gradient, s.direction);
        return point;
      };
      int64_t searched = 0;
      LinePoint found = searchStrongWolfe(evaluate, {0, loss, dot(gradient, s.direction), gradient}, s.length,
                                          largest(s.direction), o.tolerance_change, o.max_eval - evaluations, searched);
      evaluations += searched;
      s.length = found.at;
      loss = found.value;
      gradient = found.gradient;
      s.moveTo(from, s.length, place);
    }
    if (i == o.max_iter || evaluations >= o.max_eval || largest(gradient) <= o.tolerance_grad ||
        largest(s.direction * s.length) <= o.tolerance_change || std::abs(loss - lossBefore) < o.tolerance_change)
      break;
  }
  return first;
}

// ---- state dicts

StateDict LBFGS::state_dict() const {
  NoGrad noGrad;
  const State &s = *state;
  auto number = [](double x) { return from_vector(std::vector<double>{x}, Shape{}); };
  StateDict result{{"param_groups.0.lr", number(s.options.lr)}};
  if (s.iterations == 0)
    return result;
  result.emplace_back("state.0.n_iter", from_vector(std::vector<int64_t>{s.iterations}, Shape{}));
  result.emplace_back("state.0.t", number(s.length));
  result.emplace_back("state.0.H_diag", number(s.scale));
  result.emplace_back("state.0.d", s.direction);
  result.emplace_back("state.0.prev_flat_grad", s.before);
  for (size_t i = 0; i < s.changes.size(); ++i) {
    const std::string index = std::to_string(i);
    result.emplace_back("state.0.old_dirs." + index, s.changes[i].gradient); // PyTorch's names are the other way round
    result.emplace_back("state.0.old_stps." + index, s.changes[i].step);
    result.emplace_back("state.0.ro." + index, number(s.changes[i].curvature));
  }
  return result;
}

void LBFGS::load_state_dict(const StateDict &given, Location where) {
  const Location place = inScope(where);
  NoGrad noGrad;
  int64_t size = 0;
  for (const Parameter &parameter : state->params)
    size += int64_t(parameter->numel());
  const StateDict saved = given.part("state.0.");
  auto vector = [&](const std::string &name) {
    const Tensor &value = saved.at(name, place);
    if (value.shape() != Shape{size})
      throw Error(place, "load_state_dict",
                  "the state does not fit this LBFGS: \"state.0." + name + "\" is " + str(value.spec()) +
                      ", but the parameters have " + std::to_string(size) + " elements; nothing has been changed");
    return detach(value.to(state->params[0]->device()).to(state->params[0]->dtype()));
  };
  State loaded;
  loaded.params = state->params;
  loaded.options = state->options;
  loaded.options.lr = given.at("param_groups.0.lr", place).item(place);
  if (saved.find("n_iter")) {
    loaded.iterations = saved.at("n_iter", place).item<int64_t>(place);
    loaded.length = saved.at("t", place).item(place);
    loaded.scale = saved.at("H_diag", place).item(place);
    loaded.direction = vector("d");
    loaded.before = vector("prev_flat_grad");
    for (size_t i = 0; saved.find("old_dirs." + std::to_string(i)); ++i) {
      const std::string index = std::to_string(i);
      loaded.changes.push_back(
          {vector("old_stps." + index), vector("old_dirs." + index), saved.at("ro." + index, place).item(place)});
    }
  }
  *state = std::move(loaded);
}

} // namespace burin::optim
