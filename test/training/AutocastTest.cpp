// Mixed precision: the types that ops compute in, and steps that are skipped because a gradient is not finite.
#include "test/frontend/Check.h"
#include <burin/nn/losses.h>
#include <burin/training/autocast.h>
#include <cmath>

namespace {

nn::Sequential smallNet() {
  manual_seed(5);
  return nn::Sequential(nn::Linear(12, 32), nn::Tanh(), nn::Linear(32, 4));
}

/// Returns the losses of training steps on one batch.
std::vector<double> train(std::optional<DType> type, bool compiled, int steps) {
  auto net = smallNet();
  optim::AdamW optimizer(net.parameters(), {.lr = 1e-2});
  optim::GradScaler scaler;
  auto step = [&](const Tensor &x, const Tensor &y) {
    Tensor loss;
    if (type) {
      Autocast scope(*type);
      loss = cross_entropy(net(x), y);
    } else {
      loss = cross_entropy(net(x), y);
    }
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    optimizer.zero_grad();
    return loss.detach();
  };
  auto jitted = jit(step);
  Tensor x = randn({16, 12}), y = arange(16) % 4;
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back((compiled ? jitted(x, y) : step(x, y)).item());
  for (const Parameter &p : net.parameters())
    CHECK(p->dtype() == f32);
  return losses;
}

} // namespace

TEST_CASE("a scope of autocast computes products in its type and sums in f32") {
  Tensor a = randn({3, 4}), b = randn({4, 5});
  {
    Autocast scope(bf16);
    CHECK(matmul(a, b).dtype() == bf16);
    CHECK(matmul(a.to(f64), b.to(f64)).dtype() == f64);
    CHECK(matmul(arange(12).reshape({3, 4}), arange(20).reshape({4, 5})).dtype() == i64);
    CHECK((a + a).dtype() == f32);
    CHECK(relu(a.to(bf16)).dtype() == bf16);
    CHECK(softmax(a.to(bf16)).dtype() == f32);
    CHECK(a.to(f16).sum().dtype() == f32);
    CHECK(conv(randn({1, 2, 5}), randn({3, 2, 3})).dtype() == bf16);
    {
      Autocast off(bf16, false);
      CHECK(matmul(a, b).dtype() == f32);
    }
    CHECK(matmul(a, b).dtype() == bf16);
    Graph g = trace([](const Tensor &x, const Tensor &y) { return softmax(matmul(x, y)); },
                    {TensorSpec{f32, {3, 4}}, TensorSpec{f32, {4, 5}}});
    CHECK(str(g.outputs()[0].spec) == "f32[3, 5]");
    CHECK(g.str().find("bf16") != std::string::npos);
  }
  CHECK(matmul(a, b).dtype() == f32);
  CHECK_ERROR(Autocast{f32}, "Autocast", "f16 or bf16");
}

TEST_CASE("products of autocast are those of converted operands") {
  Tensor a = randn({7, 33}), b = randn({33, 5}), wanted = matmul(a.to(bf16), b.to(bf16));
  Autocast scope(bf16);
  CHECK(equal(matmul(a, b), wanted));
}

TEST_CASE("biases and states are converted like the operands of their products") { // as by torch.autocast
  manual_seed(6);
  const DType type = GENERATE(bf16, f16);
  Tensor x = randn({5, 2, 4}), h = randn({1, 2, 3});
  const auto both = [&](auto layer) { return std::pair{layer(x), jit(layer)(x)}; };
  Autocast scope(type);
  auto is16Bit = [&](const std::vector<Tensor> &results) {
    return std::ranges::all_of(results, [&](const Tensor &result) { return result.dtype() == type; });
  };
  nn::Linear linear(4, 2);
  CHECK(is16Bit({linear(x), nn::functional::linear(x, linear.weight, linear.bias)}));
  CHECK(equal(linear(x), matmul(x.to(type), linear.weight->to(type).t()) + linear.bias->to(type)));
  CHECK(is16Bit({addmm(ones({2}), x[0], ones({4, 2})), addmm(ones({2}), x[0], ones({4, 2}), 0.5, 2)}));
  CHECK(is16Bit({baddbmm(ones({2}), x, ones({5, 4, 2}))}));
  CHECK(is16Bit({nn::Conv1d(2, 2, 3)(x), nn::ConvTranspose1d(2, 2, 3)(x), nn::PReLU()(x)}));
  auto [eager, compiled] = both(nn::MultiheadAttention(4, 2));
  CHECK(is16Bit({eager, compiled}));
  nn::LSTM lstm(4, 3, {.num_layers = 2, .bidirectional = true});
  for (auto [output, hidden, cell] : {lstm(x), jit([&](const Tensor &t) { return lstm(t); })(x)})
    CHECK(is16Bit({output, hidden, cell}));
  auto [output, hidden, cell] = nn::LSTM(4, 3)(x, h, h);
  CHECK(is16Bit({output, hidden, cell}));
  CHECK(is16Bit({nn::GRU(4, 3)(x, h).first, nn::RNN(4, 3)(x).first}));
  CHECK(is16Bit({nn::GRUCell(4, 3)(x[0], h[0]), nn::RNNCell(4, 3)(x[0])}));
  auto [next, nextCell] = nn::LSTMCell(4, 3)(x[0], h[0], h[0]);
  CHECK(is16Bit({next, nextCell}));
  CHECK(linear(x.to(f64)).dtype() == f64);
}

TEST_CASE("gradients of layers under autocast are those of converted parameters") {
  manual_seed(7);
  nn::Linear layer(4, 3);
  Tensor x = randn({6, 4}), w = layer.weight->to(bf16).detach().requires_grad_(),
         b = layer.bias->to(bf16).detach().requires_grad_();
  (matmul(x.to(bf16), w.t()) + b).to(f32).sum().backward();
  {
    Autocast scope(bf16);
    layer(x).sum().backward();
  }
  CHECK(layer.weight->grad().dtype() == f32);
  CHECK(equal(layer.weight->grad(), w.grad().to(f32)));
  CHECK(equal(layer.bias->grad(), b.grad().to(f32)));
}

TEST_CASE("losses under autocast are computed in f32") {
  manual_seed(8);
  const Tensor x = randn({4, 3}).to(bf16), y = randn({4, 3}).to(bf16), p = rand({4, 3}).to(bf16),
               q = softmax(y.to(f32)), classes = tensor({0, 2, 1, 1}), sides = tensor({1, -1, 1, -1});
  auto all = [&](auto type) {
    auto a = [=](const Tensor &t) { return type(t); };
    return std::vector<Tensor>{mse_loss(a(x), a(y)),
                               l1_loss(a(x), a(y)),
                               smooth_l1_loss(a(x), a(y)),
                               huber_loss(a(x), a(y), Reduction::None),
                               binary_cross_entropy(a(p), a(p)),
                               binary_cross_entropy_with_logits(a(x), a(p)),
                               kl_div(a(x), a(p), Reduction::BatchMean),
                               cosine_embedding_loss(a(x), a(y), sides),
                               triplet_margin_loss(a(x), a(y), a(p)),
                               cross_entropy(a(x), classes),
                               cross_entropy(a(x), q),
                               nll_loss(a(x), classes)};
  };
  std::vector<Tensor> wanted = all([](const Tensor &t) { return t.to(f32); }), got;
  {
    Autocast scope(bf16);
    got = all([](const Tensor &t) { return t; });
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i].dtype() == f32);
    CHECK(equal(got[i], wanted[i]));
  }
}

TEST_CASE("a jitted function is traced anew for each type of autocast") {
  auto product = jit([](const Tensor &a, const Tensor &b) { return matmul(a, b); });
  Tensor a = randn({3, 4}), b = randn({4, 5});
  CHECK(product(a, b).dtype() == f32);
  {
    Autocast scope(f16);
    CHECK(product(a, b).dtype() == f16);
  }
  CHECK(product(a, b).dtype() == f32);
  CHECK(product.traces() == 2);
}

TEST_CASE("gradients under autocast arrive in f32, wherever backward is called") {
  Tensor x = randn({6, 8}), w = randn({8, 3}).requires_grad_();
  Tensor wanted = matmul(x.to(bf16).t(), ones({6, 3}, bf16)).to(f32);
  Autocast scope(bf16);
  matmul(x, w).sum().backward();
  CHECK(w.grad().dtype() == f32);
  CHECK(largestDifference(w.grad(), wanted) < 1e-6);
}

TEST_CASE("training in 16 bits learns as in 32, eagerly and jitted") {
  std::vector<double> full = train(std::nullopt, false, 30);
  for (DType type : {f16, bf16})
    for (bool compiled : {false, true}) {
      std::vector<double> losses = train(type, compiled, 30);
      CAPTURE(type, compiled);
      CHECK(losses.front() == Approx(full.front()).epsilon(0.02));
      CHECK(losses.back() == Approx(full.back()).epsilon(0.1));
      CHECK(losses.back() < 0.5 * losses.front());
    }
}

TEST_CASE("a step with a gradient that is not finite changes nothing and lowers the scale") {
  const bool compiled = GENERATE(false, true);
  auto net = smallNet();
  optim::AdamW optimizer(net.parameters(), {.lr = 1e-2});
  optim::GradScaler scaler({.init_scale = 1024, .growth_interval = 3});
  auto step = [&](const Tensor &x) {
    Tensor loss = pow(net(x), 2).sum();
    scaler.scale(loss).backward();
    scaler.unscale_(optimizer);
    optim::clip_grad_norm_(net.parameters(), 1.0);
    scaler.step(optimizer);
    scaler.update();
    optimizer.zero_grad();
    return loss.detach();
  };
  auto jitted = jit(step);
  auto run = [&](const Tensor &x) { compiled ? jitted(x) : step(x); };
  auto all = [&] {
    StateDict state;
    state.add("net.", net.state_dict());
    state.add("optimizer.", optimizer.state_dict());
    return state;
  };
  Tensor good = randn({5, 12}), bad = full({5, 12}, INFINITY);
  run(bad); // also at the first step, which creates the optimiser's states
  CHECK(scaler.get_scale() == 512);
  CHECK(optimizer.state_dict().at("state.0.exp_avg").abs().sum().item() == 0);
  CHECK(optimizer.state_dict().at("state.0.step").item() == 0);
  run(good);
  StateDict before = all();
  run(bad);
  StateDict after = all();
  for (const auto &[name, value] : before) {
    CAPTURE(name);
    CHECK(equal(value, after.at(name)));
  }
  CHECK(scaler.get_scale() == 256);
  for (int i = 0; i < 3; ++i)
    run(good);
  CHECK(scaler.get_scale() == 512);
  CHECK(optimizer.state_dict().at("state.0.step").item() == 4);
  CHECK(!equal(before.at("net.0.weight"), net.state_dict().at("0.weight")));
  if (compiled)
    CHECK(jitted.traces() == 1);

  optim::GradScaler other;
  other.load_state_dict(scaler.state_dict());
  CHECK(other.get_scale() == 512);
}

TEST_CASE("what a GradScaler refuses") {
  CHECK_ERROR(optim::GradScaler({.growth_factor = 1}), "growth_factor");
  auto net = smallNet();
  optim::SGD optimizer(net.parameters(), {.lr = 0.1});
  optim::GradScaler scaler;
  scaler.unscale_(optimizer);
  CHECK_ERROR(scaler.unscale_(optimizer), "divided by the scale");
}
