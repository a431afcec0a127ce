// Optimisers that treat parameters as matrices.
#include "burin/tensor/reductions.h"
#include "frontend/training/optim/OptimizerState.h"
#include <cmath>
#include <limits>

namespace burin::optim {

using detail::inScope;

namespace {

using Update = Optimizer::State::Update;
using Numbers = std::vector<Tensor>;

Tensor norm(const Tensor &x) { return sqrt((x * x).sum()); }

double epsilonOf(DType dtype) {
  switch (dtype) {
  case DType::f64:
    return std::numeric_limits<double>::epsilon();
  case DType::f16:
    return 0x1p-10;
  case DType::bf16:
    return 0x1p-7;
  default:
    return std::numeric_limits<float>::epsilon();
  }
}

struct AdafactorRule : Rule<AdafactorOptions> {
  AdafactorRule(const char *kind, const std::vector<ParamGroup<AdafactorOptions>> &given, const Location &where)
      : Rule(kind, {}, where) {
    for (const ParamGroup<AdafactorOptions> &group : given)
      add(group, where);
  }
  void add(const ParamGroup<AdafactorOptions> &group, const Location &where) {
    const AdafactorOptions &o = group.options;
    if (!(o.beta2_decay <= 0) || !(o.d >= 1) || !isAmount(o.eps.first.value_or(0)) || !isAmount(o.eps.second))
      throw Error(where, kind, "beta2_decay must not be positive, d must be at least 1, and both eps not negative");
    Rule::add(group, where);
  }
  /// Learning rate, weight of the new second moment, limit of the relative step.
  Numbers factors(size_t group, const Tensor &count) const override {
    Tensor lr = groups[group].lr;
    return {lr, pow(count, options[group].beta2_decay), minimum(lr, rsqrt(count))};
  }
  void update(Update &u) const override {
    const AdafactorOptions &o = options[u.group];
    const double least = o.eps.first.value_or(epsilonOf(u.value.dtype()));
    Tensor g = o.maximize ? -u.gradient : u.gradient, value = u.value;
    const double root = std::sqrt(double(value.numel()));
    Tensor rate = maximum(norm(value) / root, o.eps.second) * u.factors[2];
    if (o.weight_decay != 0)
      value = value * (1.0 - u.factors[0] * o.weight_decay);
    Tensor change = g * rsqrt(maximum(secondMoment(u, g, least), least * least));
    Tensor scale = maximum(norm(change) / (root * o.d), 1.0);
    u.set(u.member.parameter, value - change * (rate / scale));
  }
  std::vector<SlotKind> slotKinds(size_t, const Shape &parameter) const override {
    if (parameter.size() < 2)
      return {{"variance", parameter}};
    auto [row, column] = factorShapes(parameter);
    return {{"row_var", row}, {"col_var", column}};
  }

private:
  /// The shapes of the means over columns and over rows.
  static std::pair<Shape, Shape> factorShapes(const Shape &parameter) {
    Shape row = parameter, column = parameter;
    row.back() = 1;
    column[column.size() - 2] = 1;
    return {row, column};
  }
  static Tensor secondMoment(Update &u, const Tensor &g, double least) {
    Tensor square = g * g;
    auto average = [&](Parameter slot, const Tensor &now) {
      u.set(slot, slot + (now - slot) * u.factors[1]);
      return slot.value();
    };
    if (g.rank() < 2)
      return average(u.slot("variance"), square);
    auto [row, column] = factorShapes(g.shape());
    Tensor rows = average(u.slot("row_var", row), reduce_mean(square, {-1}, true));
    Tensor columns = average(u.slot("col_var", column), reduce_mean(square, {-2}, true));
    return matmul(rows, columns) / maximum(reduce_mean(rows, {-2}, true), least);
  }
};

struct MuonRule : Rule<MuonOptions> {
  MuonRule(const char *kind, const std::vector<ParamGroup<MuonOptions>> &given, const Location &where)
      : Rule(kind, {}, where) {
    for (const ParamGroup<MuonOptions> &group : given)
      add(group, where);
  }
  void add(const ParamGroup<MuonOptions> &group, const Location &where) {
    for (const Parameter &parameter : group.params)
      if (parameter.defined() && parameter->rank() != 2)
        throw Error(where, kind,
                    "a parameter is " + str(parameter->spec()) +
                        ", but must be a matrix; give it to another optimiser, such as AdamW");
    if (group.options.adjust_lr_fn != "original" && group.options.adjust_lr_fn != "match_rms_adamw")
      throw Error(where, kind, "adjust_lr_fn must be \"original\" or \"match_rms_adamw\"");
    constexpr int64_t kMostIterations = 99; // as torch.optim.Muon
    if (group.options.ns_steps < 0 || group.options.ns_steps > kMostIterations)
      throw Error(where, kind, "ns_steps must lie in [0, " + std::to_string(kMostIterations) + "]");
    Rule::add(group, where);
  }
  Numbers factors(size_t group, const Tensor &) const override { return {groups[group].lr, groups[group].momentum}; }
  void update(Update &u) const override {
    const MuonOptions &o = options[u.group];
    Parameter slot = u.slot("momentum_buffer");
    u.set(slot, slot + (u.gradient - slot) * (1.0 - u.factors[1]));
    Tensor change = o.nesterov ? u.gradient + (slot - u.gradient) * u.factors[1] : slot.value();
    const double rows = double(u.value.size(0)), columns = double(u.value.size(1));
    const double scale = o.adjust_lr_fn == "original" ? std::sqrt(std::max(1.0, rows / columns))
                                                      : 0.2 * std::sqrt(std::max(rows, columns));
    Tensor value = u.value * (1.0 - u.factors[0] * o.weight_decay);
    u.set(u.member.parameter, value - orthogonal(change, o) * (u.factors[0] * scale));
  }
  std::vector<SlotKind> slotKinds(size_t, const Shape &parameter) const override {
    return {{"momentum_buffer", parameter}};
  }
  bool needsCount() const override { return false; }

private:
  /// Makes the singular values of g close to 1.
  static Tensor orthogonal(const Tensor &g, const MuonOptions &o) {
    const bool isTall = g.size(0) > g.size(1);
    Tensor x = isTall ? g.t() : g;
    x = x / maximum(norm(x), o.eps);
    const auto [a, b, c] = o.ns_coefficients;
    for (int64_t i = 0; i < o.ns_steps; ++i) {
      Tensor gram = matmul(x, x.t());
      x = x * a + matmul(gram * b + matmul(gram, gram) * c, x);
    }
    return isTall ? x.t() : x;
  }
};

} // namespace

Adafactor::Adafactor(std::vector<ParamGroup<AdafactorOptions>> groups, Location where)
    : Optimizer(withParameters(std::make_shared<AdafactorRule>("Adafactor", groups, inScope(where)), inScope(where))) {}
void Adafactor::add_param_group(ParamGroup<AdafactorOptions> group, Location where) {
  static_cast<AdafactorRule &>(*state).add(group, inScope(where));
}
Muon::Muon(std::vector<ParamGroup<MuonOptions>> groups, Location where)
    : Optimizer(withParameters(std::make_shared<MuonRule>("Muon", groups, inScope(where)), inScope(where))) {}
void Muon::add_param_group(ParamGroup<MuonOptions> group, Location where) {
  static_cast<MuonRule &>(*state).add(group, inScope(where));
}

} // namespace burin::optim
