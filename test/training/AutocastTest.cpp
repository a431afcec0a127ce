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
