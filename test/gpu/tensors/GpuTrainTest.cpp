// Training on a GPU: layers, losses and optimisers, eagerly and jitted, give what they give on the processor.
#include "test/gpu/tensors/GpuTensors.h"
#include <burin/nn/losses.h>
#include <burin/nn/recurrent.h>
#include <burin/training/autocast.h>
#include <burin/training/optim.h>
#include <burin/training/schedules.h>

using namespace burin::test;

namespace {

/// LeNet's layers on small images.
struct LeNet : nn::Module {
  nn::Conv2d first = register_module("first", nn::Conv2d(1, 3, 3, {.padding = 1})),
             second = register_module("second", nn::Conv2d(3, 4, 3));
  nn::Linear third = register_module("third", nn::Linear(16, 11)), last = register_module("last", nn::Linear(11, 5));
  nn::Dropout dropout = register_module("dropout", nn::Dropout(0.25));
  Tensor operator()(const Tensor &x) const {
    Tensor y = max_pool(relu(first(x)), {2});
    y = max_pool(relu(second(y)), {2});
    return last(dropout(tanh(third(y.flatten(1)))));
  }
};

struct Batch {
  Tensor images, labels;
};
Batch batchOf(uint64_t seed) {
  std::vector<float> images;
  std::vector<int64_t> labels;
  for (uint64_t i = 0; i < 3 * 144; ++i)
    images.push_back(float((i * 7919 + seed * 31) % 101) / 50 - 1);
  for (uint64_t i = 0; i < 3; ++i)
    labels.push_back(int64_t((i + seed) % 5));
  return {from_vector(images, Shape{3, 1, 12, 12}), from_vector(labels)};
}

Tensor numbers(const Shape &shape, uint64_t seed, double low = -1, double high = 1) {
  std::vector<float> values;
  for (int64_t i = 0; i < elements(shape).value(); ++i)
    values.push_back(float(low + (high - low) * double((uint64_t(i) * 7919 + seed * 31 + 17) % 101) / 100));
  return from_vector(values, shape);
}

/// A matrix and a vector that are to be learned.
struct Line : nn::Module {
  Parameter weight = register_parameter("weight", numbers({3, 4}, 1)),
            bias = register_parameter("bias", numbers({4}, 2));
  Tensor operator()(const Tensor &x) const { return tanh(matmul(x, weight) + bias); }
};

using Make = std::function<optim::Optimizer(std::vector<Parameter>)>;

/// What some steps make of the parameters, and what the optimiser keeps.
std::pair<StateDict, StateDict> learned(const Make &make, Device device, bool isJitted) {
  Line net;
  net.to(device);
  optim::Optimizer optimizer = make(net.parameters());
  auto step = [&](const Tensor &x, const Tensor &y) {
    optimizer.zero_grad();
    Tensor loss = mse_loss(net(x), y);
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  auto jitted = jit(step);
  Tensor x = numbers({5, 3}, 3).to(device), y = numbers({5, 4}, 4).to(device);
  for (int i = 0; i < 3; ++i)
    isJitted ? jitted(x, y) : step(x, y);
  for (const auto &[name, value] : net.state_dict())
    CHECK(value.device() == device);
  return {net.state_dict(), optimizer.state_dict()};
}

void checkSame(const StateDict &got, const StateDict &want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    INFO(want[i].first);
    CHECK(got[i].first == want[i].first);
    checkClose(got[i].second, want[i].second, 2e-5, 1e-4);
  }
}

void checkOptimizer(const Make &make, bool isJitted = false) {
  auto [want, wantState] = learned(make, cpu, isJitted);
  auto [got, gotState] = learned(make, cuda(0), isJitted);
  checkSame(got, want);
  checkSame(gotState, wantState);
}

using Loss = std::function<Tensor(const std::vector<Tensor> &)>;

/// The loss of a call and the gradient of its first operand.
void checkLoss(const std::vector<Tensor> &operands, const Loss &loss) {
  auto run = [&](Device device) {
    std::vector<Tensor> there;
    for (const Tensor &x : operands)
      there.push_back(x.to(device));
    there[0].requires_grad_();
    Tensor value = loss(there);
    value.backward();
    CHECK((value.device() == device && there[0].grad().device() == device));
    return std::pair(value.detach(), there[0].grad());
  };
  auto [want, wantGradient] = run(cpu);
  auto [got, gotGradient] = run(cuda(0));
  checkClose(got, want, 1e-5, 1e-4);
  checkClose(gotGradient, wantGradient, 1e-5, 1e-4);
}

} // namespace

TEST_CASE("gpu train: LeNet learns eagerly and jitted as on the processor", "[gpu]") {
  auto train = [](Device device, bool isJitted) {
    manual_seed(3);
    LeNet net;
    net.to(device);
    optim::Adam adam(net.parameters(), {.lr = 1e-2});
    auto step = [&](const Tensor &images, const Tensor &labels) {
      adam.zero_grad();
      Tensor loss = cross_entropy(net(images), labels);
      loss.backward();
      adam.step();
      return loss.detach();
    };
    auto jitted = jit(step);
    std::vector<Batch> batches;
    for (uint64_t i = 0; i < 2; ++i)
      batches.push_back({batchOf(i).images.to(device), batchOf(i).labels.to(device)});
    std::vector<Tensor> losses;
    int64_t copied = 0;
    for (size_t i = 0; i < 5; ++i) {
      const Batch &batch = batches[i % 2];
      if (i == 3) { // what is made once is there by now
        losses.back().wait();
        copied = hostCopies();
      }
      losses.push_back(isJitted ? jitted(batch.images, batch.labels) : step(batch.images, batch.labels));
    }
    losses.back().wait();
    // In two steps: whether labels were allowed; eagerly also the numbers of the classes, keys of random numbers, and
    // what the updates of a group share.
    if (device.is_cuda())
      CHECK(hostCopies() - copied <= (isJitted ? 32 : 400));
    for (const auto &[name, value] : net.state_dict())
      CHECK(value.device() == device);
    return std::pair(stack(losses), net.state_dict());
  };
  for (bool isJitted : {false, true}) {
    INFO((isJitted ? "jitted" : "eager"));
    auto [want, wantState] = train(cpu, isJitted);
    auto [got, gotState] = train(cuda(0), isJitted);
    checkClose(got, want, 1e-5, 1e-4);
    for (size_t i = 0; i < wantState.size(); ++i)
      checkClose(gotState[i].second, wantState[i].second, 1e-4, 1e-3);
  }
}

TEST_CASE("gpu train: optimisers", "[gpu]") {
  using namespace optim;
  SECTION("SGD") {
    checkOptimizer([](auto params) {
      return SGD(params, {.lr = 0.1, .momentum = 0.9, .dampening = 0.1, .weight_decay = 0.01, .nesterov = false});
    });
  }
  SECTION("Adam, jitted") {
    checkOptimizer([](auto params) { return Adam(params, {.lr = 0.1, .weight_decay = 0.01, .amsgrad = true}); }, true);
  }
  SECTION("AdamW") {
    checkOptimizer([](auto params) { return AdamW(params, {.lr = 0.1}); });
  }
  SECTION("RMSprop") {
    checkOptimizer([](auto params) { return RMSprop(params, {.lr = 0.02, .momentum = 0.5, .centered = true}); });
  }
  SECTION("Adagrad") {
    checkOptimizer(
        [](auto params) { return Adagrad(params, {.lr = 0.1, .lr_decay = 0.1, .initial_accumulator_value = 0.1}); });
  }
  SECTION("Lion") {
    checkOptimizer([](auto params) { return Lion(params, {.lr = 0.01, .weight_decay = 0.1}); });
  }
  SECTION("Adafactor, jitted") {
    checkOptimizer([](auto params) { return Adafactor(params, {.lr = 0.1, .weight_decay = 0.1}); }, true);
  }
  SECTION("Muon") {
    Parameter matrix(numbers({3, 4}, 1)), there(numbers({3, 4}, 1).to(cuda(0)));
    for (Parameter *parameter : {&matrix, &there}) {
      Muon muon({*parameter}, {.lr = 0.1});
      for (uint64_t i = 0; i < 2; ++i)
        muon.step({numbers({3, 4}, i + 5).to(parameter->value().device())});
    }
    checkClose(there.value(), matrix.value(), 1e-5, 1e-4);
  }
}

TEST_CASE("gpu train: optimisers by rows, with line searches, with scaled gradients, and averages", "[gpu]") {
  using namespace optim;
  SECTION("rows of a table") {
    auto learn = [](Device device) {
      nn::Embedding table(6, 3, {.sparse = true});
      table.weight.set(numbers({6, 3}, 1));
      table.to(device);
      SparseAdam adam(table.parameters(), {.lr = 0.1});
      for (int64_t i = 0; i < 3; ++i) {
        adam.zero_grad();
        (table(tensor({int64_t(1), i, int64_t(4), i}).to(device)) * numbers({4, 3}, 2).to(device)).sum().backward();
        adam.step();
      }
      return table.weight.value();
    };
    Tensor there = learn(cuda(0));
    CHECK(there.device() == cuda(0));
    checkClose(there, learn(cpu), 1e-5, 1e-4);
  }
  SECTION("LBFGS") {
    auto learn = [](Device device) {
      Line net;
      net.to(device);
      LBFGS lbfgs(net.parameters(), {.max_iter = 3, .line_search_fn = "strong_wolfe"});
      Tensor x = numbers({5, 3}, 3).to(device), y = numbers({5, 4}, 4).to(device);
      lbfgs.step([&] { return mse_loss(net(x), y); });
      return net.state_dict();
    };
    checkSame(learn(cuda(0)), learn(cpu));
  }
  SECTION("GradScaler, clipped gradients, EMA, a schedule") {
    auto learn = [](Device device) {
      Line net;
      net.to(device);
      SGD sgd(net.parameters(), {.lr = 0.1});
      GradScaler scaler({.init_scale = 8, .growth_interval = 2});
      EMA average(net, 0.5);
      CosineAnnealingLR schedule(sgd, 4);
      Tensor x = numbers({5, 3}, 3).to(device), y = numbers({5, 4}, 4).to(device);
      for (int i = 0; i < 3; ++i) {
        sgd.zero_grad();
        scaler.scale(mse_loss(net(x), i == 1 ? y * INFINITY : y)).backward(); // a step that is left out
        scaler.unscale_(sgd);
        clip_grad_norm_(net.parameters(), 0.1);
        scaler.step(sgd);
        scaler.update();
        average.update();
        schedule.step();
      }
      StateDict all = net.state_dict();
      all.add("average.", average.state_dict());
      all.add("scaler.", scaler.state_dict());
      return all;
    };
    checkSame(learn(cuda(0)), learn(cpu));
  }
}

TEST_CASE("gpu train: a module and its optimiser move in the middle, and are saved", "[gpu]") {
  auto learn = [](bool moves) {
    Line net;
    optim::Adam adam(net.parameters(), {.lr = 0.1});
    optim::EMA average(net, 0.5);
    auto step = [&](Device device) {
      adam.zero_grad();
      mse_loss(net(numbers({5, 3}, 3).to(device)), numbers({5, 4}, 4).to(device)).backward();
      adam.step();
      average.update();
    };
    step(cpu);
    if (moves)
      net.to(cuda(0));
    step(moves ? cuda(0) : cpu);
    optim::Adam other(net.parameters(), {.lr = 0.1});
    other.load_state_dict(adam.state_dict());
    adam = other;
    net.to(cpu);
    step(cpu);
    StateDict all = net.state_dict();
    all.add("average.", average.state_dict());
    all.add("adam.", adam.state_dict());
    return all;
  };
  checkSame(learn(true), learn(false));
}

TEST_CASE("gpu train: losses", "[gpu]") {
  const Tensor x = numbers({4, 5}, 1), y = numbers({4, 5}, 2), labels = tensor({1, 4, 0, 2});
  SECTION("of classes") {
    checkLoss({x, labels, numbers({5}, 3, 0.5, 1)}, [](const std::vector<Tensor> &t) {
      return cross_entropy(t[0], t[1], {.weight = t[2], .ignore_index = 0, .label_smoothing = 0.1});
    });
    checkLoss({x, softmax(y, 1)}, [](const std::vector<Tensor> &t) { return cross_entropy(t[0], t[1]); });
    checkLoss({x, labels}, [](const std::vector<Tensor> &t) { return nll_loss(log_softmax(t[0], 1), t[1]); });
  }
  SECTION("of probabilities") {
    const Tensor half = (y > 0).to(f32);
    checkLoss({sigmoid(x), half}, [](const std::vector<Tensor> &t) { return binary_cross_entropy(t[0], t[1]); });
    checkLoss({x, half, numbers({5}, 3, 0.5, 1)}, [](const std::vector<Tensor> &t) {
      return binary_cross_entropy_with_logits(t[0], t[1], {.pos_weight = t[2]});
    });
    checkLoss({log_softmax(x, 1), softmax(y, 1)}, [](const std::vector<Tensor> &t) { return kl_div(t[0], t[1]); });
  }
  SECTION("of distances") {
    checkLoss({x, y}, [](const std::vector<Tensor> &t) {
      return mse_loss(t[0], t[1]) + l1_loss(t[0], t[1]) + smooth_l1_loss(t[0], t[1]) + huber_loss(t[0], t[1]);
    });
    checkLoss({x, y, tensor({1, -1, 1, -1})},
              [](const std::vector<Tensor> &t) { return cosine_embedding_loss(t[0], t[1], t[2]); });
    checkLoss({x, y, numbers({4, 5}, 3)},
              [](const std::vector<Tensor> &t) { return triplet_margin_loss(t[0], t[1], t[2], {.swap = true}); });
  }
  SECTION("of sequences") {
    checkLoss({numbers({5, 2, 4}, 1), tensor({{1, 2}, {3, 3}}), tensor({5, 4}), tensor({2, 1})},
              [](const std::vector<Tensor> &t) { return ctc_loss(log_softmax(t[0], 2), t[1], t[2], t[3]); });
  }
}

TEST_CASE("gpu train: layers", "[gpu]") {
  auto check = [](auto make, const Tensor &x) {
    auto run = [&](Device device) {
      manual_seed(5);
      auto layer = make();
      layer.to(device);
      Tensor in = x.to(device);
      if (isFloat(in.dtype()))
        in.requires_grad_();
      Tensor y = layer(in);
      CHECK(y.device() == device);
      (y * y).sum().backward();
      StateDict all = layer.state_dict(); // with what it has counted
      for (const auto &[name, parameter] : layer.named_parameters())
        all.emplace_back("gradient of " + name, parameter->grad());
      if (isFloat(in.dtype()))
        all.emplace_back("gradient", in.grad());
      all.emplace_back("result", y.detach());
      return all;
    };
    const StateDict want = run(cpu), got = run(cuda(0));
    for (const auto &[name, value] : got)
      CHECK(value.device() == cuda(0));
    checkSame(got, want);
  };
  SECTION("norms") {
    check([] { return nn::BatchNorm2d(2); }, numbers({2, 2, 3, 3}, 1));
    check([] { return nn::LayerNorm({6}); }, numbers({3, 6}, 1));
  }
  SECTION("a table") {
    check([] { return nn::Embedding(5, 3); }, tensor({1, 4, 1}));
  }
  SECTION("attention") {
    check([] { return nn::MultiheadAttention(4, 2); }, numbers({2, 3, 4}, 1));
  }
  SECTION("recurrent") {
    check(
        [] {
          struct Lstm : nn::Module {
            nn::LSTM inner = register_module("inner", nn::LSTM(3, 2));
            Tensor operator()(const Tensor &x) const { return std::get<0>(inner(x)); }
          };
          return Lstm();
        },
        numbers({4, 2, 3}, 1));
  }
}
