// The state of an optimiser, and the interface of its rule for one parameter.
#pragma once
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "burin/training/optim.h"
#include "frontend/autodiff/tape/RowGradient.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/core/Observed.h"
#include "frontend/tensor/core/TensorState.h"
#include <cmath>
#include <map>

namespace burin::optim {

/// A tensor that is there, also while a trace is active: the first value of a Parameter. It is made where `beside` is,
/// and goes where it is used.
Tensor initialValue(const TensorSpec &spec, double value, const Location &where, const Parameter *beside = nullptr);
/// A number as a Parameter that is not trained.
Parameter scalarCell(const char *name, double value, DType dtype, const Location &where);

inline bool isAmount(double x) { return x >= 0 && std::isfinite(x); }
/// Throws unless a learning rate is finite and not negative.
void requireRate(double lr, const char *kind, const Location &where);

/// Sets a cell unless `isLeftOut`, bool[] or undefined, is true.
void setUnless(const Tensor &isLeftOut, Parameter cell, const Tensor &changed);

struct Optimizer::State {
  /// A parameter and the state that the optimiser keeps for it.
  struct Member {
    Parameter parameter;
    std::vector<std::pair<std::string, Parameter>> slots; // created on first use
    int counter = -1;                                     // index in `counters`; -1: never updated
    /// By names of slots, "" for the parameter: memory that a step by rows has allocated, and may overwrite.
    std::map<std::string, std::weak_ptr<detail::Storage>> own = {};
  };
  struct Group {
    Parameter lr;       // f64[]
    Parameter momentum; // f64[]: SGD's momentum, Adam's beta1; undefined if the rule has none
    double initialLr, initialMomentum;
    std::vector<Member> members;
  };
  /// An update of one parameter. All tensors have the parameter's element type.
  struct Update {
    size_t group;
    Member &member;
    Tensor value, gradient;      // undefined in a step by rows
    std::vector<Tensor> factors; // the results of factors()

    /// A slot of the parameter's shape, or another one; its initial value is `initial`.
    Parameter slot(const char *name, double initial = 0) { return slot(name, member.parameter->shape(), initial); }
    Parameter slot(const char *name, const Shape &shape, double initial = 0);
    /// Sets the parameter or one of its slots, unless the step is skipped.
    void set(Parameter cell, const Tensor &changed) const { setUnless(isLeftOut, cell, changed); }

    Tensor isLeftOut; // bool[]: whether the step is skipped; undefined: no

    // ---- for gradients by rows
    /// Distinct rows in ascending order, i64[n], and the sum of gradients for each. Unused entries at the end have the
    /// table's number of rows as index.
    std::optional<detail::RowGradient> rows = std::nullopt;
    /// These rows of the parameter or of a slot, and their new values.
    Tensor rowsOf(const Parameter &cell) const;
    void setRows(const std::string &name, Parameter cell, const Tensor &changed) const;
  };

  explicit State(const char *kind) : kind(kind) {}
  virtual ~State();
  /// Numbers shared by the updates of a group, f64[]; `count` is the number of this step, f64[].
  virtual std::vector<Tensor> factors(size_t group, const Tensor &count) const = 0;
  virtual void update(Update &update) const = 0;
  /// Whether updateRows() has the same effect as update() with the full gradient.
  virtual bool takesRows(size_t) const { return false; }
  virtual void updateRows(Update &) const {}
  /// A slot that the rule may create for a parameter of a shape. A state to be loaded must have those that are needed.
  struct SlotKind {
    std::string name;
    Shape shape;
    bool isNeeded = true;
  };
  virtual std::vector<SlotKind> slotKinds(size_t group, const Shape &parameter) const = 0;
  /// Whether updates depend on the number of the step.
  virtual bool needsCount() const { return true; }

  void addGroup(const std::vector<Parameter> &params, double lr, std::optional<double> momentum, const Location &where);
  /// With `isLeftOut`, bool[]: nothing changes if it is true.
  void step(const std::vector<Tensor> &gradients, const Location &where, const Tensor &isLeftOut = {});
  /// The same, by rows for parameters that have them.
  using RowGradients = std::vector<std::optional<detail::RowGradient>>;
  void step(const std::vector<Tensor> &gradients, const RowGradients &rows, const Location &where,
            const Tensor &isLeftOut = {});

  const char *kind;
  std::vector<Group> groups;
  /// Its version changes when members get other slots or counters, which code compiled before does not have.
  std::shared_ptr<detail::Observed> structure = std::make_shared<detail::Observed>();
  /// Numbers of updates, i64[]. Parameters that have always been updated together share a counter.
  std::vector<Parameter> counters;

private:
  void count(const std::vector<Member *> &updated, const Tensor &isLeftOut, const Location &where);
};

/// The state of a new optimiser; throws if it has no parameters.
std::shared_ptr<Optimizer::State> withParameters(std::shared_ptr<Optimizer::State> state, const Location &where);

/// A rule with options per group.
template <class Options> struct Rule : Optimizer::State {
  std::vector<Options> options;
  Rule(const char *kind, const std::vector<ParamGroup<Options>> &given, const Location &where) : State(kind) {
    for (const ParamGroup<Options> &group : given)
      add(group, where);
  }
  /// Throws if options are out of their ranges.
  void check(const Options &o, const Location &where) const {
    auto require = [&](bool isGood, const char *what) {
      if (!isGood)
        throw Error(where, kind, what);
    };
    requireRate(o.lr, kind, where);
    if constexpr (requires { o.weight_decay; })
      require(isAmount(o.weight_decay), "weight_decay must be finite and not negative");
    if constexpr (requires { o.momentum; })
      require(isAmount(o.momentum), "momentum must be finite and not negative");
    if constexpr (requires { o.betas; })
      require(o.betas.first >= 0 && o.betas.first < 1 && o.betas.second >= 0 && o.betas.second < 1,
              "betas must lie in [0, 1)");
    if constexpr (requires { o.dampening; }) {
      require(std::isfinite(o.dampening), "dampening must be a finite number");
      require(!o.nesterov || (o.momentum > 0 && o.dampening == 0), "nesterov needs a momentum and no dampening");
    }
    if constexpr (requires { o.eps >= 0; })
      require(isAmount(o.eps), "eps must be finite and not negative");
    if constexpr (requires { o.alpha; })
      require(o.alpha >= 0 && o.alpha <= 1, "alpha must lie in [0, 1]");
    if constexpr (requires { o.rho; })
      require(o.rho >= 0 && o.rho <= 1, "rho must lie in [0, 1]");
    if constexpr (requires { o.momentum_decay; })
      require(isAmount(o.momentum_decay), "momentum_decay must be finite and not negative");
    if constexpr (requires { o.etas; })
      require(o.etas.first > 0 && o.etas.first < 1 && o.etas.second > 1 && std::isfinite(o.etas.second),
              "the first of etas must lie in (0, 1), the second must be larger than 1");
    if constexpr (requires { o.step_sizes; })
      require(isAmount(o.step_sizes.first) && o.step_sizes.first <= o.step_sizes.second,
              "step_sizes must not be negative, and the second not less than the first");
    if constexpr (requires { o.lambd; })
      require(isAmount(o.lambd) && isAmount(o.t0), "lambd and t0 must be finite and not negative");
    if constexpr (requires { o.initial_accumulator_value; })
      require(isAmount(o.lr_decay) && isAmount(o.initial_accumulator_value),
              "lr_decay and initial_accumulator_value must be finite and not negative");
  }
  void add(const ParamGroup<Options> &group, const Location &where) {
    std::optional<double> momentum;
    if constexpr (requires { group.options.momentum; })
      momentum = group.options.momentum;
    else if constexpr (requires { group.options.betas; })
      momentum = group.options.betas.first;
    check(group.options, where);
    addGroup(group.params, group.options.lr, momentum, where);
    options.push_back(group.options);
  }
};

} // namespace burin::optim
