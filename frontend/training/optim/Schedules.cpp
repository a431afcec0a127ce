#include "burin/training/schedules.h"
#include "burin/graph/control.h"
#include "burin/tensor/indexing.h"
#include "burin/training/gradients.h"
#include "frontend/training/optim/OptimizerState.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace burin::optim {

using detail::inScope;

namespace {
Tensor f64Number(double value) { return full({}, value, DType::f64); }
/// Loads values into cells by name: all of them, or throws and changes none.
void loadCells(const StateDict &given, const std::vector<std::pair<const char *, Parameter>> &cells,
               const Location &where) {
  for (const auto &[name, cell] : cells)
    if (given.at(name, where).shape(where) != cell->shape(where))
      throw Error(where, "load_state_dict",
                  std::string(name) + " is " + str(given.at(name, where).spec(where)) + ", but must be " +
                      str(cell->spec(where)));
  for (auto [name, cell] : cells)
    cell.set(given.at(name, where).to(cell->dtype(where), where), where);
}
} // namespace

struct LRScheduler::State {
  std::shared_ptr<Optimizer::State> optimizer;
  LrCurve curve;
  LrStep advance;
  LrCurve momentum;             // may be empty
  Parameter steps;              // i64[]
  std::optional<int64_t> limit; // of the number of steps

  void apply(const Location &where) const {
    detail::observe(optimizer->structure);
    Tensor now = steps->to(DType::f64);
    for (Optimizer::State::Group &group : optimizer->groups)
      group.lr.set(advance(now, f64Number(group.initialLr), group.lr->to(DType::f64)).to(DType::f64), where);
    applyMomentum(where);
  }
  void applyMomentum(const Location &where) const {
    if (momentum)
      for (Optimizer::State::Group &group : optimizer->groups)
        group.momentum.set(momentum(steps->to(DType::f64), f64Number(group.initialMomentum)), where);
  }
};

/// Steps that set what the curve says.
static LrStep along(LrCurve curve) {
  return [curve = std::move(curve)](const Tensor &steps, const Tensor &initial, const Tensor &) {
    return curve(steps, initial);
  };
}

/// Steps by the factor of the curve, both over `least`; by the difference from where the curve is at `least`. If the
/// present rate is on the curve, the next one is exactly on it, too.
static LrStep byFactor(LrCurve curve, double least = 0) {
  return [curve = std::move(curve), least](const Tensor &steps, const Tensor &initial, const Tensor &present) {
    Tensor before = where(steps == 0.0, initial, curve(maximum(steps - 1.0, 0.0), initial)),
           after = curve(steps, initial), isLeast = before == least;
    Tensor factor = (after - least) / where(isLeast, 1.0, before - least);
    Tensor scaled = where(isLeast, present + (after - before), (present - least) * factor + least);
    return where(present == before, after, scaled);
  };
}

LRScheduler::LRScheduler(const Optimizer &optimizer, LrCurve curve, Location where)
    : LRScheduler(optimizer, curve, along(curve), where) {}

LRScheduler::LRScheduler(const Optimizer &optimizer, const Factor &factor, Location where)
    : LRScheduler(optimizer, factor.curve, byFactor(factor.curve, factor.least), where) {}

LRScheduler::LRScheduler(const Optimizer &optimizer, LrCurve curve, LrStep advance, Location where)
    : state(new State{optimizer.shared(),
                      std::move(curve),
                      std::move(advance),
                      {},
                      scalarCell("epoch", 0, DType::i64, inScope(where)),
                      {}}) {
  LocationScope scope(where);
  if (!state->curve)
    throw Error(inScope(where), "LRScheduler", "there is no curve: the function is empty");
  state->apply(inScope(where));
}

void LRScheduler::step(Location where) {
  LocationScope scope(where);
  NoGrad noGrad;
  Tensor next = state->steps + 1;
  if (state->limit)
    check(next <= *state->limit,
          "the schedule has " + std::to_string(*state->limit) +
              " steps, and all of them have been made; give it the number of steps of the whole training",
          inScope(where));
  state->steps.set(next, where);
  state->apply(inScope(where));
}

int64_t LRScheduler::last_epoch() const { return state->steps->item<int64_t>(); }
std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> rates;
  for (const auto &group : state->optimizer->groups)
    rates.push_back(group.lr->item());
  return rates;
}
const LrCurve &LRScheduler::curve() const { return state->curve; }
StateDict LRScheduler::state_dict() const {
  std::vector<Tensor> rates;
  for (const auto &group : state->optimizer->groups)
    rates.push_back(group.lr->to(DType::f64));
  return {{"last_epoch", state->steps.value()}, {"_last_lr", stack(rates, 0)}};
}
void LRScheduler::load_state_dict(const StateDict &given, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  const double last = given.at("last_epoch", place).to(DType::f64, place).mean({}, false, place).item(place);
  if (!(last >= 0 && last <= double(state->limit.value_or(std::numeric_limits<int64_t>::max()))))
    throw Error(place, "load_state_dict",
                "last_epoch is " + std::to_string(last) + ", but must " +
                    (state->limit ? "lie in [0, " + std::to_string(*state->limit) + "]" : "not be negative"));
  auto &groups = state->optimizer->groups;
  const Tensor *rates = given.find("_last_lr");
  if (rates && rates->shape(place) != Shape{int64_t(groups.size())})
    throw Error(place, "load_state_dict",
                "_last_lr is " + str(rates->spec(place)) + ", but there are " + std::to_string(groups.size()) +
                    " groups");
  loadCells(given, {{"last_epoch", state->steps}}, place);
  for (size_t i = 0; i < groups.size(); ++i)
    groups[i].lr.set(rates ? (*rates)(int64_t(i)).to(DType::f64)
                           : state->curve(state->steps->to(DType::f64), f64Number(groups[i].initialLr)).to(DType::f64),
                     place);
  state->applyMomentum(place);
}

// ---- curves

static void require(bool isGood, const char *schedule, const char *what, const Location &where) {
  if (!isGood)
    throw Error(inScope(where), schedule, what);
}

namespace {
struct Condition {
  bool holds;
  const char *text;
};
} // namespace

/// The optimiser. Throws before the schedule changes its learning rate unless all conditions hold.
static const Optimizer &checked(const Optimizer &optimizer, const char *schedule,
                                std::initializer_list<Condition> conditions, const Location &where) {
  for (const Condition &condition : conditions)
    require(condition.holds, schedule, condition.text, where);
  return optimizer;
}

LambdaLR::LambdaLR(const Optimizer &optimizer, std::function<Tensor(const Tensor &)> lr_lambda, Location where)
    : LRScheduler(
          checked(optimizer, "LambdaLR", {{lr_lambda != nullptr, "the function is empty"}}, where),
          [=](const Tensor &steps, const Tensor &initial) { return initial * lr_lambda(steps); }, where) {}

StepLR::StepLR(const Optimizer &optimizer, int64_t step_size, double gamma, Location where)
    : LRScheduler(checked(optimizer, "StepLR",
                          {{step_size > 0, "step_size must be positive"},
                           {isAmount(gamma), "gamma must be finite and not negative"}},
                          where),
                  Factor{[=](const Tensor &steps, const Tensor &initial) {
                    return initial * pow(f64Number(gamma), floor(steps / double(step_size)));
                  }},
                  where) {}

MultiStepLR::MultiStepLR(const Optimizer &optimizer, std::vector<int64_t> milestones, double gamma, Location where)
    : LRScheduler(checked(optimizer, "MultiStepLR",
                          {{std::ranges::all_of(milestones, [](int64_t m) { return m >= 0; }),
                            "milestones must not be negative"},
                           {isAmount(gamma), "gamma must be finite and not negative"}},
                          where),
                  Factor{[=](const Tensor &steps, const Tensor &initial) {
                    Tensor passed = f64Number(0);
                    for (int64_t milestone : milestones)
                      passed = passed + (steps >= double(milestone)).to(DType::f64);
                    return initial * pow(f64Number(gamma), passed);
                  }},
                  where) {}

ExponentialLR::ExponentialLR(const Optimizer &optimizer, double gamma, Location where)
    : LRScheduler(
          checked(optimizer, "ExponentialLR", {{isAmount(gamma), "gamma must be finite and not negative"}}, where),
          Factor{[=](const Tensor &steps, const Tensor &initial) { return initial * pow(f64Number(gamma), steps); }},
          where) {}

ConstantLR::ConstantLR(const Optimizer &optimizer, double factor, int64_t total_iters, Location where)
    : LRScheduler(checked(optimizer, "ConstantLR",
                          {{factor >= 0 && factor <= 1, "factor must lie in [0, 1]"},
                           {total_iters >= 0, "total_iters must not be negative"}},
                          where),
                  Factor{[=](const Tensor &steps, const Tensor &initial) {
                    return burin::where(steps < double(total_iters), initial * factor, initial);
                  }},
                  where) {}

/// steps / total, at most 1.
static Tensor partOf(const Tensor &steps, int64_t total) {
  return minimum(steps / double(std::max<int64_t>(total, 1)), 1.0);
}

LinearLR::LinearLR(const Optimizer &optimizer, double start_factor, double end_factor, int64_t total_iters,
                   Location where)
    : LRScheduler(checked(optimizer, "LinearLR",
                          {{start_factor > 0 && start_factor <= 1, "start_factor must lie in (0, 1]"},
                           {end_factor >= 0 && end_factor <= 1, "end_factor must lie in [0, 1]"},
                           {total_iters > 0, "total_iters must be positive"}},
                          where),
                  Factor{[=](const Tensor &steps, const Tensor &initial) {
                    return initial * (partOf(steps, total_iters) * (end_factor - start_factor) + start_factor);
                  }},
                  where) {}

PolynomialLR::PolynomialLR(const Optimizer &optimizer, int64_t total_iters, double power, Location where)
    : LRScheduler(checked(optimizer, "PolynomialLR",
                          {{total_iters > 0, "total_iters must be positive"},
                           {isAmount(power), "power must be finite and not negative"}},
                          where),
                  Factor{[=](const Tensor &steps, const Tensor &initial) {
                    return initial * pow(1.0 - partOf(steps, total_iters), power);
                  }},
                  where) {}

/// From `from` at part 0 to `to` at part 1.
static Tensor alongCosine(const Tensor &part, const Tensor &from, const Tensor &to) {
  return to + (from - to) * (cos(part * std::numbers::pi) + 1.0) * 0.5;
}

CosineAnnealingLR::CosineAnnealingLR(const Optimizer &optimizer, int64_t T_max, double eta_min, Location where)
    : LRScheduler(checked(optimizer, "CosineAnnealingLR",
                          {{T_max > 0, "T_max must be positive"},
                           {isAmount(eta_min), "eta_min must be finite and not negative"}},
                          where),
                  Factor{[=](const Tensor &steps, const Tensor &initial) {
                           return alongCosine(steps / double(T_max), initial, f64Number(eta_min));
                         },
                         eta_min},
                  where) {}

/// The fraction of the current period that has passed.
static Tensor partOfPeriod(const Tensor &steps, int64_t first, int64_t growth) {
  if (growth == 1)
    return remainder(steps, double(first)) / double(first);
  // The lengths of n periods add up to first · (growthⁿ - 1) / (growth - 1).
  constexpr double kRounding = 1e-10;
  Tensor periods = floor(log(steps * double(growth - 1) / double(first) + 1.0) / std::log(double(growth)) + kRounding);
  Tensor length = pow(f64Number(double(growth)), periods) * double(first);
  return (steps - (length - double(first)) / double(growth - 1)) / length;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(const Optimizer &optimizer, int64_t T_0, int64_t T_mult,
                                                         double eta_min, Location where)
    : LRScheduler(
          checked(optimizer, "CosineAnnealingWarmRestarts",
                  {{T_0 > 0 && T_mult >= 1, "T_0 must be positive and T_mult at least 1"},
                   {isAmount(eta_min), "eta_min must be finite and not negative"}},
                  where),
          [=](const Tensor &steps, const Tensor &initial) {
            return alongCosine(partOfPeriod(steps, T_0, T_mult), initial, f64Number(eta_min));
          },
          where) {}

// ---- one cycle

/// A piece of a curve: up to `end`, from one value to another.
struct Phase {
  double end, from, to;
};
static Tensor alongPhases(const Tensor &steps, const std::vector<Phase> &phases, bool isCosine) {
  Tensor result;
  double start = 0;
  for (size_t i = 0; i < phases.size(); ++i) {
    const Phase &phase = phases[i];
    Tensor part = (steps - start) / (phase.end > start ? phase.end - start : 1.0);
    Tensor value = isCosine ? alongCosine(part, f64Number(phase.from), f64Number(phase.to))
                            : part * (phase.to - phase.from) + phase.from;
    result = i ? where(steps <= start, result, value) : value;
    start = phase.end;
  }
  return result;
}

static std::vector<Phase> phasesOf(const OneCycleOptions &o, int64_t total, double low, double high, double last) {
  const double first = o.pct_start * double(total) - 1, end = double(total - 1);
  if (!o.three_phase)
    return {{first, low, high}, {end, high, last}};
  return {{first, low, high}, {2 * o.pct_start * double(total) - 2, high, low}, {end, low, last}};
}

static const Optimizer &checkedCycle(const Optimizer &optimizer, double max_lr, int64_t total_steps,
                                     const OneCycleOptions &o, const Location &where) {
  const auto &groups = optimizer.shared()->groups;
  const bool haveMomentum = std::ranges::all_of(groups, [](auto &group) { return group.momentum.defined(); });
  auto isMomentum = [](double m) { return m >= 0 && m < 1; };
  return checked(
      optimizer, "OneCycleLR",
      {{total_steps > 0, "total_steps must be positive"},
       {isAmount(max_lr), "max_lr must be finite and not negative"},
       {o.pct_start >= 0 && o.pct_start <= 1, "pct_start must lie in [0, 1]"},
       {o.anneal_strategy == "cos" || o.anneal_strategy == "linear", "anneal_strategy must be \"cos\" or \"linear\""},
       {o.div_factor > 0 && o.final_div_factor > 0, "div_factor and final_div_factor must be positive"},
       {!o.cycle_momentum || haveMomentum, "this optimiser has no momentum to cycle; set cycle_momentum to false"},
       {!o.cycle_momentum || (isMomentum(o.base_momentum) && isMomentum(o.max_momentum)),
        "base_momentum and max_momentum must lie in [0, 1)"}},
      where);
}

OneCycleLR::OneCycleLR(const Optimizer &optimizer, double max_lr, int64_t total_steps, OneCycleOptions o,
                       Location where)
    : LRScheduler(
          checkedCycle(optimizer, max_lr, total_steps, o, where),
          [=](const Tensor &steps, const Tensor &) {
            const double low = max_lr / o.div_factor;
            return alongPhases(steps, phasesOf(o, total_steps, low, max_lr, low / o.final_div_factor),
                               o.anneal_strategy == "cos");
          },
          where) {
  state->limit = total_steps;
  if (!o.cycle_momentum)
    return;
  state->momentum = [=](const Tensor &steps, const Tensor &) {
    auto phases = phasesOf(o, total_steps, o.max_momentum, o.base_momentum, o.max_momentum);
    return alongPhases(steps, phases, o.anneal_strategy == "cos");
  };
  LocationScope scope(where);
  state->apply(inScope(where));
}

// ---- combinations

std::vector<LrCurve> LRScheduler::curvesOf(const Optimizer &optimizer, const std::vector<LRScheduler> &schedulers,
                                           const char *kind, const Location &where) {
  require(!schedulers.empty(), kind, "there are no schedules", where);
  std::vector<LrCurve> curves;
  for (const LRScheduler &scheduler : schedulers) {
    require(scheduler.state->optimizer == optimizer.shared(), kind, "a schedule is of another optimiser", where);
    curves.push_back(scheduler.curve());
  }
  return curves;
}

std::vector<LrStep> LRScheduler::stepsOf(const std::vector<LRScheduler> &schedulers) {
  std::vector<LrStep> steps;
  for (const LRScheduler &scheduler : schedulers)
    steps.push_back(scheduler.state->advance);
  return steps;
}

static bool ascend(const std::vector<int64_t> &milestones) {
  return std::ranges::is_sorted(milestones) && (milestones.empty() || milestones.front() >= 0);
}

SequentialLR::SequentialLR(const Optimizer &optimizer, const std::vector<LRScheduler> &schedulers,
                           std::vector<int64_t> milestones, Location where)
    : LRScheduler(
          checked(
              optimizer, "SequentialLR",
              {{milestones.size() + 1 == schedulers.size(), "there must be one milestone between each two schedules"},
               {ascend(milestones), "milestones must ascend, and not be negative"}},
              where),
          [curves = curvesOf(optimizer, schedulers, "SequentialLR", where), milestones](const Tensor &steps,
                                                                                        const Tensor &initial) {
            Tensor rate = initial;
            for (size_t i = 0; i < curves.size() && i <= milestones.size(); ++i) {
              const double start = i ? double(milestones[i - 1]) : 0;
              rate = burin::where(steps >= start, curves[i](maximum(steps - start, 0.0), initial), rate);
            }
            return rate;
          },
          [curves = curvesOf(optimizer, schedulers, "SequentialLR", where), all = stepsOf(schedulers),
           milestones](const Tensor &steps, const Tensor &initial, const Tensor &present) {
            Tensor rate = present;
            for (size_t i = 0; i < all.size() && i <= milestones.size(); ++i) {
              const double start = i ? double(milestones[i - 1]) : 0;
              const Tensor own = maximum(steps - start, 0.0);
              Tensor next = burin::where(own == 0.0, curves[i](own, initial), all[i](own, initial, present));
              rate = burin::where(steps >= start, next, rate);
            }
            return rate;
          },
          where) {}

ChainedScheduler::ChainedScheduler(const Optimizer &optimizer, const std::vector<LRScheduler> &schedulers,
                                   Location where)
    : LRScheduler(
          optimizer,
          [curves = curvesOf(optimizer, schedulers, "ChainedScheduler", where)](const Tensor &steps,
                                                                                const Tensor &initial) {
            Tensor rate = initial;
            for (const LrCurve &curve : curves)
              rate = rate * curve(steps, f64Number(1));
            return rate;
          },
          [all = stepsOf(schedulers)](const Tensor &steps, const Tensor &initial, const Tensor &present) {
            Tensor rate = present; // in which the schedules have made their step 0
            for (const LrStep &step : all)
              rate = burin::where(steps == 0.0, rate, step(steps, initial, rate));
            return rate;
          },
          where) {}

// ---- plateau

struct ReduceLROnPlateau::State {
  std::shared_ptr<Optimizer::State> optimizer;
  PlateauOptions options;
  Parameter best, bad, cooldown; // f64[], i64[], i64[]

  std::vector<std::pair<const char *, Parameter>> cells() const {
    return {{"best", best}, {"num_bad_epochs", bad}, {"cooldown_counter", cooldown}};
  }
};

ReduceLROnPlateau::ReduceLROnPlateau(const Optimizer &optimizer, PlateauOptions options, Location where) {
  const Location place = inScope(where);
  require((options.mode == "min" || options.mode == "max") &&
              (options.threshold_mode == "rel" || options.threshold_mode == "abs"),
          "ReduceLROnPlateau", "mode must be \"min\" or \"max\", threshold_mode \"rel\" or \"abs\"", place);
  require(options.factor >= 0 && options.factor < 1, "ReduceLROnPlateau", "factor must lie in [0, 1)", place);
  require(options.patience >= 0 && options.cooldown >= 0, "ReduceLROnPlateau",
          "patience and cooldown must not be negative", place);
  require(isAmount(options.threshold) && isAmount(options.min_lr) && isAmount(options.eps), "ReduceLROnPlateau",
          "threshold, min_lr and eps must be finite and not negative", place);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double worst = options.mode == "min" ? kInfinity : -kInfinity;
  state.reset(new State{optimizer.shared(), options, scalarCell("best", worst, DType::f64, place),
                        scalarCell("bad_epochs", 0, DType::i64, place), scalarCell("cooldown", 0, DType::i64, place)});
}

void ReduceLROnPlateau::step(const Tensor &metric, Location where) {
  LocationScope scope(where);
  NoGrad noGrad;
  const Location place = inScope(where);
  const PlateauOptions &o = state->options;
  if (elements(metric.shape()) != Dim(1))
    throw Error(place, "ReduceLROnPlateau", "the metric is " + str(metric.spec()) + ", but must have one element");
  Tensor now = reshape(metric, {}).to(DType::f64), best = state->best;
  const bool isMin = o.mode == "min";
  const double sign = isMin ? -1 : 1;
  Tensor limit = o.threshold_mode == "rel" ? best * (1 + sign * o.threshold) : best + sign * o.threshold;
  Tensor isBetter = isMin ? now < limit : now > limit;
  Tensor isCooling = state->cooldown > 0;
  Tensor bad = burin::where(isBetter | isCooling, 0, state->bad + 1), isTooBad = bad > o.patience;
  state->best.set(burin::where(isBetter, now, best), place);
  state->cooldown.set(burin::where(isTooBad, o.cooldown, maximum(state->cooldown - 1, 0)), place);
  state->bad.set(burin::where(isTooBad, 0, bad), place);
  for (auto &group : state->optimizer->groups) {
    Tensor lr = group.lr, reduced = maximum(lr * o.factor, o.min_lr);
    group.lr.set(burin::where(isTooBad & (lr - reduced > o.eps), reduced, lr), place);
  }
}

StateDict ReduceLROnPlateau::state_dict() const {
  StateDict result;
  for (const auto &[name, cell] : state->cells())
    result.emplace_back(name, cell.value());
  return result;
}
void ReduceLROnPlateau::load_state_dict(const StateDict &given, Location where) {
  loadCells(given, state->cells(), inScope(where));
}

} // namespace burin::optim
