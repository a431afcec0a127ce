// Schedules of learning rates. Names, arguments and formulas are PyTorch's (torch.optim.lr_scheduler).
//
//   optim::CosineAnnealingLR schedule(optimizer, /*T_max=*/100);
//   for (…) { …; optimizer.step(); schedule.step(); }
//
// The step count is a Parameter, from which tensor ops compute the learning rate, so schedule.step() may be part of a
// compiled training step. A schedule is a handle: copies share its state.
#pragma once
#include "burin/training/optim.h"

namespace burin::optim {

/// The learning rate after `steps` steps, from the initial learning rate of the optimiser; all f64[].
using LrCurve = std::function<Tensor(const Tensor &steps, const Tensor &initial)>;
/// The learning rate after a step, which makes it `steps` steps, from the `present` one; all f64[].
using LrStep = std::function<Tensor(const Tensor &steps, const Tensor &initial, const Tensor &present)>;

/// Base of the schedules. The constructor sets the learning rate for step 0.
///
/// As in PyTorch, StepLR, MultiStepLR, ExponentialLR, ConstantLR, LinearLR, PolynomialLR and CosineAnnealingLR change
/// the present learning rate by the factor of their curve from the step before to this one. Several of them on one
/// optimiser multiply, and they keep what set_lr and ReduceLROnPlateau have changed. The other schedules, and those of
/// a curve, set what the curve says.
class BURIN_API LRScheduler {
public:
  /// A schedule with any curve.
  LRScheduler(const Optimizer &optimizer, LrCurve curve, Location where = Location::current());
  /// Increments the step count, and sets the learning rates of all groups.
  void step(Location where = Location::current());
  /// The step count.
  int64_t last_epoch() const;
  std::vector<double> get_last_lr() const;
  /// "last_epoch", and "_last_lr", the learning rates of the groups (f64), which load_state_dict sets.
  StateDict state_dict() const;
  void load_state_dict(const StateDict &state, Location where = Location::current());
  const LrCurve &curve() const;

protected:
  /// A curve whose steps multiply the present rate over `least`.
  struct Factor {
    LrCurve curve;
    double least = 0;
  };
  LRScheduler(const Optimizer &optimizer, const Factor &factor, Location where);
  /// `advance` is called in each step, and for step 0.
  LRScheduler(const Optimizer &optimizer, LrCurve curve, LrStep advance, Location where);
  static std::vector<LrStep> stepsOf(const std::vector<LRScheduler> &schedulers);
  /// The curves of schedules of the optimiser; throws in the name of `kind` for others.
  static std::vector<LrCurve> curvesOf(const Optimizer &optimizer, const std::vector<LRScheduler> &schedulers,
                                       const char *kind, const Location &where);
  struct State;
  std::shared_ptr<State> state;
};

/// initial · lr_lambda(steps).
class BURIN_API LambdaLR : public LRScheduler {
public:
  LambdaLR(const Optimizer &optimizer, std::function<Tensor(const Tensor &steps)> lr_lambda,
           Location where = Location::current());
};
/// Multiplies by gamma every `step_size` steps.
class BURIN_API StepLR : public LRScheduler {
public:
  StepLR(const Optimizer &optimizer, int64_t step_size, double gamma = 0.1, Location where = Location::current());
};
/// Multiplies by gamma at each of the milestones.
class BURIN_API MultiStepLR : public LRScheduler {
public:
  MultiStepLR(const Optimizer &optimizer, std::vector<int64_t> milestones, double gamma = 0.1,
              Location where = Location::current());
};
/// Multiplies by gamma every step.
class BURIN_API ExponentialLR : public LRScheduler {
public:
  ExponentialLR(const Optimizer &optimizer, double gamma, Location where = Location::current());
};
/// Multiplies by `factor` during the first `total_iters` steps.
class BURIN_API ConstantLR : public LRScheduler {
public:
  ConstantLR(const Optimizer &optimizer, double factor = 1.0 / 3, int64_t total_iters = 5,
             Location where = Location::current());
};
/// Multiplies by a factor that grows from start_factor to end_factor in `total_iters` steps: a warm-up.
class BURIN_API LinearLR : public LRScheduler {
public:
  LinearLR(const Optimizer &optimizer, double start_factor = 1.0 / 3, double end_factor = 1, int64_t total_iters = 5,
           Location where = Location::current());
};
/// Multiplies by (1 - steps / total_iters)^power.
class BURIN_API PolynomialLR : public LRScheduler {
public:
  PolynomialLR(const Optimizer &optimizer, int64_t total_iters = 5, double power = 1,
               Location where = Location::current());
};
/// Falls to eta_min in T_max steps, along half a period of a cosine; then rises again.
class BURIN_API CosineAnnealingLR : public LRScheduler {
public:
  CosineAnnealingLR(const Optimizer &optimizer, int64_t T_max, double eta_min = 0,
                    Location where = Location::current());
};
/// Falls to eta_min in T_0 steps along a cosine, then restarts, each time with T_mult times as many steps.
class BURIN_API CosineAnnealingWarmRestarts : public LRScheduler {
public:
  CosineAnnealingWarmRestarts(const Optimizer &optimizer, int64_t T_0, int64_t T_mult = 1, double eta_min = 0,
                              Location where = Location::current());
};

/// Options of OneCycleLR. `pct_start` is the fraction of the steps in which the rate rises; with `three_phase` it falls
/// for as long as it rose, and then to max_lr / div_factor / final_div_factor.
struct OneCycleOptions {
  double pct_start = 0.3;
  std::string anneal_strategy = "cos"; ///< or "linear"
  bool cycle_momentum = true;          ///< momentum (Adam: beta1) moves in the opposite direction, between the next two
  double base_momentum = 0.85, max_momentum = 0.95;
  double div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;
};
/// Rises from max_lr / div_factor to max_lr, then falls far below, in `total_steps` steps in total; a further step is
/// an error, in a compiled function of the run, and changes nothing. Source: Smith and Topin 2017.
class BURIN_API OneCycleLR : public LRScheduler {
public:
  OneCycleLR(const Optimizer &optimizer, double max_lr, int64_t total_steps, OneCycleOptions options = {},
             Location where = Location::current());
};

/// A sequence of schedules: each starts with its step 0 at its milestone, from the initial learning rate.
class BURIN_API SequentialLR : public LRScheduler {
public:
  SequentialLR(const Optimizer &optimizer, const std::vector<LRScheduler> &schedulers, std::vector<int64_t> milestones,
               Location where = Location::current());
};
/// The steps of several schedules of one optimiser, one after the other.
class BURIN_API ChainedScheduler : public LRScheduler {
public:
  explicit ChainedScheduler(const Optimizer &optimizer, const std::vector<LRScheduler> &schedulers,
                            Location where = Location::current());
};

/// Options of ReduceLROnPlateau. A metric is better if it improves by more than `threshold`, relative ("rel") or
/// absolute; after a reduction, `cooldown` steps are ignored; rates stay above min_lr and change by at least eps.
struct PlateauOptions {
  std::string mode = "min"; ///< of the metric: "min" or "max"
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  std::string threshold_mode = "rel"; ///< or "abs"
  int64_t cooldown = 0;
  double min_lr = 0, eps = 1e-8;
};
/// Multiplies by `factor` if the metric has not improved for more than `patience` steps.
class BURIN_API ReduceLROnPlateau {
public:
  explicit ReduceLROnPlateau(const Optimizer &optimizer, PlateauOptions options = {},
                             Location where = Location::current());
  /// `metric` has one element.
  void step(const Tensor &metric, Location where = Location::current());
  /// "best", "num_bad_epochs" and "cooldown_counter".
  StateDict state_dict() const;
  void load_state_dict(const StateDict &state, Location where = Location::current());

private:
  struct State;
  std::shared_ptr<State> state;
};

} // namespace burin::optim
