// Optimisers and schedules compared with PyTorch, in f64; see make_optimizers.py.
#include "test/frontend/Check.h"
#include "test/training/Cases.h"
#include <cmath>

using namespace burin::test;
using namespace burin::optim;

namespace {

const std::map<std::string, Tensors> &cases() {
  static const auto all = loadCases("optimizers.json");
  return all;
}
std::string numbered(const std::string &name, size_t i) { return name + "." + std::to_string(i); }

std::vector<Parameter> start(size_t count = 2) {
  std::vector<Parameter> params;
  for (size_t i = 0; i < count; ++i)
    params.emplace_back(cases().at("common").at(numbered("w", i)));
  return params;
}
std::vector<Tensor> gradients(int step, size_t count) {
  std::vector<Tensor> list;
  for (size_t i = 0; i < count; ++i)
    list.push_back(cases().at("common").at(numbered(numbered("grad", size_t(step)), i)));
  return list;
}

void checkParameters(const std::vector<Parameter> &params, const std::string &name, const std::string &when) {
  for (size_t i = 0; i < params.size(); ++i)
    checkClose(params[i], cases().at(name).at(numbered(when, i)), 1e-10, name + ", parameter " + std::to_string(i));
}

ASGD averaged(const std::vector<Parameter> &params) {
  return ASGD(params, {.lr = 0.05, .lambd = 0.1, .alpha = 0.6, .t0 = 5, .weight_decay = 0.1});
}

using Make = std::function<Optimizer(std::vector<Parameter>)>;
std::map<std::string, Make> rules() {
  using P = std::vector<Parameter>;
  return {
      {"SGD", [](P p) { return SGD(p, {.lr = 0.05}); }},
      {"SGD momentum",
       [](P p) { return SGD(p, {.lr = 0.05, .momentum = 0.9, .dampening = 0.2, .weight_decay = 0.1}); }},
      {"SGD nesterov", [](P p) { return SGD(p, {.lr = 0.05, .momentum = 0.9, .nesterov = true, .maximize = true}); }},
      {"Adam", [](P p) { return Adam(p); }},
      {"Adam amsgrad",
       [](P p) {
         return Adam(p, {.lr = 0.02, .betas = {0.8, 0.95}, .eps = 1e-3, .weight_decay = 0.1, .amsgrad = true});
       }},
      {"AdamW", [](P p) { return AdamW(p, {.lr = 0.02}); }},
      {"AdamW groups",
       [](P p) {
         return AdamW({{{p[0]}, {.lr = 0.02, .weight_decay = 0.3}}, {{p[1]}, {.lr = 0.1, .weight_decay = 0}}});
       }},
      {"RMSprop", [](P p) { return RMSprop(p); }},
      {"RMSprop centered",
       [](P p) {
         return RMSprop(p, {.lr = 0.02, .alpha = 0.9, .weight_decay = 0.1, .momentum = 0.8, .centered = true});
       }},
      {"Adagrad", [](P p) { return Adagrad(p); }},
      {"Adagrad decay",
       [](P p) {
         return Adagrad(p, {.lr = 0.1, .lr_decay = 0.2, .weight_decay = 0.1, .initial_accumulator_value = 0.5});
       }},
      {"Lion", [](P p) { return Lion(p); }},
      {"Lion decay", [](P p) { return Lion(p, {.lr = 0.02, .betas = {0.8, 0.9}, .weight_decay = 0.1}); }},
      {"Adafactor", [](P p) { return Adafactor(p); }},
      {"Adafactor decay",
       [](P p) {
         return Adafactor(p, {.lr = 0.05, .beta2_decay = -0.6, .eps = {1e-6, 1e-2}, .d = 1.5, .weight_decay = 0.1});
       }},
      {"Adadelta", [](P p) { return Adadelta(p); }},
      {"Adadelta decay", [](P p) { return Adadelta(p, {.lr = 0.5, .rho = 0.8, .eps = 1e-4, .weight_decay = 0.1}); }},
      {"Adamax", [](P p) { return Adamax(p); }},
      {"Adamax decay",
       [](P p) { return Adamax(p, {.lr = 0.05, .betas = {0.8, 0.95}, .eps = 1e-3, .weight_decay = 0.1}); }},
      {"NAdam", [](P p) { return NAdam(p); }},
      {"NAdam decay",
       [](P p) {
         return NAdam(p, {.lr = 0.05,
                          .betas = {0.8, 0.95},
                          .eps = 1e-3,
                          .weight_decay = 0.1,
                          .momentum_decay = 0.02,
                          .decoupled_weight_decay = true});
       }},
      {"RAdam", [](P p) { return RAdam(p); }},
      {"RAdam decay",
       [](P p) {
         return RAdam(p, {.lr = 0.05,
                          .betas = {0.8, 0.9},
                          .eps = 1e-3,
                          .weight_decay = 0.1,
                          .decoupled_weight_decay = true,
                          .maximize = true});
       }},
      {"Rprop", [](P p) { return Rprop(p); }},
      {"Rprop sizes",
       [](P p) { return Rprop(p, {.lr = 0.05, .etas = {0.3, 1.5}, .step_sizes = {0.02, 0.2}, .maximize = true}); }},
      {"ASGD", [](P p) { return ASGD(p); }},
      {"ASGD mean", [](P p) { return averaged(p); }},
      {"Muon", [](P p) { return Muon(p); }},
      {"Muon rms",
       [](P p) {
         return Muon(p, {.lr = 0.05, .momentum = 0.8, .nesterov = false, .adjust_lr_fn = "match_rms_adamw"});
       }},
  };
}
size_t countOf(const std::string &name) { return name.starts_with("Muon") ? 1 : 2; }

/// The loss function curved() of make_optimizers.py.
Tensor curved(const Tensor &a, const Tensor &b) {
  Tensor weights = (arange(12) + 1).to(f64).reshape({3, 4});
  return (pow(a - 1.0, 2.0) * weights).sum() + pow(b, 4.0).sum() + a.sum() * b.sum() / 10.0;
}

} // namespace

TEST_CASE("20 steps of each optimiser are PyTorch's") {
  for (const auto &[name, make] : rules()) {
    std::vector<Parameter> params = start(countOf(name));
    Optimizer optimizer = make(params);
    for (int step = 0; step < 20; ++step) {
      optimizer.step(gradients(step, params.size()));
      if (step == 9)
        checkParameters(params, name, "after10");
    }
    checkParameters(params, name, "after");
  }
}

TEST_CASE("ASGD averages parameters as PyTorch does") {
  std::vector<Parameter> params = start();
  ASGD optimizer = averaged(params);
  for (int step = 0; step < 20; ++step)
    optimizer.step(gradients(step, params.size()));
  const StateDict state = optimizer.state_dict();
  for (size_t i = 0; i < params.size(); ++i)
    checkClose(state.at("state." + std::to_string(i) + ".ax"), cases().at("ASGD mean").at(numbered("average", i)),
               1e-10, "average " + std::to_string(i));
}

TEST_CASE("an optimiser goes on from its state dict") {
  for (const auto &[name, make] : rules()) {
    INFO(name);
    std::vector<Parameter> first = start(countOf(name));
    Optimizer before = make(first);
    for (int step = 0; step < 10; ++step)
      before.step(gradients(step, first.size()));
    std::vector<Parameter> second;
    for (const Parameter &parameter : first)
      second.emplace_back(detach(parameter));
    Optimizer after = make(second);
    after.load_state_dict(before.state_dict());
    for (int step = 10; step < 20; ++step)
      after.step(gradients(step, second.size()));
    checkParameters(second, name, "after");
  }
}

TEST_CASE("LBFGS is PyTorch's") {
  const std::map<std::string, LbfgsOptions> all{{"LBFGS", {.lr = 0.5, .max_iter = 4}},
                                                {"LBFGS short", {.lr = 0.1, .history_size = 2}},
                                                {"LBFGS search", {.max_iter = 3, .line_search_fn = "strong_wolfe"}}};
  for (const auto &[name, options] : all) {
    std::vector<Parameter> params = start();
    LBFGS optimizer(params, options);
    std::vector<double> losses;
    for (int step = 0; step < 20; ++step)
      losses.push_back(optimizer.step([&] { return curved(params[0], params[1]); }).item());
    checkClose(from_vector(losses), cases().at(name).at("losses"), 1e-6, name + ", losses");
    for (size_t i = 0; i < params.size(); ++i)
      checkClose(params[i], cases().at(name).at(numbered("after", i)), 1e-6, name);
  }
}

TEST_CASE("LBFGS takes the gradients of a closure that calls backward(), and leaves others alone") {
  auto train = [](bool callsBackward) {
    std::vector<Parameter> params{Parameter(tensor({3.0, -2.0})), Parameter(tensor({1.0}))};
    LBFGS optimizer(params, {.lr = 0.5, .max_iter = 5});
    params[1]->set_grad(tensor({9.0}));
    for (int i = 0; i < 2; ++i)
      optimizer.step([&] {
        if (callsBackward)
          optimizer.zero_grad();
        Tensor loss = (params[0] * params[0] * tensor({1.0, 3.0})).sum() + (params[1] - 2).pow(4).sum();
        if (callsBackward)
          loss.backward();
        return loss;
      });
    CHECK(floats(params[1].grad()) == (callsBackward ? floats(params[1].grad()) : std::vector<float>{9}));
    return floats(concat({params[0], params[1]}));
  };
  CHECK(train(true) == train(false));
}

TEST_CASE("each stored case of an optimiser is used") {
  CHECK(cases().size() == rules().size() + 3 /*LBFGS*/ + 3 /*clipping*/ + 1 /*common*/);
}

TEST_CASE("steps read the gradients that backward() has left") {
  manual_seed(3);
  nn::Linear a(4, 2), b(4, 2);
  b.load_state_dict(a.state_dict());
  Tensor x = randn({5, 4});
  Adam automatic(a.parameters()), explicitly(b.parameters());
  for (int i = 0; i < 3; ++i) {
    automatic.zero_grad();
    (a(x) * a(x)).sum().backward();
    automatic.step();
    Tensor loss = (b(x) * b(x)).sum();
    explicitly.step(grad(loss, {b.weight, b.bias}));
  }
  CHECK(largestDifference(a.weight, b.weight) == 0);
  CHECK(largestDifference(a.bias, b.bias) == 0);
  CHECK(a.weight->requires_grad());
  automatic.zero_grad();
  CHECK_FALSE(a.weight->grad().defined());
}

TEST_CASE("a compiled step with optimiser and schedule is traced once and equals the eager one") {
  using Makers = std::map<std::string, Make>;
  for (const auto &[name, make] : Makers{{"AdamW", [](auto p) { return AdamW(p, {.lr = 0.05}); }},
                                         {"SGD", [](auto p) { return SGD(p, {.lr = 0.05, .momentum = 0.9}); }},
                                         {"Adafactor", [](auto p) { return Adafactor(p); }}}) {
    INFO(name);
    auto train = [&](bool compiled) {
      manual_seed(9);
      auto net = nn::Sequential(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 3));
      net.to(f64);
      net.named_modules()[1].second.freeze();
      Optimizer optimizer = make(net.parameters());
      StepLR schedule(optimizer, 3, 0.5);
      auto step = [&](const Tensor &x, const Tensor &t) {
        Tensor loss = cross_entropy(net(x), t);
        optimizer.step(clip_by_global_norm(optimizer.gradients(loss), 1).first);
        schedule.step();
        return loss;
      };
      auto jitted = jit(step);
      std::vector<double> numbers;
      for (int i = 0; i < 12; ++i) {
        Tensor x = randn({6, 4}, f64), t = randint(0, 3, {6});
        numbers.push_back((compiled ? jitted(x, t) : step(x, t)).item());
      }
      CHECK(jitted.traces() == (compiled ? 1 : 0));
      numbers.push_back(optimizer.lr());
      for (const auto &[key, value] : optimizer.state_dict())
        numbers.push_back(value.to(f64).sum().item());
      for (const Parameter &parameter : net.parameters())
        numbers.push_back(parameter->sum().item());
      return numbers;
    };
    checkClose(from_vector(train(true)), from_vector(train(false)), 1e-10, name);
  }
}

TEST_CASE("a parameter without a gradient stays, and has a count of its own") {
  Parameter a(ones({2})), b(ones({2})), c(ones({2}));
  Adam optimizer({a, b}, {.lr = 0.1}), alone({c}, {.lr = 0.1});
  Tensor g = tensor({1.0, 0.5});
  optimizer.step({g, Tensor()});
  CHECK(floats(b) == std::vector<float>{1, 1});
  optimizer.step({g, g * 3});
  alone.step({g * 3});
  CHECK(floats(b) == floats(c)); // a first step, with its bias correction
  StateDict state = optimizer.state_dict();
  CHECK(state.at("state.0.step").item() == 2);
  CHECK(state.at("state.1.step").item() == 1);
}

TEST_CASE("clipping of gradients") {
  for (auto [name, kind] : {std::pair("clip 1", 1.0), {"clip 2", 2.0}, {"clip inf", double(INFINITY)}}) {
    auto [clipped, norm] = clip_by_global_norm(gradients(0, 2), 1.5, kind);
    checkClose(norm, cases().at(name).at("norm"), 1e-10, name);
    std::vector<Parameter> params = start();
    for (size_t i = 0; i < 2; ++i) {
      checkClose(clipped[i], cases().at(name).at(numbered("after", i)), 1e-10, name);
      params[i]->set_grad(gradients(0, 2)[i]);
    }
    checkClose(clip_grad_norm_(params, 1.5, kind), norm, 0, name);
    checkClose(params[1]->grad(), clipped[1], 0, name);
    clip_grad_value_(params, 0.01);
    CHECK(params[0]->grad().abs().max().item() <= 0.01);
  }
}

TEST_CASE("groups without weight decay, learning rates, averages") {
  auto net = nn::Sequential(nn::Linear(3, 2), nn::LayerNorm(2));
  AdamW optimizer(decay_matrices_only(net, AdamWOptions{.lr = 0.5, .weight_decay = 0.1}));
  CHECK(optimizer.groups() == 2);
  CHECK(optimizer.parameters().size() == 4);
  CHECK(optimizer.parameters()[0]->rank() == 2);
  optimizer.set_lr(0.25, 1);
  CHECK(optimizer.lr(0) == 0.5);
  CHECK(optimizer.lr(1) == 0.25);
  EMA average(net, 0.75);
  Tensor before = net.state_dict().at("0.weight");
  optimizer.step({ones({2, 3}), Tensor(), Tensor(), Tensor()});
  average.update();
  CHECK(largestDifference(average.state_dict().at("0.weight"), before * 0.75 + net.state_dict().at("0.weight") * 0.25) <
        1e-6);
  net.load_state_dict(average.state_dict(), false);
}

namespace {

using MakeSchedule = std::function<LRScheduler(const Optimizer &)>;
std::map<std::string, MakeSchedule> schedules() {
  using O = const Optimizer &;
  return {
      {"StepLR", [](O o) { return StepLR(o, 7, 0.5); }},
      {"MultiStepLR", [](O o) { return MultiStepLR(o, {3, 3, 20}, 0.3); }},
      {"ExponentialLR", [](O o) { return ExponentialLR(o, 0.93); }},
      {"ConstantLR", [](O o) { return ConstantLR(o); }},
      {"LinearLR", [](O o) { return LinearLR(o, 0.2, 0.9, 13); }},
      {"PolynomialLR", [](O o) { return PolynomialLR(o, 30, 1.7); }},
      {"CosineAnnealingLR", [](O o) { return CosineAnnealingLR(o, 16, 0.05); }},
      {"CosineAnnealingWarmRestarts", [](O o) { return CosineAnnealingWarmRestarts(o, 6, 1, 0.01); }},
      {"CosineAnnealingWarmRestarts growing", [](O o) { return CosineAnnealingWarmRestarts(o, 5, 2); }},
      {"OneCycleLR cycle", [](O o) { return OneCycleLR(o, 2.0, 45); }},
      {"OneCycleLR cycle three",
       [](O o) {
         return OneCycleLR(o, 2.0, 45, {.pct_start = 0.25, .anneal_strategy = "linear", .three_phase = true});
       }},
      {"LambdaLR", [](O o) { return LambdaLR(o, [](const Tensor &e) { return 1.0 / (e + 1.0); }); }},
      {"SequentialLR",
       [](O o) {
         return SequentialLR(o, {LinearLR(o, 0.1, 1, 5), CosineAnnealingLR(o, 30), ConstantLR(o, 0.01, 1000)}, {5, 32});
       }},
      {"ChainedScheduler linear",
       [](O o) { return ChainedScheduler(o, {LinearLR(o, 0.2, 0.9, 13), CosineAnnealingLR(o, 16, 0.05)}); }},
      {"ChainedScheduler", [](O o) { return ChainedScheduler(o, {ConstantLR(o, 0.1, 4), ExponentialLR(o, 0.9)}); }}};
}

/// Schedules that step together with another one.
std::map<std::string, MakeSchedule> chains() {
  using O = const Optimizer &;
  return {{"StepLR", [](O o) { return StepLR(o, 3, 0.5); }},
          {"MultiStepLR", [](O o) { return MultiStepLR(o, {3, 3, 7}, 0.3); }},
          {"ExponentialLR", [](O o) { return ExponentialLR(o, 0.93); }},
          {"ConstantLR", [](O o) { return ConstantLR(o); }},
          {"LinearLR", [](O o) { return LinearLR(o, 0.2, 0.9, 6); }},
          {"PolynomialLR", [](O o) { return PolynomialLR(o, 8, 1.7); }},
          {"CosineAnnealingLR", [](O o) { return CosineAnnealingLR(o, 5, 0.05); }},
          {"LambdaLR", [](O o) { return LambdaLR(o, [](const Tensor &e) { return 1.0 / (e + 1.0); }); }},
          {"CosineAnnealingWarmRestarts", [](O o) { return CosineAnnealingWarmRestarts(o, 4, 1, 0.01); }},
          {"SequentialLR", [](O o) { return SequentialLR(o, {LinearLR(o, 0.1, 1, 3), ExponentialLR(o, 0.8)}, {4}); }}};
}

void checkRates(const std::string &name, const Tensors &expected, const std::function<void(int)> &step,
                const Optimizer &optimizer) {
  std::vector<double> rates, momenta;
  for (int i = 0; i < 40; ++i) {
    rates.push_back(optimizer.lr());
    momenta.push_back(optimizer.state_dict().back().second.item());
    step(i);
  }
  checkClose(from_vector(rates), expected.at("lr"), 1e-11, name);
  if (const Tensor *momentum = expected.find("momentum"))
    checkClose(from_vector(momenta), *momentum, 1e-11, name + ", momentum");
}

} // namespace

TEST_CASE("40 steps of each schedule are PyTorch's") {
  const auto expected = loadCases("schedules.json");
  CHECK(expected.size() == schedules().size() + chains().size() + 2 /*on plateau*/ + 1 /*their metrics*/);
  for (const auto &[name, make] : schedules()) {
    std::vector<Parameter> params{Parameter(zeros({1}))};
    Optimizer optimizer = name == "OneCycleLR cycle three" ? Optimizer(Adam(params))
                                                           : Optimizer(SGD(params, {.lr = 0.8, .momentum = 0.9}));
    LRScheduler schedule = make(optimizer);
    checkRates(name, expected.at(name), [&](int) { schedule.step(); }, optimizer);
    CHECK(schedule.last_epoch() == 40);
    LRScheduler other = make(optimizer);
    other.load_state_dict(schedule.state_dict());
    CHECK(other.get_last_lr() == schedule.get_last_lr());
  }
  const std::vector<double> metric = values<double>(expected.at("plateau").at("metric"));
  for (std::string name : {"ReduceLROnPlateau", "ReduceLROnPlateau max"}) {
    SGD optimizer({Parameter(zeros({1}))}, {.lr = 0.8, .momentum = 0.9});
    PlateauOptions options{.factor = 0.5, .patience = 2, .cooldown = 1};
    if (name.ends_with("max"))
      options = {.mode = "max", .patience = 1, .threshold = 0.1, .threshold_mode = "abs", .min_lr = 0.01};
    ReduceLROnPlateau schedule(optimizer, options);
    checkRates(name, expected.at(name), [&](int i) { schedule.step(full({}, metric[size_t(i)], f64)); }, optimizer);
  }
}

TEST_CASE("schedules of one optimiser multiply, and keep rates that are set, as PyTorch's") {
  const auto expected = loadCases("schedules.json");
  const bool isJitted = GENERATE(false, true);
  for (const auto &[name, make] : chains()) {
    SGD optimizer({Parameter(zeros({1}))}, {.lr = 0.8});
    LRScheduler schedule = make(optimizer);
    ExponentialLR other(optimizer, 0.9);
    auto both = [&](const Tensor &x) {
      schedule.step();
      other.step();
      return x;
    };
    auto compiled = jit(both);
    std::vector<double> rates;
    for (int i = 0; i < 12; ++i) {
      rates.push_back(optimizer.lr());
      if (i == 5)
        optimizer.set_lr(0.5);
      isJitted ? compiled(ones({1})) : both(ones({1}));
    }
    checkClose(from_vector(rates), expected.at("chain " + name).at("lr"), 1e-11, name);
    if (isJitted)
      CHECK(compiled.traces() == 1);
  }
}

TEST_CASE("a loaded schedule has the rates that the saved one had set, with or without its optimiser's state") {
  auto run = [](SGD &optimizer, StepLR &step, ExponentialLR &decay, int count) {
    for (int i = 0; i < count; ++i) {
      step.step();
      decay.step();
    }
    return optimizer.lr();
  };
  SGD first({Parameter(zeros({1}))}, {.lr = 0.8}), second({Parameter(zeros({1}))}, {.lr = 0.8});
  StepLR a(first, 3), c(second, 3);
  ExponentialLR b(first, 0.9), d(second, 0.9);
  first.set_lr(0.5);
  run(first, a, b, 4);
  c.load_state_dict(a.state_dict());
  d.load_state_dict(b.state_dict());
  CHECK(second.lr() == first.lr());
  CHECK(run(second, c, d, 5) == run(first, a, b, 5));
  // States without rates, as of earlier versions, set what the curve says.
  a.load_state_dict({{"last_epoch", Tensor(int64_t(3))}});
  CHECK(first.lr() == Approx(0.08));
  CHECK_ERROR(a.load_state_dict({{"last_epoch", Tensor(int64_t(3))}, {"_last_lr", ones({2})}}), "_last_lr is f32[2]",
              "1 groups");
}

TEST_CASE("optimisers refuse what does not fit") {
  Parameter w(ones({2, 3}));
  Adam adam({w});
  CHECK_ERROR(adam.step({ones({2})}), "Adam", "f32[2]", "f32[2, 3]");
  CHECK_ERROR(adam.step(std::vector<Tensor>()), "0 gradients", "1 parameters");
  CHECK_ERROR(SGD({w}, {.lr = -1}), "SGD", "negative");
  CHECK_ERROR(SGD({Parameter(zeros({2}, i64))}, SgdOptions{}), "integers");
  CHECK_ERROR(Muon({Parameter(ones({2}))}), "matrix");
  CHECK_ERROR(LBFGS({}), "no parameters");
  CHECK_ERROR(StepLR(adam, 0), "step_size");
  CHECK_ERROR(OneCycleLR(Adagrad({w}), 1, 10), "cycle_momentum");
  CHECK_ERROR(SequentialLR(adam, {StepLR(adam, 2)}, {3}), "milestone");
  adam.step({ones({2, 3})});
  StateDict state = adam.state_dict();
  state.emplace_back("state.1.exp_avg", ones({2, 3}));
  CHECK_ERROR(adam.load_state_dict(state), "no parameter for \"state.1.exp_avg\"", "nothing has been changed");
  CHECK_ERROR(adam.load_state_dict({{"state.0.momentum_buffer", ones({2, 3})}}), "momentum_buffer");
  CHECK_ERROR(adam.load_state_dict({{"state.0.exp_avg", ones({3})}}), "f32[3]", "f32[2, 3]");
  CHECK(adam.state_dict().at("state.0.step").item() == 1);
}
