// Options that make no sense are refused where a layer, loss, optimiser or schedule is made, and values out of their
// ranges where a step meets them. Nothing is changed then.
#include "test/frontend/Check.h"
#include <limits>

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

} // namespace

// ---- layers

TEST_CASE("convolutions and pools refuse impossible options") {
  CHECK_ERROR(nn::Conv2d(4, 4, 0), "Conv2d", "kernel is 0");
  CHECK_ERROR(nn::Conv2d(0, 4, 1), "channels is 0");
  CHECK_ERROR(nn::Conv2d(4, 4, 3, {.stride = 0}), "stride is 0");
  CHECK_ERROR(nn::Conv2d(4, 4, 3, {.stride = {1, 1, 1}}), "stride takes one number or 2, not 3");
  CHECK_ERROR(nn::Conv2d(4, 4, 3, {.padding = -1}), "padding is -1");
  CHECK_ERROR(nn::Conv2d(4, 4, 3, {.dilation = 0}), "dilation is 0");
  CHECK_ERROR(nn::Conv2d(4, 4, 3, {.groups = 3}), "3 groups do not divide 4 channels");
  CHECK_ERROR(nn::ConvTranspose1d(4, 4, 3, {.stride = -1}), "ConvTranspose1d", "stride is -1");
  CHECK_ERROR(nn::ConvTranspose1d(4, 4, 3, {.output_padding = 1}), "output_padding 1 must be below the stride 1");
  CHECK_ERROR(nn::ConvTranspose1d(4, 4, 3, {.output_padding = -1}), "output_padding is -1");
  CHECK_ERROR(nn::MaxPool2d(0), "MaxPool2d", "kernel is 0");
  CHECK_ERROR(nn::MaxPool2d(2, {.padding = 2}), "smaller than the window of 2");
  CHECK_ERROR(nn::MaxPool2d({2, 3}, {.padding = {1, 3}}), "padding 3", "window of 3");
  CHECK_ERROR(nn::AvgPool3d(2, {.stride = 0}), "AvgPool3d", "stride is 0");
  CHECK_ERROR(nn::AvgPool3d(2, {.padding = -1}), "padding is -1");
  CHECK_ERROR(nn::AdaptiveAvgPool2d(0), "output is 0");
  CHECK_ERROR(nn::AdaptiveMaxPool1d(-1), "output is -1");
  // What is allowed stays so.
  CHECK(nn::MaxPool2d(2, {.padding = 1, .dilation = 2})(ones({1, 1, 4, 4})).shape() == Shape{1, 1, 2, 2});
  CHECK(nn::ConvTranspose1d(1, 1, 3, {.stride = 2, .output_padding = 1})(ones({1, 1, 4})).size(2) == Dim(10));
}

TEST_CASE("norms, attention and recurrent layers refuse impossible options") {
  CHECK_ERROR(nn::BatchNorm2d(0), "features is 0");
  CHECK_ERROR(nn::BatchNorm2d(4, {.eps = -1}), "eps is -1");
  CHECK_ERROR(nn::BatchNorm2d(4, {.momentum = 2}), "momentum is 2", "[0, 1]");
  CHECK_ERROR(nn::BatchNorm2d(4, {.momentum = kNaN}), "momentum is nan");
  CHECK_ERROR(nn::InstanceNorm2d(4, {.eps = kNaN}), "eps is nan");
  CHECK_ERROR(nn::InstanceNorm2d(3)(ones({2, 4, 3, 3})), "4 channels", "made for 3");
  CHECK_ERROR(nn::InstanceNorm2d(4)(ones({2, 4, 1, 1})), "one element per channel");
  CHECK_ERROR(nn::LayerNorm(nn::IntList({})), "at least one dimension");
  CHECK_ERROR(nn::LayerNorm(4, -1), "eps");
  CHECK_ERROR(nn::RMSNorm(0), "a size is 0");
  CHECK_ERROR(nn::GroupNorm(2, 4, kInfinity), "eps is inf");
  CHECK_ERROR(nn::MultiheadAttention(8, 2, {.dropout = 1.5}), "probability");
  CHECK_ERROR(nn::MultiheadAttention(0, 2), "the size is 0");
  CHECK_ERROR(nn::MultiheadAttention(8, 2)(ones({8})), "f32[8]", "[..., L, 8]");
  CHECK_ERROR(nn::MultiheadAttention(8, 2)(ones({3, 7})), "f32[3, 7]", "[..., L, 8]");
  CHECK_ERROR(nn::TransformerEncoder(nullptr, 2), "no function");
  CHECK_ERROR(nn::TransformerEncoder([] { return nn::TransformerEncoderLayer(8, 2); }, -1), "layers is -1");
  CHECK_ERROR(nn::RNN(0, 2), "input_size is 0");
  CHECK_ERROR(nn::LSTMCell(2, 0), "hidden_size is 0");
  CHECK_ERROR(nn::LSTM(2, 2, {.num_layers = 0}), "num_layers is 0");
}

TEST_CASE("other layers refuse impossible options") {
  CHECK_ERROR(nn::Embedding(0, 2), "rows is 0");
  CHECK_ERROR(nn::EmbeddingBag(2, -1), "size is -1");
  CHECK_ERROR(nn::PReLU(0), "num_parameters is 0");
  CHECK_ERROR(nn::GELU("erf"), "\"erf\"", "\"tanh\"");
  CHECK_ERROR(nn::Softplus(0), "beta");
  CHECK_ERROR(nn::LeakyReLU{kNaN}, "negative_slope is NaN");
  CHECK_ERROR(nn::CELU{kNaN}, "alpha");
  CHECK_ERROR(nn::Upsample({}), "either size or scale_factor");
  CHECK_ERROR(nn::Upsample({.size = 3, .scale_factor = {2}}), "either size or scale_factor");
  CHECK_ERROR(nn::Upsample({.size = 0}), "size of the result is 0");
  CHECK_ERROR(nn::Upsample({.scale_factor = {-1}}), "scale_factor is -1");
  CHECK_ERROR(nn::Upsample({.scale_factor = {2}, .mode = "cubic"}), "\"cubic\"");
  CHECK_ERROR(interpolate(ones({1, 1, 4}), {.scale_factor = {1e18}}), "a size of 4000000000000000000");
  CHECK_ERROR(nn::PixelShuffle(0), "upscale_factor is 0");
  CHECK_ERROR(nn::PixelUnshuffle(-2), "downscale_factor is -2");
  CHECK_ERROR(nn::Linear(2, 2).to(i64), "floats", "i64");
  nn::ModuleList<nn::Linear> list;
  list.push_back(nn::Linear(1, 1));
  CHECK(contains(messageOf([&] { list[1]; }), "there is no module 1 among 1"));
}

TEST_CASE("lengths and offsets out of their ranges make a run fail, eagerly and compiled") {
  nn::LSTM lstm(2, 3);
  nn::EmbeddingBag bag(5, 2);
  auto outputs = [&](const Tensor &lengths) {
    return std::get<0>(lstm(ones({3, 2, 2}), std::nullopt, std::nullopt, lengths));
  };
  auto bags = [&](const Tensor &offsets) { return bag.forward(tensor({0, 1, 4, 2}), offsets); };
  auto jittedOutputs = jit(outputs);
  auto jittedBags = jit(bags);
  for (const Tensor &lengths : {tensor({1, 4}), tensor({0, 3}), tensor({-1, 3})}) {
    CHECK(contains(messageOf([&] { floats(outputs(lengths)); }), "between 1 and the 3 steps"));
    CHECK(contains(messageOf([&] { floats(jittedOutputs(lengths)); }), "between 1 and the 3 steps"));
  }
  CHECK(floats(outputs(tensor({1, 3}))) == floats(jittedOutputs(tensor({1, 3}))));
  for (const Tensor &offsets : {tensor({1, 2}), tensor({0, 5}), tensor({0, -1})}) {
    CHECK(contains(messageOf([&] { floats(bags(offsets)); }), "offsets must begin with 0"));
    CHECK(contains(messageOf([&] { floats(jittedBags(offsets)); }), "offsets must begin with 0"));
  }
  CHECK_ERROR(bag.forward(tensor({0, 1, 4, 2}), tensor({0.f, 2.f})), "must be integers");
  CHECK(floats(bags(tensor({0, 4}))) == floats(jittedBags(tensor({0, 4})))); // the second bag is empty
}

// ---- losses and metrics

TEST_CASE("losses refuse values out of their ranges, eagerly and compiled") {
  const Tensor y = tensor({0.f, 0.5f, 1.f}), bad = tensor({0.f, 0.5f, 1.5f});
  auto loss = [](const Tensor &x, const Tensor &target) { return binary_cross_entropy(x, target); };
  auto jitted = jit(loss);
  CHECK(loss(y, y).item() == jitted(y, y).item());
  const Tensor nan = tensor({0.f, float(kNaN), 1.f});
  for (auto &[x, target] : std::vector<std::pair<Tensor, Tensor>>{{bad, y}, {y, bad}, {-y, y}, {nan, y}}) {
    CHECK(contains(messageOf([&] { loss(x, target).item(); }), "must lie in [0, 1]"));
    CHECK(contains(messageOf([&] { jitted(x, target).item(); }), "must lie in [0, 1]"));
  }
  const Tensor logs = log_softmax(randn({6, 2, 5})), labels = tensor({{1, 2}, {3, 4}});
  auto ctc = jit([&](const Tensor &inputs, const Tensor &targets) { return ctc_loss(logs, labels, inputs, targets); });
  const Tensor six = tensor({6, 6}), two = tensor({2, 2});
  CHECK(ctc(six, two).item() == Approx(ctc_loss(logs, labels, six, two).item()));
  CHECK(contains(messageOf([&] { ctc(tensor({6, 7}), two).item(); }), "input_lengths does not lie in [0, 6]"));
  CHECK(contains(messageOf([&] { ctc(six, tensor({3, 2})).item(); }), "target_lengths does not lie in [0, 2]"));
  CHECK_ERROR(cosine_embedding_loss(ones({2, 2}), ones({2, 2}), ones({2}), kNaN), "margin is NaN");
  CHECK_ERROR(triplet_margin_loss(ones({2, 2}), ones({2, 2}), ones({2, 2}), {.eps = kNaN}), "eps a number");
}

TEST_CASE("metrics refuse what they cannot count") {
  CHECK_ERROR(accuracy(zeros({0, 3}), zeros({0}, i64)), "empty batch");
  CHECK(contains(messageOf([&] { ints(confusion_matrix(tensor({0, 3}), tensor({0, 1}), 3)); }), "in [0, 3)"));
  CHECK(contains(messageOf([&] { ints(confusion_matrix(tensor({0, 1}), tensor({0, -1}), 3)); }), "in [0, 3)"));
  Mean mean;
  CHECK_ERROR(mean.add(ones({2})), "f32[2]");
  CHECK_ERROR(mean.add(ones({}), -1), "-1");
  CHECK_ERROR(gradcheck([](const auto &x) { return x; }, {ones({2}, f64)}, {.atol = kNaN}), "tolerances");
  Tensor x = ones({2}).requires_grad_();
  CHECK_ERROR(grad(ones({3}), {x}), "f32[3]", "sum it first"); // also of a value that nothing flows to
}

// ---- optimisers

TEST_CASE("optimisers without parameters are refused") {
  const std::vector<Parameter> none;
  CHECK_ERROR(optim::SGD(none, {}), "SGD", "no parameters");
  CHECK_ERROR(optim::Adam(none, {}), "Adam", "no parameters");
  CHECK_ERROR(optim::Adafactor(none, {}), "no parameters");
  CHECK_ERROR(optim::Muon(none, {}), "no parameters");
  CHECK_ERROR(optim::SGD(std::vector<optim::ParamGroup<optim::SgdOptions>>{}), "no parameters");
  const auto groups = optim::decay_matrices_only(nn::ReLU(), optim::AdamWOptions());
  CHECK_ERROR(optim::AdamW(groups, Location::current()), "no parameters");
  // One of two groups may be empty.
  CHECK(optim::AdamW(optim::decay_matrices_only(nn::Linear(2, 2, {.bias = false}), optim::AdamWOptions())).groups() ==
        2);
}

TEST_CASE("optimisers refuse more options that make no sense") {
  const std::vector<Parameter> params{Parameter(ones({2, 2}))};
  CHECK_ERROR(optim::SGD(params, {.lr = kInfinity}), "learning rate is inf");
  CHECK_ERROR(optim::SGD(params, {.momentum = 0.9, .dampening = kNaN}), "dampening");
  CHECK_ERROR(optim::RMSprop(params, {.alpha = 2}), "alpha", "[0, 1]");
  CHECK_ERROR(optim::Adagrad(params, {.lr_decay = -1}), "lr_decay");
  CHECK_ERROR(optim::Adadelta(params, {.rho = 1.5}), "rho must lie in [0, 1]");
  CHECK_ERROR(optim::Adamax(params, {.betas = {1, 0.9}}), "betas");
  CHECK_ERROR(optim::NAdam(params, {.momentum_decay = -1}), "momentum_decay");
  CHECK_ERROR(optim::RAdam(params, {.eps = -1}), "eps");
  CHECK_ERROR(optim::Rprop(params, {.etas = {0.5, 0.9}}), "etas");
  CHECK_ERROR(optim::Rprop(params, {.step_sizes = {1, 0.1}}), "step_sizes");
  CHECK_ERROR(optim::ASGD(params, {.lambd = -1}), "lambd");
  CHECK_ERROR(optim::Adagrad(params, {.initial_accumulator_value = kNaN}), "initial_accumulator_value");
  CHECK_ERROR(optim::Adafactor(params, {.beta2_decay = 1}), "beta2_decay");
  CHECK_ERROR(optim::Adafactor(params, {.d = 0.5}), "d must be at least 1");
  CHECK_ERROR(optim::Muon(params, {.ns_steps = 100}), "ns_steps");
  CHECK_ERROR(optim::LBFGS(params, {.lr = -1}), "learning rate is -1");
  CHECK_ERROR(optim::LBFGS(params, {.max_iter = 0}), "max_iter");
  CHECK_ERROR(optim::LBFGS({params[0], params[0]}), "twice");
  CHECK_ERROR(optim::LBFGS({Parameter(ones({2}, i64))}), "integers");
  optim::Adam adam(params);
  CHECK_ERROR(adam.set_lr(-1), "learning rate is -1");
  CHECK_ERROR(adam.set_lr(kNaN), "learning rate is nan");
  CHECK_ERROR(adam.lr(1), "no group 1 among 1");
  CHECK(adam.lr() == 1e-3);
  CHECK_ERROR(optim::clip_by_global_norm({ones({2}, i64)}, 1), "i64[2]");
}

TEST_CASE("optimiser states that are incomplete are refused, and nothing is changed") {
  Parameter w(ones({2, 2}));
  optim::Adam adam({w}, {.lr = 0.5});
  adam.step({ones({2, 2})});
  const StateDict good = adam.state_dict();
  auto changed = [&](const std::string &name, const Tensor &value) { // undefined: without the entry
    StateDict state;
    for (const auto &entry : good)
      if (entry.first != name)
        state.push_back(entry);
    if (value.defined())
      state.emplace_back(name, value);
    return state;
  };
  CHECK_ERROR(adam.load_state_dict({}), "there is no \"param_groups.0.lr\"", "nothing has been changed");
  CHECK_ERROR(adam.load_state_dict(changed("state.0.exp_avg", {})), "there is no \"state.0.exp_avg\"");
  CHECK_ERROR(adam.load_state_dict(changed("state.0.exp_avg_sq", {})), "there is no \"state.0.exp_avg_sq\"");
  CHECK_ERROR(adam.load_state_dict(changed("state.0.step", {})), "there is no \"state.0.step\"");
  CHECK_ERROR(adam.load_state_dict(changed("state.0.step", Tensor(-1.0))), "no number of steps");
  CHECK_ERROR(adam.load_state_dict(changed("state.0.step", Tensor(kNaN))), "no number of steps");
  CHECK_ERROR(adam.load_state_dict(changed("state.0.exp_avg", zeros({4}))), "f32[4]", "f32[2, 2]");
  CHECK_ERROR(adam.load_state_dict(changed("state.0.exp_avg", zeros({2, 2}, i64))), "i64[2, 2]");
  CHECK_ERROR(adam.load_state_dict(changed("param_groups.0.lr", Tensor(kNaN))), "learning rate is nan");
  CHECK_ERROR(adam.load_state_dict(changed("param_groups.0.lr", ones({2}))), "must be a number");
  const StateDict after = adam.state_dict();
  REQUIRE(after.size() == good.size());
  for (size_t i = 0; i < good.size(); ++i)
    CHECK(floats(after[i].second.to(f32)) == floats(good[i].second.to(f32)));
  // A parameter without any entry is one that has not been updated yet.
  adam.load_state_dict({{"param_groups.0.lr", Tensor(0.25)}});
  CHECK(adam.lr() == 0.25);
  CHECK(adam.state_dict().find("state.0.step") == nullptr);
}

TEST_CASE("PyTorch's SGD, which does not count steps, goes on with dampening") {
  auto run = [](bool isSaved) {
    Parameter w(zeros({1}));
    optim::SGD sgd({w}, {.lr = 1, .momentum = 0.5, .dampening = 0.5});
    sgd.step({ones({1})}); // the first gradient is not dampened: the buffer is 1
    if (isSaved) {
      StateDict state;
      for (const auto &entry : sgd.state_dict())
        if (!entry.first.ends_with(".step"))
          state.push_back(entry);
      sgd.load_state_dict(state);
    }
    sgd.step({ones({1})}); // the buffer is 0.5 · 1 + 0.5 · 1
    return w->item();
  };
  CHECK(run(false) == -2);
  CHECK(run(true) == -2);
}

// ---- schedules

TEST_CASE("schedules refuse options that make no sense, and leave the learning rate as it is") {
  using namespace optim;
  SGD sgd({Parameter(zeros({1}))}, {.lr = 0.5, .momentum = 0.9});
  SGD other({Parameter(zeros({1}))}, {.lr = 0.5});
  CHECK_ERROR(StepLR(sgd, 0), "step_size");
  CHECK_ERROR(StepLR(sgd, 2, kNaN), "gamma");
  CHECK_ERROR(MultiStepLR(sgd, {-3}), "milestones");
  CHECK_ERROR(ExponentialLR(sgd, -1), "gamma");
  CHECK_ERROR(ConstantLR(sgd, 2), "factor", "[0, 1]");
  CHECK_ERROR(LinearLR(sgd, 0.5, 2), "end_factor");
  CHECK_ERROR(LinearLR(sgd, 0), "start_factor");
  CHECK_ERROR(PolynomialLR(sgd, 0), "total_iters");
  CHECK_ERROR(CosineAnnealingLR(sgd, 0), "T_max");
  CHECK_ERROR(CosineAnnealingLR(sgd, 4, kNaN), "eta_min");
  CHECK_ERROR(CosineAnnealingWarmRestarts(sgd, 0), "T_0");
  CHECK_ERROR(OneCycleLR(sgd, kNaN, 5), "max_lr");
  CHECK_ERROR(OneCycleLR(sgd, 1, 0), "total_steps");
  CHECK_ERROR(OneCycleLR(sgd, 1, 5, {.pct_start = 2}), "pct_start");
  CHECK_ERROR(OneCycleLR(sgd, 1, 5, {.max_momentum = 1}), "max_momentum");
  CHECK_ERROR(OneCycleLR(sgd, 1, 5, {.div_factor = 0}), "div_factor");
  CHECK_ERROR(SequentialLR(sgd, {}, {}), "one milestone");
  CHECK_ERROR(SequentialLR(sgd, {StepLR(sgd, 1), StepLR(sgd, 1), StepLR(sgd, 1)}, {3, 2}), "ascend");
  CHECK_ERROR(ChainedScheduler(sgd, {}), "no schedules");
  CHECK_ERROR(ChainedScheduler(sgd, {StepLR(other, 1)}), "another optimiser");
  CHECK_ERROR(LambdaLR(sgd, nullptr), "empty");
  CHECK_ERROR(ReduceLROnPlateau(sgd, {.factor = -1}), "factor");
  CHECK_ERROR(ReduceLROnPlateau(sgd, {.patience = -1}), "patience");
  CHECK_ERROR(ReduceLROnPlateau(sgd, {.min_lr = kNaN}), "min_lr");
  CHECK(sgd.lr() == 0.5);
  StepLR schedule(sgd, 1);
  CHECK_ERROR(schedule.load_state_dict({{"last_epoch", Tensor(int64_t(-1))}}), "negative");
  CHECK(schedule.last_epoch() == 0);
}

TEST_CASE("a cycle ends with its steps, eagerly and compiled") {
  constexpr int64_t kSteps = 5;
  for (bool isJitted : {false, true}) {
    INFO((isJitted ? "jitted" : "eager"));
    Parameter w(zeros({1}));
    optim::SGD sgd({w}, {.lr = 1, .momentum = 0.9});
    optim::OneCycleLR schedule(sgd, 1, kSteps);
    std::function<Tensor(const Tensor &)> step = [&](const Tensor &gradient) {
      sgd.step({gradient});
      schedule.step();
      return w.value();
    };
    if (isJitted)
      step = jit(step);
    for (int64_t i = 0; i < kSteps; ++i)
      step(ones({1})).item();
    const double lr = sgd.lr(), value = w->item();
    CHECK(contains(messageOf([&] { isJitted ? step(ones({1})).item() : (schedule.step(), 0.0); }), "5 steps"));
    CHECK(schedule.last_epoch() == kSteps);
    CHECK(sgd.lr() == lr);
    CHECK(w->item() == value);
    CHECK_ERROR(schedule.load_state_dict({{"last_epoch", Tensor(int64_t(9))}}), "[0, 5]");
    CHECK(schedule.last_epoch() == kSteps);
  }
}

// ---- data

TEST_CASE("loaders and sets refuse what does not exist") {
  using namespace data;
  const DatasetRef set = tensor_dataset({arange(5).to(f32)});
  CHECK_ERROR(DataLoader(set, {.batch_size = 0}), "positive batch size");
  CHECK_ERROR(DataLoader(set, {.shuffle = true, .sampler = [](uint64_t) { return std::vector<int64_t>{0}; }}),
              "without shuffle");
  CHECK_ERROR(subset(nullptr, {0}), "null");
  CHECK_ERROR(random_split(nullptr, {0}, 0), "null");
  CHECK_ERROR(weighted_sampler({1, kInfinity}, 3, 0), "finite");
  CHECK_ERROR(weighted_sampler({1, 1}, -3, 0), "count");
  CHECK(contains(messageOf([&] { set->get(5); }), "tensor_dataset: there is no example 5 in this set: it has 5"));
  CHECK(contains(messageOf([&] { set->get(-1); }), "there is no example -1"));
  CHECK(contains(messageOf([&] { subset(set, {1, 2})->get(2); }), "subset: there is no example 2"));
  CHECK(contains(messageOf([&] { concat_dataset({set, set})->get(10); }), "concat_dataset: there is no example 10"));
  CHECK(contains(messageOf([] { compose({nullptr}); }), "empty"));
  CHECK(contains(messageOf([] { Random(0, 0, 0).integer(3, 3); }), "no integer in [3, 3)"));
  DataLoader loader(set, {.batch_size = 2});
  loader.load_state_dict({{"epoch", Tensor(int64_t(0))}, {"batch", Tensor(int64_t(4))}});
  CHECK_ERROR(loader.next(), "batch 4", "3 batches");
  struct Broken : IterableDataset {
    Stream open(uint64_t) const override { return nullptr; }
  };
  DataLoader broken(IterableDatasetRef(std::make_shared<Broken>()));
  CHECK_ERROR(broken.next(), "no stream");
}

TEST_CASE("an error of an example names the line of the loader, one of a sampler that of the loop") {
  using namespace data;
  const DatasetRef set = tensor_dataset({arange(4).to(f32)});
  for (int workers : {0, 2}) {
    auto fail = [](Example, Random &) -> Example { throw std::runtime_error("is damaged"); };
    const int made = __LINE__ + 1;
    DataLoader loader(set, {.batch_size = 2, .workers = workers, .transform = fail});
    const std::string message = messageOf([&] { loader.next(); });
    INFO(message);
    CHECK(contains(message, atLine(__FILE__, made)));
    CHECK(contains(message, "example 0 cannot be loaded: is damaged"));
  }
  DataLoader loader(set, {.sampler = [](uint64_t) { return std::vector<int64_t>{7}; }});
  auto loop = [&] {
    for (const Example &batch : loader)
      (void)batch;
  };
  const std::string message = messageOf(loop);
  INFO(message);
  CHECK(contains(message, "OptionTest.cpp"));
  CHECK(contains(message, "the index 7"));
}
