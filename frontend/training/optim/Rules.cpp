// Rules of the elementwise optimisers. Numbers that change (learning rate, step count, momentum) are tensors in
// `factors`; constant options are C++ numbers.
#include "frontend/training/optim/OptimizerState.h"

namespace burin::optim {

using detail::inScope;

namespace {

using Update = Optimizer::State::Update;
using Numbers = std::vector<Tensor>;

/// (1 - t) · a + t · b, as torch.lerp.
template <class T> Tensor lerp(const Tensor &a, const Tensor &b, const T &t) { return a + (b - a) * t; }

/// The gradient, negated for `maximize`, plus weight decay.
template <class Options> Tensor descent(const Update &u, const Options &o) {
  Tensor g = o.maximize ? -u.gradient : u.gradient;
  return o.weight_decay != 0 ? g + u.value * o.weight_decay : g;
}

struct SgdRule : Rule<SgdOptions> {
  using Rule::Rule;
  Numbers factors(size_t group, const Tensor &count) const override {
    const SgdOptions &o = options[group];
    Tensor momentum = groups[group].momentum;
    // The first gradient is not dampened.
    return {groups[group].lr, momentum, where(count == 1.0, 1.0, 1.0 - full({}, o.dampening, DType::f64))};
  }
  void update(Update &u) const override {
    const SgdOptions &o = options[u.group];
    Tensor g = descent(u, o);
    if (o.momentum != 0) {
      Parameter slot = u.slot("momentum_buffer");
      u.set(slot, slot * u.factors[1] + (o.dampening != 0 ? g * u.factors[2] : g));
      g = o.nesterov ? g + slot * u.factors[1] : slot.value();
    }
    u.set(u.member.parameter, u.value - g * u.factors[0]);
  }
  bool takesRows(size_t group) const override {
    return options[group].momentum == 0 && options[group].weight_decay == 0;
  }
  void updateRows(Update &u) const override {
    Tensor g = options[u.group].maximize ? -u.rows->rows : u.rows->rows;
    u.setRows("", u.member.parameter, u.rowsOf(u.member.parameter) - g * u.factors[0]);
  }
  std::vector<SlotKind> slotKinds(size_t group, const Shape &parameter) const override {
    return {{"momentum_buffer", parameter, options[group].momentum != 0}};
  }
  bool needsCount() const override { return false; }
};

template <class Options, bool isDecoupled> struct AdamRule : Rule<Options> {
  using Rule<Options>::Rule;
  /// Step size, root of the second bias correction, learning rate, 1 - beta1.
  Numbers factors(size_t group, const Tensor &count) const override {
    const Options &o = this->options[group];
    Tensor lr = this->groups[group].lr, beta1 = this->groups[group].momentum;
    Tensor correction1 = 1.0 - pow(beta1, count);
    Tensor correction2 = 1.0 - pow(full({}, o.betas.second, DType::f64), count);
    return {lr / correction1, sqrt(correction2), lr, 1.0 - beta1};
  }
  void update(Update &u) const override {
    const Options &o = this->options[u.group];
    Tensor g = o.maximize ? -u.gradient : u.gradient, value = u.value;
    if (o.weight_decay != 0 && isDecoupled)
      value = value * (1.0 - u.factors[2] * o.weight_decay);
    else if (o.weight_decay != 0)
      g = g + value * o.weight_decay;
    Parameter mean = u.slot("exp_avg"), square = u.slot("exp_avg_sq");
    u.set(mean, lerp(mean, g, u.factors[3]));
    u.set(square, square * o.betas.second + g * g * (1 - o.betas.second));
    Tensor largest = square;
    if (o.amsgrad) {
      Parameter slot = u.slot("max_exp_avg_sq");
      u.set(slot, maximum(slot, largest));
      largest = slot;
    }
    u.set(u.member.parameter, value - mean / (sqrt(largest) / u.factors[1] + o.eps) * u.factors[0]);
  }
  std::vector<Optimizer::State::SlotKind> slotKinds(size_t group, const Shape &parameter) const override {
    return {
        {"exp_avg", parameter}, {"exp_avg_sq", parameter}, {"max_exp_avg_sq", parameter, this->options[group].amsgrad}};
  }
};

struct RmspropRule : Rule<RmspropOptions> {
  using Rule::Rule;
  Numbers factors(size_t group, const Tensor &) const override { return {groups[group].lr, groups[group].momentum}; }
  void update(Update &u) const override {
    const RmspropOptions &o = options[u.group];
    Tensor g = descent(u, o);
    Parameter square = u.slot("square_avg");
    u.set(square, square * o.alpha + g * g * (1 - o.alpha));
    Tensor variance = square;
    if (o.centered) {
      Parameter mean = u.slot("grad_avg");
      u.set(mean, lerp(mean, g, 1 - o.alpha));
      variance = variance - mean * mean;
    }
    g = g / (sqrt(variance) + o.eps);
    if (o.momentum > 0) {
      Parameter slot = u.slot("momentum_buffer");
      u.set(slot, slot * u.factors[1] + g);
      g = slot;
    }
    u.set(u.member.parameter, u.value - g * u.factors[0]);
  }
  std::vector<SlotKind> slotKinds(size_t group, const Shape &parameter) const override {
    return {{"square_avg", parameter},
            {"grad_avg", parameter, options[group].centered},
            {"momentum_buffer", parameter, options[group].momentum > 0}};
  }
};

struct AdagradRule : Rule<AdagradOptions> {
  using Rule::Rule;
  Numbers factors(size_t group, const Tensor &count) const override {
    return {groups[group].lr / ((count - 1.0) * options[group].lr_decay + 1.0)};
  }
  void update(Update &u) const override {
    const AdagradOptions &o = options[u.group];
    Tensor g = descent(u, o);
    Parameter sum = u.slot("sum", o.initial_accumulator_value);
    u.set(sum, sum + g * g);
    u.set(u.member.parameter, u.value - g / (sqrt(sum) + o.eps) * u.factors[0]);
  }
  bool takesRows(size_t group) const override { return options[group].weight_decay == 0; }
  void updateRows(Update &u) const override {
    const AdagradOptions &o = options[u.group];
    Tensor g = o.maximize ? -u.rows->rows : u.rows->rows;
    Parameter sum = u.slot("sum", o.initial_accumulator_value);
    Tensor squares = u.rowsOf(sum) + g * g;
    u.setRows("sum", sum, squares);
    u.setRows("", u.member.parameter, u.rowsOf(u.member.parameter) - g / (sqrt(squares) + o.eps) * u.factors[0]);
  }
  std::vector<SlotKind> slotKinds(size_t, const Shape &parameter) const override { return {{"sum", parameter}}; }
};

struct SparseAdamRule : Rule<SparseAdamOptions> {
  using Rule::Rule;
  /// Step size, 1 - beta1.
  Numbers factors(size_t group, const Tensor &count) const override {
    Tensor lr = groups[group].lr, beta1 = groups[group].momentum;
    Tensor correction2 = 1.0 - pow(full({}, options[group].betas.second, DType::f64), count);
    return {lr * sqrt(correction2) / (1.0 - pow(beta1, count)), 1.0 - beta1};
  }
  void update(Update &u) const override {
    throw Error(inScope({}), kind,
                "the gradient of the parameter " + str(u.value.spec()) +
                    " is not by rows; use it for nn::Embedding(…, {.sparse = true}), and Adam for the others");
  }
  bool takesRows(size_t) const override { return true; }
  void updateRows(Update &u) const override {
    const SparseAdamOptions &o = options[u.group];
    Tensor g = o.maximize ? -u.rows->rows : u.rows->rows;
    Parameter mean = u.slot("exp_avg"), square = u.slot("exp_avg_sq");
    Tensor first = lerp(u.rowsOf(mean), g, u.factors[1]), second = lerp(u.rowsOf(square), g * g, 1 - o.betas.second);
    u.setRows("exp_avg", mean, first);
    u.setRows("exp_avg_sq", square, second);
    u.setRows("", u.member.parameter, u.rowsOf(u.member.parameter) - first / (sqrt(second) + o.eps) * u.factors[0]);
  }
  std::vector<SlotKind> slotKinds(size_t, const Shape &parameter) const override {
    return {{"exp_avg", parameter}, {"exp_avg_sq", parameter}};
  }
};

struct LionRule : Rule<LionOptions> {
  using Rule::Rule;
  Numbers factors(size_t group, const Tensor &) const override {
    return {groups[group].lr, 1.0 - groups[group].momentum.value()};
  }
  void update(Update &u) const override {
    const LionOptions &o = options[u.group];
    Tensor g = o.maximize ? -u.gradient : u.gradient;
    Parameter mean = u.slot("exp_avg");
    Tensor direction = sign(lerp(mean, g, u.factors[1]));
    u.set(mean, lerp(mean, g, 1 - o.betas.second));
    Tensor value = o.weight_decay != 0 ? u.value * (1.0 - u.factors[0] * o.weight_decay) : u.value;
    u.set(u.member.parameter, value - direction * u.factors[0]);
  }
  std::vector<SlotKind> slotKinds(size_t, const Shape &parameter) const override { return {{"exp_avg", parameter}}; }
  bool needsCount() const override { return false; }
};

} // namespace

#define BURIN_OPTIMIZER(Name, RuleOfIt, Options)                                                                       \
  Name::Name(std::vector<ParamGroup<Options>> groups, Location where)                                                  \
      : Optimizer(withParameters(std::make_shared<RuleOfIt>(#Name, groups, inScope(where)), inScope(where))) {}        \
  void Name::add_param_group(ParamGroup<Options> group, Location where) {                                              \
    static_cast<RuleOfIt &>(*state).add(group, inScope(where));                                                        \
  }
BURIN_OPTIMIZER(SGD, SgdRule, SgdOptions)
using AdamRuleOfAdam = AdamRule<AdamOptions, false>;
using AdamRuleOfAdamW = AdamRule<AdamWOptions, true>;
BURIN_OPTIMIZER(Adam, AdamRuleOfAdam, AdamOptions)
BURIN_OPTIMIZER(AdamW, AdamRuleOfAdamW, AdamWOptions)
BURIN_OPTIMIZER(RMSprop, RmspropRule, RmspropOptions)
BURIN_OPTIMIZER(Adagrad, AdagradRule, AdagradOptions)
BURIN_OPTIMIZER(SparseAdam, SparseAdamRule, SparseAdamOptions)
BURIN_OPTIMIZER(Lion, LionRule, LionOptions)
#undef BURIN_OPTIMIZER

} // namespace burin::optim
