// The state of an optimiser, and what its rule for one parameter sees.
#pragma once
#include "burin/creation.h"
#include "burin/ops.h"
#include "burin/optim.h"
#include "frontend/eager/RowGradient.h"
#include "frontend/tensor/LocationScope.h"
#include "frontend/tensor/TensorState.h"
#include <map>

namespace burin::optim {

/// A tensor that is there, also while a trace is active: the first value of a Parameter.
Tensor initialValue(const TensorSpec &spec, double value, const Location &where);
/// A number as a Parameter that is not trained.
Parameter scalarCell(const char *name, double value, DType dtype, const Location &where);

/// Sets a cell unless `isLeftOut`, bool[] or undefined, is true.
void setUnless(const Tensor &isLeftOut, Parameter cell, const Tensor &changed);

struct Optimizer::State {
  /// A parameter, and what the optimiser keeps for it.
  struct Member {
    Parameter parameter;
    std::vector<std::pair<std::string, Parameter>> slots; // made when first used
    int counter = -1;                                     // in `counters`; -1: it has never been updated
    /// By the names of slots, "" for the parameter: memory that a step by rows has made, and may write to.
    std::map<std::string, std::weak_ptr<detail::Storage>> own = {};
  };
  struct Group {
    Parameter lr;       // f64[]
    Parameter momentum; // f64[]: SGD's momentum, Adam's beta1; undefined if the rule has none
    double initialLr, initialMomentum;
    std::vector<Member> members;
  };
  /// An update of one parameter. Everything is of the parameter's element type.
  struct Update {
    size_t group;
    Member &member;
    Tensor value, gradient;      // undefined in a step by rows
    std::vector<Tensor> factors; // what factors() has returned

    /// A slot of the parameter's shape, or of another; it begins with `initial`.
    Parameter slot(const char *name, double initial = 0) { return slot(name, member.parameter->shape(), initial); }
    Parameter slot(const char *name, const Shape &shape, double initial = 0);
    /// Sets the parameter or a slot of it, unless the step is left out.
    void set(Parameter cell, const Tensor &changed) const { setUnless(isLeftOut, cell, changed); }

    Tensor isLeftOut; // bool[]; undefined: it is not

    // ---- of a gradient by rows
    /// Different ones in ascending order, i64[n], and the sums for each. Behind them stand entries with the number of
    /// the table's rows for an index, which do not count.
    std::optional<detail::RowGradient> rows = std::nullopt;
    /// Those rows of the parameter or of a slot, and their new values.
    Tensor rowsOf(const Parameter &cell) const;
    void setRows(const std::string &name, Parameter cell, const Tensor &changed) const;
  };

  explicit State(const char *kind) : kind(kind) {}
  virtual ~State();
  /// Numbers that the updates of a group share, f64[]; `count` is the number of this step, f64[].
  virtual std::vector<Tensor> factors(size_t group, const Tensor &count) const = 0;
  virtual void update(Update &update) const = 0;
  /// Whether updateRows() can do what update() would with the whole gradient.
  virtual bool takesRows(size_t) const { return false; }
  virtual void updateRows(Update &) const {}
  /// The names of all slots that the rule may make.
  virtual std::vector<std::string> slotNames() const = 0;

  void addGroup(const std::vector<Parameter> &params, double lr, std::optional<double> momentum, const Location &where);
  /// With `isLeftOut`, bool[]: nothing changes if it is true.
  void step(const std::vector<Tensor> &gradients, const Location &where, const Tensor &isLeftOut = {});
  /// The same, where a parameter has rows, by them.
  using RowGradients = std::vector<std::optional<detail::RowGradient>>;
  void step(const std::vector<Tensor> &gradients, const RowGradients &rows, const Location &where,
            const Tensor &isLeftOut = {});

  const char *kind;
  std::vector<Group> groups;
  /// Numbers of updates, i64[]. Parameters that have always been updated together share one.
  std::vector<Parameter> counters;

private:
  void count(const std::vector<Member *> &updated, const Tensor &isLeftOut, const Location &where);
};

/// A rule with options per group.
template <class Options> struct Rule : Optimizer::State {
  std::vector<Options> options;
  Rule(const char *kind, const std::vector<ParamGroup<Options>> &given, const Location &where) : State(kind) {
    for (const ParamGroup<Options> &group : given) {
      options.push_back(group.options);
      std::optional<double> momentum;
      if constexpr (requires { group.options.momentum; })
        momentum = group.options.momentum;
      else if constexpr (requires { group.options.betas; })
        momentum = group.options.betas.first;
      double decay = 0;
      if constexpr (requires { group.options.weight_decay; })
        decay = group.options.weight_decay;
      if (!(group.options.lr >= 0) || !(decay >= 0) || (momentum && !(*momentum >= 0)))
        throw Error(where, kind, "learning rate, weight decay and momentum must not be negative");
      addGroup(group.params, group.options.lr, momentum, where);
    }
  }
};

} // namespace burin::optim
