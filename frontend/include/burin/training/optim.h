// Optimisers. Names, options, defaults and equations are PyTorch's (torch.optim), unless noted otherwise.
//
//   optim::AdamW optimizer(net.parameters(), {.lr = 3e-4});
//   Tensor loss = cross_entropy(net(x), target);
//   loss.backward();
//   optimizer.step();
//   optimizer.zero_grad();
//
// The same lines in a jitted function compile the whole step.
//
// An optimiser is a handle: copies share its state. Step counts, learning rates and moments are Parameters that are not
// trained; values that depend on them, such as Adam's bias correction and schedules, are computed from these tensors,
// never from C++ numbers.
#pragma once
#include "burin/nn/module.h"
#include <functional>
#include <memory>

namespace burin::optim {

/// Parameters with their own options.
template <class Options> struct ParamGroup {
  std::vector<Parameter> params;
  Options options = {};
};

/// Two groups of the parameters of a module with the same options, except that parameters with fewer than two
/// dimensions (biases, scales of norms) have no weight decay.
template <class Options>
std::vector<ParamGroup<Options>> decay_matrices_only(const nn::Module &module, Options options) {
  std::vector<ParamGroup<Options>> groups{{{}, options}, {{}, options}};
  groups[1].options.weight_decay = 0;
  for (const Parameter &parameter : module.parameters())
    groups[parameter->rank() < 2].params.push_back(parameter);
  return groups;
}

/// Base of the optimisers. Options that make no sense, such as a negative learning rate, and an optimiser without
/// parameters are errors.
class BURIN_API Optimizer {
public:
  /// Updates each parameter by its gradient from backward() (Tensor::grad); skips parameters without one.
  void step(Location where = Location::current());
  /// The same with given gradients, one per parameter in the order of parameters(); skips parameters without one.
  void step(const std::vector<Tensor> &gradients, Location where = Location::current());
  /// The gradients of `loss` with respect to the parameters, for step(), eagerly or in a trace; undefined for frozen
  /// ones.
  std::vector<Tensor> gradients(const Tensor &loss, Location where = Location::current()) const;
  /// Removes the gradients.
  void zero_grad(Location where = Location::current());

  /// All parameters, group by group.
  std::vector<Parameter> parameters() const;
  size_t groups() const;
  /// The learning rate of a group: f64[].
  double lr(size_t group = 0, Location where = Location::current()) const;
  void set_lr(double lr, size_t group = 0, Location where = Location::current());

  /// Moments, step counts and learning rates by PyTorch's names: "state.0.exp_avg", "state.0.step",
  /// "param_groups.0.lr".
  StateDict state_dict() const;
  /// Replaces the state; also accepts PyTorch's (see load_pth). Names that this kind of optimiser does not have, names
  /// that are missing, and shapes that differ from the parameters' are errors, and nothing is changed then. A parameter
  /// without any entry has not been updated yet.
  void load_state_dict(const StateDict &state, Location where = Location::current());

  struct State;
  const std::shared_ptr<State> &shared() const { return state; }

protected:
  explicit Optimizer(std::shared_ptr<State> state) : state(std::move(state)) {}
  std::shared_ptr<State> state;
};

// ---- optimisers. Each takes parameters and options, or groups of parameters.

/// Options of SGD. g ← gradient + weight_decay · p; b ← momentum · b + (1 - dampening) · g; p ← p - lr · b, or with
/// `nesterov` p - lr · (g + momentum · b). `maximize` negates the gradient, here and in the other optimisers.
struct SgdOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};
/// Stochastic gradient descent. Source: torch.optim.SGD.
class BURIN_API SGD : public Optimizer {
public:
  SGD(std::vector<Parameter> params, SgdOptions options, Location where = Location::current())
      : SGD({{std::move(params), options}}, where) {}
  explicit SGD(std::vector<ParamGroup<SgdOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<SgdOptions> group, Location where = Location::current());
};

/// Options of Adam. `betas` are the decay rates of the first and second moment; `eps` is added to the square root of
/// the second; `amsgrad` divides by the largest second moment so far.
struct AdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false;
};
/// Source: Kingma and Ba 2014, torch.optim.Adam. Weight decay is added to the gradient.
class BURIN_API Adam : public Optimizer {
public:
  explicit Adam(std::vector<Parameter> params, AdamOptions options = {}, Location where = Location::current())
      : Adam({{std::move(params), options}}, where) {}
  explicit Adam(std::vector<ParamGroup<AdamOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<AdamOptions> group, Location where = Location::current());
};

/// Options of AdamW: those of Adam with another default of weight_decay.
struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 1e-2;
  bool amsgrad = false, maximize = false;
};
/// Source: Loshchilov and Hutter 2017, torch.optim.AdamW. Weight decay scales the parameter.
class BURIN_API AdamW : public Optimizer {
public:
  explicit AdamW(std::vector<Parameter> params, AdamWOptions options = {}, Location where = Location::current())
      : AdamW({{std::move(params), options}}, where) {}
  explicit AdamW(std::vector<ParamGroup<AdamWOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<AdamWOptions> group, Location where = Location::current());
};

/// Options of RMSprop. `alpha` is the decay rate of the mean of squares; `centered` subtracts the square of the mean.
struct RmspropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};
/// Source: Hinton, lecture 6e, torch.optim.RMSprop.
class BURIN_API RMSprop : public Optimizer {
public:
  explicit RMSprop(std::vector<Parameter> params, RmspropOptions options = {}, Location where = Location::current())
      : RMSprop({{std::move(params), options}}, where) {}
  explicit RMSprop(std::vector<ParamGroup<RmspropOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<RmspropOptions> group, Location where = Location::current());
};

/// Options of Adagrad. The sum of squares begins with initial_accumulator_value; step t uses lr / (1 + (t - 1) ·
/// lr_decay).
struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};
/// Source: Duchi et al. 2011, torch.optim.Adagrad.
class BURIN_API Adagrad : public Optimizer {
public:
  explicit Adagrad(std::vector<Parameter> params, AdagradOptions options = {}, Location where = Location::current())
      : Adagrad({{std::move(params), options}}, where) {}
  explicit Adagrad(std::vector<ParamGroup<AdagradOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<AdagradOptions> group, Location where = Location::current());
};

struct SparseAdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  bool maximize = false;
};
/// Adam for gradients by rows (see nn::EmbeddingOptions::sparse): moments and weights of a row change only in steps
/// that have looked it up. Throws for other gradients. Source: torch.optim.SparseAdam.
class BURIN_API SparseAdam : public Optimizer {
public:
  explicit SparseAdam(std::vector<Parameter> params, SparseAdamOptions options = {},
                      Location where = Location::current())
      : SparseAdam({{std::move(params), options}}, where) {}
  explicit SparseAdam(std::vector<ParamGroup<SparseAdamOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<SparseAdamOptions> group, Location where = Location::current());
};

/// Options of Lion. The first of `betas` is the decay rate of the update whose sign is used, the second that of the
/// momentum.
struct LionOptions {
  double lr = 1e-4;
  std::pair<double, double> betas = {0.9, 0.99};
  double weight_decay = 0;
  bool maximize = false;
};
/// Source: Chen et al. 2023, algorithm 2.
class BURIN_API Lion : public Optimizer {
public:
  explicit Lion(std::vector<Parameter> params, LionOptions options = {}, Location where = Location::current())
      : Lion({{std::move(params), options}}, where) {}
  explicit Lion(std::vector<ParamGroup<LionOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<LionOptions> group, Location where = Location::current());
};

/// Options of Adadelta. `rho` is the decay rate of the means of squares, to which eps is added.
struct AdadeltaOptions {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};
/// Source: Zeiler 2012, torch.optim.Adadelta.
class BURIN_API Adadelta : public Optimizer {
public:
  explicit Adadelta(std::vector<Parameter> params, AdadeltaOptions options = {}, Location where = Location::current())
      : Adadelta({{std::move(params), options}}, where) {}
  explicit Adadelta(std::vector<ParamGroup<AdadeltaOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<AdadeltaOptions> group, Location where = Location::current());
};

/// Options of Adamax, which divides by the decayed maximum of the gradient's magnitude, plus eps.
struct AdamaxOptions {
  double lr = 2e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0;
  bool maximize = false;
};
/// Source: Kingma and Ba 2014, section 7.1, torch.optim.Adamax.
class BURIN_API Adamax : public Optimizer {
public:
  explicit Adamax(std::vector<Parameter> params, AdamaxOptions options = {}, Location where = Location::current())
      : Adamax({{std::move(params), options}}, where) {}
  explicit Adamax(std::vector<ParamGroup<AdamaxOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<AdamaxOptions> group, Location where = Location::current());
};

/// Options of NAdam. `decoupled_weight_decay` scales the parameter as AdamW does.
struct NAdamOptions {
  double lr = 2e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled_weight_decay = false, maximize = false;
};
/// Adam with Nesterov's momentum. Source: Dozat 2016, torch.optim.NAdam.
class BURIN_API NAdam : public Optimizer {
public:
  explicit NAdam(std::vector<Parameter> params, NAdamOptions options = {}, Location where = Location::current())
      : NAdam({{std::move(params), options}}, where) {}
  explicit NAdam(std::vector<ParamGroup<NAdamOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<NAdamOptions> group, Location where = Location::current());
};

/// Options of RAdam. `decoupled_weight_decay` scales the parameter as AdamW does.
struct RAdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0;
  bool decoupled_weight_decay = false, maximize = false;
};
/// Adam with a rectified variance. Source: Liu et al. 2019, torch.optim.RAdam.
class BURIN_API RAdam : public Optimizer {
public:
  explicit RAdam(std::vector<Parameter> params, RAdamOptions options = {}, Location where = Location::current())
      : RAdam({{std::move(params), options}}, where) {}
  explicit RAdam(std::vector<ParamGroup<RAdamOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<RAdamOptions> group, Location where = Location::current());
};

/// Options of Rprop. A step size shrinks by the first of `etas` when the sign of the gradient changes, else grows by
/// the second, within `step_sizes`. The first step size is lr, later changes of which have no effect.
struct RpropOptions {
  double lr = 1e-2;
  std::pair<double, double> etas = {0.5, 1.2}, step_sizes = {1e-6, 50};
  bool maximize = false;
};
/// Source: Riedmiller and Braun 1993, torch.optim.Rprop.
class BURIN_API Rprop : public Optimizer {
public:
  explicit Rprop(std::vector<Parameter> params, RpropOptions options = {}, Location where = Location::current())
      : Rprop({{std::move(params), options}}, where) {}
  explicit Rprop(std::vector<ParamGroup<RpropOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<RpropOptions> group, Location where = Location::current());
};

/// Options of ASGD. The learning rate falls as lr / (1 + lambd · lr · t)^alpha; from step t0 on, the state "ax" is the
/// mean of the parameter's values.
struct AsgdOptions {
  double lr = 1e-2, lambd = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0;
  bool maximize = false;
};
/// Source: Polyak and Juditsky 1992, torch.optim.ASGD.
class BURIN_API ASGD : public Optimizer {
public:
  explicit ASGD(std::vector<Parameter> params, AsgdOptions options = {}, Location where = Location::current())
      : ASGD({{std::move(params), options}}, where) {}
  explicit ASGD(std::vector<ParamGroup<AsgdOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<AsgdOptions> group, Location where = Location::current());
};

/// Options of Adafactor. `d` limits the root mean square of an update; `eps` are the lower bounds of squares and of the
/// root mean square of a parameter.
struct AdafactorOptions {
  double lr = 1e-2, beta2_decay = -0.8;
  /// Default of the first: the machine epsilon of the type.
  std::pair<std::optional<double>, double> eps = {std::nullopt, 1e-3};
  double d = 1, weight_decay = 0;
  bool maximize = false;
};
/// Stores second moments of matrices as products of a row and a column. Source: Shazeer and Stern 2018,
/// torch.optim.Adafactor.
class BURIN_API Adafactor : public Optimizer {
public:
  explicit Adafactor(std::vector<Parameter> params, AdafactorOptions options = {}, Location where = Location::current())
      : Adafactor({{std::move(params), options}}, where) {}
  explicit Adafactor(std::vector<ParamGroup<AdafactorOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<AdafactorOptions> group, Location where = Location::current());
};

/// Options of Muon. `adjust_lr_fn` scales lr by the shape of the matrix: by its ratio of rows to columns ("original"),
/// or so that updates have the root mean square of AdamW's ("match_rms_adamw").
struct MuonOptions {
  double lr = 1e-3, weight_decay = 0.1, momentum = 0.95;
  bool nesterov = true;
  std::array<double, 3> ns_coefficients = {3.4445, -4.7750, 2.0315};
  double eps = 1e-7;
  int64_t ns_steps = 5;
  std::string adjust_lr_fn = "original"; ///< or "match_rms_adamw"
};
/// Momentum orthogonalised by the Newton-Schulz iteration, for matrices only (use AdamW for other parameters). The
/// iteration is computed in the parameter's element type, PyTorch's in bf16. Source: Jordan 2024, torch.optim.Muon.
class BURIN_API Muon : public Optimizer {
public:
  explicit Muon(std::vector<Parameter> params, MuonOptions options = {}, Location where = Location::current())
      : Muon({{std::move(params), options}}, where) {}
  explicit Muon(std::vector<ParamGroup<MuonOptions>> groups, Location where = Location::current());
  /// Adds parameters with options of their own; schedules apply to them, too. As torch.optim.Optimizer.add_param_group.
  void add_param_group(ParamGroup<MuonOptions> group, Location where = Location::current());
};

/// Options of LBFGS. A step ends after max_iter iterations or max_eval evaluations, or when the largest gradient or
/// change is below its tolerance.
struct LbfgsOptions {
  double lr = 1;
  int64_t max_iter = 20, max_eval = -1; ///< -1: max_iter · 5 / 4
  double tolerance_grad = 1e-7, tolerance_change = 1e-9;
  int64_t history_size = 100;
  std::string line_search_fn = ""; ///< or "strong_wolfe"
};
/// Limited-memory BFGS with the step length lr, or one from a line search. Each step reads losses, and thus waits for
/// them: it cannot be traced. Source: Nocedal and Wright 2006, torch.optim.LBFGS.
class BURIN_API LBFGS {
public:
  explicit LBFGS(std::vector<Parameter> params, LbfgsOptions options = {}, Location where = Location::current());
  /// `closure` recomputes the loss, of one element. Its gradients are computed here, unless the closure calls
  /// backward(). Returns the first loss.
  Tensor step(const std::function<Tensor()> &closure, Location where = Location::current());
  /// Removes the gradients of the parameters.
  void zero_grad(Location where = Location::current());

  /// The learning rate, and after a step the direction, its length and the history, by PyTorch's names:
  /// "param_groups.0.lr", "state.0.d", "state.0.old_dirs.0".
  StateDict state_dict() const;
  /// Replaces them; also accepts PyTorch's (see load_pth). Throws, and changes nothing, if vectors do not have the size
  /// of all parameters together.
  void load_state_dict(const StateDict &state, Location where = Location::current());

private:
  struct State;
  std::shared_ptr<State> state;
};

// ---- gradients and averages

/// Scales the gradients of `params` from backward() so that their global norm is at most `max_norm`; returns the norm
/// before scaling. Source: torch.nn.utils.clip_grad_norm_.
BURIN_API Tensor clip_grad_norm_(const std::vector<Parameter> &params, double max_norm, double norm_type = 2,
                                 Location where = Location::current());
/// Clamps each element of these gradients to [-clip_value, clip_value]. Source: torch.nn.utils.clip_grad_value_.
BURIN_API void clip_grad_value_(const std::vector<Parameter> &params, double clip_value,
                                Location where = Location::current());
/// Gradients scaled so that their global norm is at most `max_norm`, and the norm before. Undefined ones stay
/// undefined.
BURIN_API std::pair<std::vector<Tensor>, Tensor> clip_by_global_norm(const std::vector<Tensor> &gradients,
                                                                     double max_norm, double norm_type = 2,
                                                                     Location where = Location::current());

/// Exponential moving averages of parameters. Source: torch.optim.swa_utils.get_ema_avg_fn.
class BURIN_API EMA {
public:
  /// Starts with the parameters' values.
  explicit EMA(const nn::Module &module, double decay = 0.999, Location where = Location::current());
  /// average = decay · average + (1 - decay) · parameter.
  void update(Location where = Location::current());
  /// The averages under the names of the parameters: load_state_dict(…, false) stores them in a module.
  StateDict state_dict() const;
  void load_state_dict(const StateDict &state, Location where = Location::current());

private:
  struct State;
  std::shared_ptr<State> state;
};

} // namespace burin::optim

namespace burin::nn::utils {
using optim::clip_grad_norm_;
using optim::clip_grad_value_;
} // namespace burin::nn::utils
