// Every recorded op has a location of the program that is traced, also the ops of functions that consist of several
// calls, of loops and branches, of gradients, layers and optimisers.
#include "frontend/trace/GraphData.h"
#include "test/frontend/Check.h"
#include <burin/functional.h>
#include <burin/graph/program.h>
#include <burin/nn/losses.h>
#include <burin/nn/recurrent.h>
#include <burin/nn/transformer.h>
#include <burin/tensor/math/fft.h>
#include <burin/tensor/math/linalg.h>
#include <burin/training/gradients.h>
#include <burin/training/optim.h>

namespace {

/// The places of ops, as "op at place", that are not in this file.
std::vector<std::string> foreignPlaces(const Graph &graph) {
  std::vector<std::string> found;
  graph.shared()->module->walk([&](mlir::Operation *op) {
    if (llvm::isa<mlir::ModuleOp, mlir::func::FuncOp, mlir::func::ReturnOp>(op))
      return;
    const std::string place = ir::fileLine(op->getLoc());
    if (!contains(place, "LocationTest.cpp:"))
      found.push_back(op->getName().getStringRef().str() + " at \"" + place + "\"");
  });
  return found;
}

template <class F> void check(F &&f, const std::vector<TensorSpec> &specs) {
  const Graph graph = trace(f, specs);
  CHECK(foreignPlaces(graph) == std::vector<std::string>{});
}
template <class F> void checkAt(F &&f, const Shape &shape) { check(f, {TensorSpec{f32, shape}}); }

const Dim n("n", 1, 64);

Tensor half(const Tensor &v) { return v / 2; }
Tensor isLarge(const Tensor &v) { return v.sum() > 1; }

/// A training step of a module on x [n, columns].
template <class M> void checkTraining(M net, const Shape &shape) {
  optim::AdamW optimizer(net.parameters(), {.lr = 0.1});
  checkAt(
      [&](const Tensor &x) {
        Tensor loss = net(x).pow(2).mean();
        loss.backward();
        optimizer.step();
        optimizer.zero_grad();
        return loss.detach();
      },
      shape);
}

} // namespace

TEST_CASE("ops of loops and branches have the places of their callers") {
  checkAt([](const Tensor &x) { return while_loop(isLarge, half, x); }, {n});
  checkAt([](const Tensor &x) { return while_loop(isLarge, half, x, 5); }, {n});
  checkAt([](const Tensor &x) { return grad(while_loop(isLarge, half, x, 5).sum(), {x})[0]; }, {n});
  checkAt([](const Tensor &x) { return fori_loop(1, 4, [](const Tensor &i, const Tensor &v) { return v * i; }, x); },
          {n});
  checkAt(
      [](const Tensor &x) {
        return fori_loop(0, x.size(0), [](const Tensor &i, const Tensor &v) { return v * i; }, x);
      },
      {n});
  checkAt(
      [](const Tensor &x) {
        Tensor most = x.sum().to(i64);
        return fori_loop(most - 4, most, [](const Tensor &i, const Tensor &v) { return v * i; }, x, 8);
      },
      {n});
  checkAt(
      [](const Tensor &x) {
        return grad(map([](const Tensor &v) { return cond(v > 0, [&] { return v * 2; }, [&] { return v; }); }, x).sum(),
                    {x})[0];
      },
      {n});
  checkAt(
      [](const Tensor &x) {
        return switch_case(x.size(0) % 3, [&] { return x; }, [&] { return x * 2; }, [&] { return x * 3; });
      },
      {n});
  checkAt([](const Tensor &x) { return vmap([](const Tensor &v) { return while_loop(isLarge, half, v); })(x); },
          {n, 3});
  checkAt([](const Tensor &x) { return hessian([](const Tensor &v) { return v.pow(3).sum(); })(x); }, {3});
  Parameter total = Parameter::state(zeros({}));
  checkAt(
      [&](const Tensor &x) {
        burin::check(x > 0, "not positive");
        auto step = [&](const std::vector<Tensor> &s, const std::vector<Tensor> &e) {
          total.set(total.value() + e[0]);
          return ScanResult{{s[0] + total.value()}, {s[0]}};
        };
        return scan(step, {tensor(0.0f)}, {x}, true).outputs[0];
      },
      {n});
}

TEST_CASE("ops of random numbers have the places of their callers") {
  Generator generator(1);
  checkAt([&](const Tensor &x) { return manual_seed(3), x + randn({3}) + rand({3}); }, {3});
  checkAt([&](const Tensor &x) { return generator.manual_seed(3), x + generator.exponential({3}); }, {3});
  checkAt([&](const Tensor &x) { return generator.truncated_normal({3}) + generator.uniform({3}, 1, 2) + x; }, {3});
  checkAt([&](const Tensor &x) { return generator.gamma(x.abs() + 1) + generator.bernoulli(x.sigmoid()); }, {3});
  checkAt([&](const Tensor &x) { return generator.categorical(x) + generator.multinomial(x.exp(), 2); }, {3});
  checkAt([&](const Tensor &x) { return generator.randperm(5) + randint(0, 3, {5}) + x.sum().to(i64); }, {3});
  checkAt([&](const Tensor &x) { return rand_like(x) + randn_like(x); }, {n});
}

TEST_CASE("ops of functions of several calls have the places of their callers") {
  checkAt([](const Tensor &x) { return x.sum() / x.size(0) + arange(x.size(0)).to(f32).mean(); }, {n});
  checkAt([](const Tensor &x) { return x.median(); }, {n});
  checkAt([](const Tensor &x) { return x[{Slice(1, None, 2), -1}] + x(x.size(0) - 1, 0); }, {n, 4});
  checkAt(
      [](const Tensor &x) {
        Tensor y = x;
        y.set({0, Slice(1, 3)}, 5.0);
        return y.roll({1}, {0}) + x.flip({1}) + x.cumsum(0) + x.softmax(1) + x.var({0}, true);
      },
      {n, 4});
  checkAt([](const Tensor &x) { return einsum("ij,kj->ik", {x, x}) + cov(x); }, {3, 4});
  checkAt([](const Tensor &x) { return linalg::inv(x) + linalg::cholesky(matmul(x, x.t()) + eye(4)); }, {4, 4});
  checkAt([](const Tensor &x) { return grad(linalg::det(x), {x})[0]; }, {4, 4});
  checkAt([](const Tensor &x) { return x[x > 0].sum() + nonzero(x).sum(); }, {n});
}

TEST_CASE("ops of layers, losses and optimisers have the places of their callers") {
  checkTraining(nn::Sequential(nn::Linear(4, 8), nn::BatchNorm1d(8), nn::GELU(), nn::Dropout(0.5), nn::Linear(8, 2)),
                {8, 4});
  checkTraining(
      nn::Sequential(nn::Conv2d(3, 4, 3), nn::GroupNorm(2, 4), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(36, 2)),
      {2, 3, 8, 8});
  nn::LSTM lstm(4, 8, {.num_layers = 2});
  checkAt([&](const Tensor &x) { return std::get<0>(lstm(x)); }, {n, 2, 4});
  nn::MultiheadAttention attention(8, 2);
  checkAt([&](const Tensor &x) { return attention(x); }, {n, 2, 8});
  check([](const Tensor &x, const Tensor &y) { return cross_entropy(x, y) + nll_loss(log_softmax(x, 1), y); },
        {{f32, {n, 5}}, {i64, {n}}});
  check([](const Tensor &x,
           const Tensor &y) { return huber_loss(x, y) + kl_div(x, y) + binary_cross_entropy_with_logits(x, y); },
        {{f32, {n, 5}}, {f32, {n, 5}}});
}
