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

struct AdadeltaRule : Rule<AdadeltaOptions> {
  using Rule::Rule;
  Numbers factors(size_t group, const Tensor &) const override { return {groups[group].lr}; }
  void update(Update &u) const override {
    const AdadeltaOptions &o = options[u.group];
    Tensor g = descent(u, o);
    Parameter square = u.slot("square_avg"), changes = u.slot("acc_delta");
    u.set(square, square * o.rho + g * g * (1 - o.rho));
    Tensor change = sqrt(changes + o.eps) / sqrt(square + o.eps) * g;
    u.set(changes, changes * o.rho + change * change * (1 - o.rho));
    u.set(u.member.parameter, u.value - change * u.factors[0]);
  }
  std::vector<SlotKind> slotKinds(size_t, const Shape &parameter) const override {
    return {{"square_avg", parameter}, {"acc_delta", parameter}};
  }
  bool needsCount() const override { return false; }
};

struct AdamaxRule : Rule<AdamaxOptions> {
  using Rule::Rule;
  /// Step size, 1 - beta1.
  Numbers factors(size_t group, const Tensor &count) const override {
    Tensor beta1 = groups[group].momentum;
    return {groups[group].lr / (1.0 - pow(beta1, count)), 1.0 - beta1};
  }
  void update(Update &u) const override {
    const AdamaxOptions &o = options[u.group];
    Tensor g = descent(u, o);
    Parameter mean = u.slot("exp_avg"), largest = u.slot("exp_inf");
    u.set(mean, lerp(mean, g, u.factors[1]));
    u.set(largest, maximum(largest * o.betas.second, abs(g) + o.eps));
    u.set(u.member.parameter, u.value - mean / largest * u.factors[0]);
  }
  std::vector<SlotKind> slotKinds(size_t, const Shape &parameter) const override {
    return {{"exp_avg", parameter}, {"exp_inf", parameter}};
  }
};

/// The value and the gradient after weight decay of the kind that the options choose; `lr` is a factor.
template <class Options> std::pair<Tensor, Tensor> decayed(const Update &u, const Options &o, const Tensor &lr) {
  if (!o.decoupled_weight_decay || o.weight_decay == 0)
    return {u.value, descent(u, o)};
  return {u.value * (1.0 - lr * o.weight_decay), o.maximize ? -u.gradient : u.gradient};
}

struct NAdamRule : Rule<NAdamOptions> {
  using Rule::Rule;
  /// The momentum of step `count`.
  Tensor momentumAt(size_t group, const Tensor &count) const {
    Tensor decay = pow(full({}, 0.96, DType::f64), count * options[group].momentum_decay);
    return groups[group].momentum.value() * (1.0 - decay * 0.5);
  }
  /// Learning rate, root of the second bias correction, 1 - beta1, momentum of this step and of the next.
  Numbers factors(size_t group, const Tensor &count) const override {
    Tensor correction2 = 1.0 - pow(full({}, options[group].betas.second, DType::f64), count);
    return {groups[group].lr, sqrt(correction2), 1.0 - groups[group].momentum.value(), momentumAt(group, count),
            momentumAt(group, count + 1.0)};
  }
  void update(Update &u) const override {
    const NAdamOptions &o = options[u.group];
    const Tensor &lr = u.factors[0], &now = u.factors[3], &next = u.factors[4];
    auto [value, g] = decayed(u, o, lr);
    Parameter mean = u.slot("exp_avg"), square = u.slot("exp_avg_sq"), product = u.slot("mu_product", Shape{}, 1);
    u.set(product, product * now);
    u.set(mean, lerp(mean, g, u.factors[2]));
    u.set(square, square * o.betas.second + g * g * (1 - o.betas.second));
    Tensor root = sqrt(square) / u.factors[1] + o.eps, passed = product;
    Tensor ofGradient = lr * (1.0 - now) / (1.0 - passed), ofMean = lr * next / (1.0 - passed * next);
    u.set(u.member.parameter, value - g / root * ofGradient - mean / root * ofMean);
  }
  std::vector<SlotKind> slotKinds(size_t, const Shape &parameter) const override {
    return {{"exp_avg", parameter}, {"exp_avg_sq", parameter}, {"mu_product", {}}};
  }
};

struct RAdamRule : Rule<RAdamOptions> {
  using Rule::Rule;
  /// Learning rate, first bias correction, 1 - beta1, and the rectification, or 0 in the first steps, whose variance is
  /// too large to divide by.
  Numbers factors(size_t group, const Tensor &count) const override {
    const double beta2 = options[group].betas.second, limit = 2 / (1 - beta2) - 1;
    Tensor beta1 = groups[group].momentum, power = pow(full({}, beta2, DType::f64), count), rest = 1.0 - power;
    Tensor length = limit - count * 2.0 * power / rest; // of the moving average
    Tensor square = (length - 4.0) * (length - 2.0) * limit / (length * ((limit - 4) * (limit - 2)));
    Tensor isLong = length > 5.0;
    return {groups[group].lr, 1.0 - pow(beta1, count), 1.0 - beta1,
            where(isLong, sqrt(where(isLong, square, 1.0) * rest), 0.0)};
  }
  void update(Update &u) const override {
    const RAdamOptions &o = options[u.group];
    auto [value, g] = decayed(u, o, u.factors[0]);
    Parameter mean = u.slot("exp_avg"), square = u.slot("exp_avg_sq");
    u.set(mean, lerp(mean, g, u.factors[2]));
    u.set(square, square * o.betas.second + g * g * (1 - o.betas.second));
    Tensor scale = where(u.factors[3] > 0, u.factors[3] / (sqrt(square) + o.eps), 1);
    u.set(u.member.parameter, value - mean / u.factors[1] * u.factors[0] * scale);
  }
  std::vector<SlotKind> slotKinds(size_t, const Shape &parameter) const override {
    return {{"exp_avg", parameter}, {"exp_avg_sq", parameter}};
  }
};

struct RpropRule : Rule<RpropOptions> {
  using Rule::Rule;
  Numbers factors(size_t, const Tensor &) const override { return {}; }
  void update(Update &u) const override {
    const RpropOptions &o = options[u.group];
    Tensor g = o.maximize ? -u.gradient : u.gradient;
    Parameter before = u.slot("prev"), size = u.slot("step_size", o.lr);
    Tensor agreement = g * before, isTurn = agreement < 0;
    Tensor grown = where(isTurn, size * o.etas.first, where(agreement > 0, size * o.etas.second, size));
    u.set(size, clamp(grown, o.step_sizes.first, o.step_sizes.second));
    g = where(isTurn, 0, g);
    u.set(before, g);
    u.set(u.member.parameter, u.value - sign(g) * size);
  }
  std::vector<SlotKind> slotKinds(size_t, const Shape &parameter) const override {
    return {{"prev", parameter}, {"step_size", parameter}};
  }
  bool needsCount() const override { return false; }
};

struct AsgdRule : Rule<AsgdOptions> {
  using Rule::Rule;
  /// Learning rate, and the count of this step.
  Numbers factors(size_t group, const Tensor &count) const override { return {groups[group].lr, count}; }
  void update(Update &u) const override {
    const AsgdOptions &o = options[u.group];
    Tensor g = descent(u, o);
    Parameter rate = u.slot("eta", Shape{}, o.lr), weight = u.slot("mu", Shape{}, 1), average = u.slot("ax");
    Tensor value = u.value * (1.0 - rate * o.lambd) - g * rate, part = weight;
    u.set(average, where(part == 1, value, lerp(average, value, part)));
    u.set(rate, u.factors[0] / pow(u.factors[0] * u.factors[1] * o.lambd + 1.0, o.alpha));
    u.set(weight, 1.0 / maximum(u.factors[1] - o.t0, 1.0));
    u.set(u.member.parameter, value);
  }
  std::vector<SlotKind> slotKinds(size_t, const Shape &parameter) const override {
    return {{"eta", {}}, {"mu", {}}, {"ax", parameter}};
  }
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
BURIN_OPTIMIZER(Adadelta, AdadeltaRule, AdadeltaOptions)
BURIN_OPTIMIZER(Adamax, AdamaxRule, AdamaxOptions)
BURIN_OPTIMIZER(NAdam, NAdamRule, NAdamOptions)
BURIN_OPTIMIZER(RAdam, RAdamRule, RAdamOptions)
BURIN_OPTIMIZER(Rprop, RpropRule, RpropOptions)
BURIN_OPTIMIZER(ASGD, AsgdRule, AsgdOptions)
#undef BURIN_OPTIMIZER

} // namespace burin::optim
