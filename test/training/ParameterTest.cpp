// Tied and frozen parameters, and optimisers whose state changes between calls of a compiled step.
#include "test/frontend/Check.h"
#include <cmath>

using optim::Adam;

namespace {

Tensor rows() { return sin(arange(12).to(f32)).reshape({4, 3}); }
Tensor classes() { return arange(4) % 2; }

bool areEqual(const StateDict &a, const StateDict &b) {
  if (a.size() != b.size())
    return false;
  for (const auto &[name, value] : a)
    if (!b.find(name) || !equal(value, b.at(name)))
      return false;
  return true;
}

/// A step of a small network, eager or jitted.
struct Learner {
  nn::Linear first{3, 3}, last{3, 2};
  Adam optimizer{nn::Sequential(first, nn::Tanh(), last).parameters(), {.lr = 0.1}};
  std::function<Tensor(const Tensor &, const Tensor &)> plain = [this](const Tensor &x, const Tensor &target) {
    Tensor loss = cross_entropy(last(tanh(first(x))), target);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return loss.detach();
  };
  Jit<std::function<Tensor(const Tensor &, const Tensor &)>> compiled = jit(plain);
  bool isJitted;

  explicit Learner(bool isJitted) : isJitted(isJitted) {}
  void run(int count) {
    for (int i = 0; i < count; ++i)
      isJitted ? compiled(rows(), classes()) : plain(rows(), classes());
  }
  StateDict weights() const {
    StateDict all;
    all.add("first.", first.state_dict());
    all.add("last.", last.state_dict());
    return all;
  }
  StateDict all() const {
    StateDict result = weights();
    result.add("optimizer.", optimizer.state_dict());
    return result;
  }
};

/// Runs the same changes on an eager and on a jitted learner; their states are equal bit for bit. Returns the number of
/// traces.
template <class F> size_t checkSame(F change) {
  manual_seed(1);
  Learner eager(false);
  manual_seed(1);
  Learner jitted(true);
  change(eager);
  change(jitted);
  CHECK(areEqual(eager.all(), jitted.all()));
  return jitted.compiled.traces();
}

} // namespace

TEST_CASE("a compiled step goes on with the optimiser state that was loaded, without another trace") {
  CHECK(checkSame([](Learner &learner) {
          learner.run(3);
          const StateDict weights = learner.weights(), state = learner.optimizer.state_dict();
          learner.run(3);
          learner.first.load_state_dict(weights.part("first."));
          learner.last.load_state_dict(weights.part("last."));
          learner.optimizer.load_state_dict(state);
          CHECK(learner.optimizer.state_dict().at("state.0.step").item() == 3);
          learner.run(2);
          CHECK(learner.optimizer.state_dict().at("state.0.step").item() == 5);
        }) == 1);
}

TEST_CASE("state with other slots or counters makes a compiled step trace again") {
  CHECK(checkSame([](Learner &learner) {
          const StateDict start = learner.optimizer.state_dict(); // without slots
          learner.run(2);
          learner.optimizer.load_state_dict(start);
          learner.run(2);
          CHECK(learner.optimizer.state_dict().at("state.3.step").item() == 2);
          StateDict state = learner.optimizer.state_dict();
          for (auto &[name, value] : state)
            if (name == "state.1.step")
              value = tensor(7.0f); // no longer the count of the others
          learner.optimizer.load_state_dict(state);
          learner.run(2);
          CHECK(learner.optimizer.state_dict().at("state.1.step").item() == 9);
          CHECK(learner.optimizer.state_dict().at("state.0.step").item() == 4);
        }) == 3);
}

TEST_CASE("a compiled step notices that parameters are frozen, and unfrozen again") {
  CHECK(checkSame([](Learner &learner) {
          learner.run(2);
          learner.first.freeze();
          const StateDict frozen = learner.first.state_dict();
          learner.run(2);
          CHECK(areEqual(frozen, learner.first.state_dict()));
          learner.first.requires_grad_();
          learner.run(2);
          CHECK_FALSE(areEqual(frozen, learner.first.state_dict()));
        }) <= 4);
}

TEST_CASE("parameters are added to an optimiser later") {
  checkSame([](Learner &learner) {
    learner.optimizer = Adam(learner.last.parameters(), {.lr = 0.1});
    learner.run(2);
    learner.first.zero_grad(); // which eager steps have added up
    learner.optimizer.add_param_group({learner.first.parameters(), {.lr = 0.01}});
    CHECK(learner.optimizer.groups() == 2);
    CHECK(learner.optimizer.lr(1) == 0.01);
    const StateDict before = learner.first.state_dict();
    learner.run(2);
    CHECK_FALSE(areEqual(before, learner.first.state_dict()));
    CHECK(learner.optimizer.state_dict().at("state.2.step").item() == 2);
  });
  nn::Linear layer(2, 2);
  optim::Muon muon({layer.weight});
  CHECK_ERROR(muon.add_param_group({{layer.bias}}), "f32[2]", "matrix");
  CHECK_ERROR(muon.add_param_group({{layer.weight}}), "twice");
  CHECK(muon.groups() == 1);
}

TEST_CASE("a parameter that is given twice is refused") {
  nn::Linear layer(3, 2);
  CHECK_ERROR(Adam({layer.weight, layer.bias, layer.weight}), "f32[2, 3]", "twice");
  using Group = optim::ParamGroup<optim::AdamOptions>;
  CHECK_ERROR(Adam(std::vector{Group{{layer.weight}}, Group{{layer.weight}}}), "twice");
}

TEST_CASE("a module in two places has each parameter once") {
  nn::Linear shared(3, 3);
  auto net = nn::Sequential(shared, nn::Tanh(), shared);
  CHECK(net.parameters().size() == 2);
  CHECK(net.named_parameters()[0].first == "0.weight");
  CHECK(net.count_parameters() == 12);
  const StateDict state = net.state_dict(); // under each name, as in PyTorch
  CHECK(state.size() == 4);
  CHECK(equal(state.at("0.weight"), state.at("2.weight")));
  StateDict half = state;
  half.erase(half.begin(), half.begin() + 2); // a file may have either name
  half[0].second = half[0].second + 1;
  net.load_state_dict(half);
  CHECK(equal(shared.weight, state.at("0.weight") + 1));
  half.pop_back();
  CHECK_ERROR(net.load_state_dict(half), "missing (2): 0.bias, 2.bias");
}

namespace {
/// A model whose output layer has the weight of its table.
struct Tied : nn::Layer<Tied> {
  nn::Embedding table = register_module("table", nn::Embedding(5, 3));
  nn::Linear head = register_module("head", nn::Linear(3, 5, {.bias = false}));
  explicit Tied(bool isTied = true) {
    if (isTied)
      head.weight.tie(table.weight);
  }
  Tensor forward(const Tensor &tokens) const { return head(table(tokens)); }
};
} // namespace

TEST_CASE("tied parameters are one parameter with two names") {
  manual_seed(2);
  Tied net;
  CHECK(net.head.weight.is(net.table.weight));
  CHECK(net.parameters().size() == 1);
  CHECK(net.count_parameters() == 15);
  CHECK(net.state_dict().size() == 2);
  CHECK(equal(net.state_dict().at("head.weight"), net.table.weight));
  const Tensor tokens = tensor({0, 3, 3});
  auto lossOf = [&](const Tensor &weight) {
    return cross_entropy(matmul(weight[tokens], weight.t()), tensor({1, 2, 3}));
  };
  Tensor weight = net.table.weight->detach().requires_grad_();
  Tensor expected = grad(lossOf(weight), {weight})[0];
  cross_entropy(net(tokens), tensor({1, 2, 3})).backward();
  CHECK(largestDifference(net.head.weight->grad(), expected) < 1e-6);
  net.zero_grad();
  CHECK_FALSE(net.table.weight->grad().defined());

  optim::SGD optimizer(net.parameters(), {.lr = 1});
  auto step = jit([&](const Tensor &x) {
    Tensor loss = cross_entropy(net(x), tensor({1, 2, 3}));
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return loss;
  });
  const Tensor before = net.table.weight->detach();
  step(tokens);
  CHECK(largestDifference(net.table.weight, before - expected) < 1e-6);
  CHECK(equal(net.head.weight, net.table.weight));
  StateDict one{{"table.weight", zeros({5, 3})}}; // a file that has a tied weight once
  net.load_state_dict(one);
  CHECK(net.head.weight->abs().max().item() == 0);
}

TEST_CASE("compiled code follows a parameter that is tied later") {
  Tied net(false);
  net.eval();
  auto fast = jit(net);
  const Tensor tokens = tensor({1, 4});
  CHECK(largestDifference(fast(tokens), net(tokens)) < 1e-6);
  net.head.weight.tie(net.table.weight);
  CHECK(largestDifference(fast(tokens), matmul(net.table.weight.value()[tokens], net.table.weight->t())) < 1e-6);
}

TEST_CASE("parameters that do not fit are not tied") {
  nn::Linear layer(3, 2), plain(3, 2, {.bias = false});
  CHECK_ERROR(layer.weight.tie(layer.bias), "f32[2, 3]", "f32[2]");
  CHECK_ERROR(layer.bias.tie(plain.bias), "does not exist");
  CHECK_ERROR(jit([&](const Tensor &x) {
                layer.weight.tie(plain.weight);
                return layer(x);
              })(ones({1, 3})),
              "before the function");
  layer.weight.tie(plain.weight);
  plain.weight.tie(layer.weight); // nothing more to do
  CHECK(layer.weight.is(plain.weight));
}

TEST_CASE("buffers and children are listed by name") {
  auto net = nn::Sequential({{"conv", nn::Conv2d(1, 2, 3)}, {"norm", nn::BatchNorm2d(2)}});
  CHECK(net.buffers().size() == 3);
  CHECK(net.named_buffers()[0].first == "norm.running_mean");
  REQUIRE(net.named_children().size() == 2);
  CHECK(net.named_children()[1].first == "norm");
  CHECK(net.named_children()[1].second.kind() == "BatchNorm2d");
}

TEST_CASE("LBFGS goes on from a saved state, bit for bit") {
  auto run = [](int before, int after) {
    manual_seed(3);
    nn::Linear net(3, 1);
    const Tensor x = rows(), y = x.sum(1, true);
    auto closure = [&] { return mse_loss(net(x), y) + pow(net.weight.value(), 4).sum(); };
    auto steps = [&](optim::LBFGS &optimizer, int count) {
      for (int i = 0; i < count; ++i)
        optimizer.step(closure);
    };
    optim::LBFGS first(net.parameters(), {.lr = 0.5, .max_iter = 2});
    steps(first, before);
    optim::LBFGS second(net.parameters(), {.max_iter = 2});
    second.load_state_dict(first.state_dict());
    steps(second, after);
    return net.weight.value();
  };
  const Tensor whole = run(0, 6);
  CHECK(equal(run(3, 3), run(6, 0)));
  CHECK(equal(run(1, 5), run(6, 0)));
  CHECK(equal(whole, run(6, 0)));
  nn::Linear net(3, 1);
  optim::LBFGS optimizer(net.parameters());
  optimizer.step([&] { return net(rows()).pow(2).mean(); });
  StateDict state = optimizer.state_dict();
  for (auto &[name, value] : state)
    if (name == "state.0.d")
      value = zeros({7});
  CHECK_ERROR(optimizer.load_state_dict(state), "state.0.d", "f32[7]", "4 elements", "nothing has been changed");
}

TEST_CASE("a compiled step calls the hooks of parameters, also those of later") {
  checkSame([](Learner &learner) {
    learner.run(1);
    learner.first.weight->register_hook([](const Tensor &g) { return g * 0.5; });
    learner.first.weight->register_hook([](const Tensor &g) { return g + 0.25; });
    learner.run(3);
  });
  nn::Linear layer(2, 1);
  layer.weight->register_hook([](const Tensor &g) { return g * 3; });
  auto gradient = jit([&](const Tensor &x) { return grad(layer(x).sum(), {layer.weight})[0]; });
  CHECK(floats(gradient(ones({1, 2}))) == std::vector<float>{3, 3});
  layer.bias->register_hook([](const Tensor &g) { return g.reshape({1, 1}); });
  auto wrong = jit([&](const Tensor &x) { return grad(layer(x).sum(), {layer.bias})[0]; });
  const std::string message = messageOf([&] { wrong(ones({1, 2})); });
  CHECK(contains(message, "hook"));
  CHECK(contains(message, "f32[1, 1]"));
}

TEST_CASE("gradients that a traced function computes in vain are an error") {
  nn::Linear layer(2, 1);
  optim::SGD optimizer(layer.parameters(), {.lr = 1});
  auto inVain = jit([&](const Tensor &x) {
    Tensor loss = layer(x).sum();
    loss.backward();
    return loss;
  });
  const std::string message = messageOf([&] { inVain(ones({1, 2})); });
  CHECK(contains(message, "removed when the traced function returns"));
  CHECK(contains(message, "ParameterTest.cpp"));
  auto early = jit([&](const Tensor &x) { // PyTorch's other order
    optimizer.zero_grad();
    Tensor loss = layer(x).sum();
    loss.backward();
    optimizer.step();
    return loss;
  });
  const Tensor before = layer.bias->detach();
  early(ones({1, 2}));
  early(ones({1, 2}));
  CHECK(largestDifference(layer.bias, before - 2) < 1e-6);
}

TEST_CASE("options of optimisers out of their ranges are refused") {
  nn::Linear layer(2, 1);
  const std::vector<Parameter> params = layer.parameters();
  CHECK_ERROR(Adam(params, {.betas = {1, 0.9}}), "betas", "[0, 1)");
  CHECK_ERROR(Adam(params, {.lr = double(NAN)}), "learning rate");
  CHECK_ERROR(Adam(params, {.eps = -1}), "eps");
  CHECK_ERROR(optim::SGD(params, {.nesterov = true}), "nesterov needs a momentum");
  CHECK_ERROR(optim::RMSprop(params, {.weight_decay = -1}), "weight_decay");
}

TEST_CASE("dropout with probability 1 drops everything") {
  Tensor x = ones({3}).requires_grad_();
  Tensor y = nn::Dropout(1)(x);
  CHECK(y.abs().max().item() == 0);
  y.sum().backward();
  CHECK(x.grad().abs().max().item() == 0);
  CHECK_ERROR(nn::Dropout(1.5), "must lie in [0, 1]");
}

TEST_CASE("the work of modules") {
  auto net = nn::Sequential(
      {{"conv", nn::Conv2d(1, 6, 5)}, {"act", nn::ReLU()}, {"flat", nn::Flatten()}, {"fc", nn::Linear(96, 10)}});
  const std::string text = str(net, {TensorSpec{f32, {2, 1, 8, 8}}});
  INFO(text);
  // conv: 2 * (2 * 6 * 4 * 4) * 25 = 9600; fc: 2 * (2 * 10) * 96 = 3840
  CHECK(contains(text, "9.6 kFLOP"));
  CHECK(contains(text, "3.84 kFLOP"));
  CHECK(contains(text, "13.4 kFLOP"));
  CHECK(contains(text, "1126"));
  CHECK(contains(str(net, {TensorSpec{f32, {Dim("n"), 1, 8, 8}}}), "n*4800 FLOP"));
  CHECK(contains(str(nn::Sequential(nn::Linear(4, 4)), {TensorSpec{f32, {2, 4}}}), "64 FLOP"));
}
