// State of jitted functions: parameters and buffers that they read and set.
#include "test/frontend/Check.h"
#include <burin/training/optim.h>
#include <cmath>
#include <thread>

namespace {

struct Counter : nn::Module {
  Parameter count = register_buffer("count", zeros({}, i64));
  Tensor operator()(const Tensor &x) {
    count.set(count + 1);
    return x + count.value().to(f32);
  }
};

/// One step of gradient descent on the parameters of a module.
void descend(nn::Module &module, const Tensor &loss, double rate) {
  std::vector<Tensor> weights;
  for (const Parameter &p : module.parameters())
    weights.push_back(p);
  std::vector<Tensor> gradients = grad(loss, weights);
  size_t i = 0;
  for (Parameter p : module.parameters())
    p.set((p - gradients[i++] * rate).detach());
}

} // namespace

TEST_CASE("a jitted function keeps its state between calls") {
  Counter counter;
  auto step = jit([&](const Tensor &x) { return counter(x); });
  for (int i = 1; i <= 5; ++i)
    CHECK(step(tensor(10.0f)).item() == 10 + i);
  CHECK(counter.count->item<int64_t>() == 5);
  counter.count.set(tensor(100, i64));
  CHECK(step(tensor(0.0f)).item() == 101);
  CHECK(step.traces() == 1);
}

TEST_CASE("a training step is traced once and equals eager training") {
  auto train = [](bool compiled) {
    manual_seed(3);
    auto net = nn::Sequential(nn::Linear(6, 16), nn::Tanh(), nn::Linear(16, 3));
    auto step = [&](const Tensor &x, const Tensor &y) {
      Tensor loss = pow(net(x) - y, 2).mean();
      descend(net, loss, 0.1);
      return loss.detach();
    };
    auto jitted = jit(step);
    std::vector<float> losses;
    for (int i = 0; i < 30; ++i) {
      Tensor x = randn({8, 6}), y = randn({8, 3});
      losses.push_back((compiled ? jitted(x, y) : step(x, y)).template item<float>());
    }
    CHECK(jitted.traces() == (compiled ? 1 : 0));
    for (const Parameter &p : net.parameters())
      for (float value : floats(p))
        losses.push_back(value);
    return losses;
  };
  std::vector<float> eager = train(false), compiled = train(true);
  REQUIRE(eager.size() == compiled.size());
  for (size_t i = 0; i < eager.size(); ++i)
    CHECK(eager[i] == Approx(compiled[i]).epsilon(1e-5).margin(1e-6));
}

TEST_CASE("backward() in a jitted step leaves gradients with the parameters") {
  auto train = [](bool compiled) {
    manual_seed(9);
    auto net = nn::Sequential(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 1));
    auto step = [&](const Tensor &x) {
      for (const Parameter &p : net.parameters())
        p->set_grad({});
      for (int part = 0; part < 2; ++part) // gradients accumulate
        pow(net(x), 2).mean().backward();
      for (Parameter p : net.parameters())
        p.set(p - p->grad() * 0.05);
      return pow(net(x), 2).mean().detach(); // with the updated parameters
    };
    auto jitted = jit(step);
    std::vector<float> losses;
    for (int i = 0; i < 10; ++i)
      losses.push_back((compiled ? jitted(ones({2, 4}) * i) : step(ones({2, 4}) * i)).template item<float>());
    CHECK(jitted.traces() == (compiled ? 1 : 0));
    return losses;
  };
  std::vector<float> eager = train(false), compiled = train(true);
  for (size_t i = 1; i < eager.size(); ++i) {
    CHECK(eager[i] > 0);
    CHECK(eager[i] == Approx(compiled[i]).epsilon(1e-5).margin(1e-7));
  }
}

TEST_CASE("gradients from outside of a traced function are not silently added to") {
  auto layer = nn::Linear(2, 1);
  layer(ones({1, 2})).sum().backward();
  auto step = jit([&](const Tensor &x) {
    layer(x).sum().backward();
    return layer.weight->grad();
  });
  CHECK(contains(messageOf([&] { step(ones({1, 2})); }), "zero_grad"));
  layer.weight->set_grad({});
  layer.bias->set_grad({});
  CHECK(floats(step(ones({1, 2}))) == std::vector<float>{1, 1});
  CHECK_FALSE(layer.weight->grad().defined());
}

TEST_CASE("batch norm in training mode updates its statistics under jit") {
  manual_seed(5);
  auto eager = nn::BatchNorm2d(3), compiled = nn::BatchNorm2d(3);
  auto step = jit([&](const Tensor &x) { return compiled(x); });
  for (int i = 0; i < 10; ++i) {
    Tensor x = randn({4, 3, 5, 5});
    CHECK(largestDifference(eager(x), step(x)) < 1e-6);
  }
  CHECK(largestDifference(eager.running_mean, compiled.running_mean) < 1e-6);
  CHECK(largestDifference(eager.running_var, compiled.running_var) < 1e-6);
  CHECK(compiled.num_batches_tracked->item<int64_t>() == 10);
  CHECK(step.traces() == 1);
  compiled.eval();
  Tensor x = randn({4, 3, 5, 5});
  eager.eval();
  CHECK(largestDifference(eager(x), step(x)) < 1e-6);
  CHECK(step.traces() == 2);
}

TEST_CASE("a hundred steps with batch norm, and changes in between, give eager's bits with one trace per mode") {
  struct Net : nn::Module {
    nn::Linear in = register_module("in", nn::Linear(6, 12)), out = register_module("out", nn::Linear(12, 3));
    nn::BatchNorm1d norm = register_module("norm", nn::BatchNorm1d(12));
    Tensor operator()(const Tensor &x) { return out(tanh(norm(in(x)))); }
  };
  auto train = [](bool compiled, size_t &traces) {
    manual_seed(8);
    Net net;
    optim::SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    auto step = [&](const Tensor &x, const Tensor &y) {
      Tensor loss = pow(net(x) - y, 2).mean();
      if (net.is_training()) {
        loss.backward();
        optimizer.step();
        optimizer.zero_grad();
      }
      return loss.detach();
    };
    auto jitted = jit(step);
    StateDict saved;
    std::vector<float> seen;
    for (int i = 0; i < 100; ++i) {
      Tensor x = randn({8, 6}), y = randn({8, 3});
      net.train(i % 10 != 9);
      if (i == 30)
        for (const auto &[name, value] : net.state_dict())
          saved.emplace_back(name, value * 1);
      if (i == 60)
        net.load_state_dict(saved);
      if (i % 25 == 24)
        optimizer.set_lr(0.1 / (i + 1));
      seen.push_back((compiled ? jitted(x, y) : step(x, y)).template item<float>());
    }
    for (const auto &[name, value] : net.state_dict())
      for (float number : floats(value.to(f32)))
        seen.push_back(number);
    traces = jitted.traces();
    return seen;
  };
  size_t none, traces;
  std::vector<float> eager = train(false, none), compiled = train(true, traces);
  CHECK(eager == compiled);
  CHECK(traces == 2);
}

TEST_CASE("what is only read is a constant until it has changed twice, then an input") {
  auto layer = nn::Linear(2, 1, {.bias = false});
  layer.eval();
  auto f = jit([&](const Tensor &x) { return layer(x); });
  for (int i = 0; i < 10; ++i) {
    layer.weight.set(full({1, 2}, float(i)));
    CHECK(f(ones({1, 2})).item() == 2 * i);
  }
  CHECK(f.traces() == 3);
}

TEST_CASE("parameters of a module in training mode are inputs from the first trace on") {
  auto net = nn::Sequential(nn::Linear(2, 3), nn::Tanh(), nn::Linear(3, 1));
  const std::vector<Parameter> parameters = net.parameters();
  auto f = jit([&](const Tensor &x) { return net(x); });
  auto change = [&](size_t i) {
    Parameter p = parameters[i];
    p.set(p + 0.5);
    CHECK(f(ones({1, 2})).item() == Approx(net(ones({1, 2})).item()));
    return f.traces();
  };
  for (int i = 0; i < 8; ++i)
    CHECK(change(size_t(i % 4)) == 1);
  net.eval(); // they are constants
  f(ones({1, 2}));
  CHECK(f.traces() == 2);
  CHECK(change(0) == 3);
  CHECK(change(1) == 4);
  net.train(); // the code of this mode has stayed
  for (int i = 0; i < 8; ++i)
    CHECK(change(size_t(i % 4)) == 4);
  net.requires_grad_(false); // frozen weights do not change
  auto g = jit([&](const Tensor &x) { return net(x); });
  g(ones({1, 2}));
  change(2);
  CHECK(g(ones({1, 2})).item() == Approx(net(ones({1, 2})).item()));
  CHECK(g.traces() == 2);
}

TEST_CASE("state of a fixed place is an input from the first trace on") {
  Parameter rate = Parameter::state(tensor(0.5f));
  auto f = jit([&](const Tensor &x) { return x * rate; });
  for (int i = 0; i < 4; ++i) {
    rate.set(tensor(float(i)));
    CHECK(f(tensor(2.0f)).item() == 2 * i);
  }
  CHECK(f.traces() == 1);
}

TEST_CASE("two parameters that hold one tensor are two states") {
  Tensor zero = zeros({2});
  Parameter a(zero), b(zero);
  auto f = jit([&](const Tensor &x) {
    a.set(a + x);
    b.set(b - x);
    return a + b * 10;
  });
  f(ones({2}));
  CHECK(floats(f(ones({2}))) == std::vector<float>{-18, -18});
  CHECK(floats(a) == std::vector<float>{2, 2});
  CHECK(floats(b) == std::vector<float>{-2, -2});
}

TEST_CASE("an exception in a traced function leaves its state alone") {
  Parameter a(tensor(1.0f));
  bool fails = true;
  auto f = jit([&](const Tensor &x) {
    a.set(a + x);
    if (fails)
      throw std::runtime_error("no");
    return a.value();
  });
  CHECK_THROWS_WITH(f(tensor(1.0f)), "no");
  CHECK(a->item() == 1);
  fails = false;
  CHECK(f(tensor(1.0f)).item() == 2);
  CHECK(a->item() == 2);
}

TEST_CASE("threads that share a state take turns") {
  Counter counter;
  auto step = jit([&](const Tensor &x) { return counter(x); });
  step(tensor(0.0f));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        step(tensor(0.0f)).wait();
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(counter.count->item<int64_t>() == 201);
}

TEST_CASE("threads read parameters while others step") {
  const int64_t size = GENERATE(8, 1 << 18); // runs on the calling thread, runs in a queue
  const int steps = size == 8 ? 400 : 30;
  Parameter first = Parameter::state(zeros({size})), second = Parameter::state(zeros({size}));
  auto by = [&](int amount) {
    return jit([=](const Tensor &x) mutable {
      first.set(first + amount);
      second.set(first.value() * 1);
      return x;
    });
  };
  auto one = by(1), two = by(2);
  std::atomic<int> torn = 0, backwards = 0, running = 2;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < steps; ++i)
        (t ? two : one)(tensor(1.0f));
      --running;
    });
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      float last = 0;
      auto read = [&](const Parameter &p) {
        const Tensor value = p.value();
        const float smallest = value.min().item<float>(), largest = value.max().item<float>();
        torn += smallest != largest || smallest != std::floor(smallest);
        backwards += largest < last; // both parameters change at once
        last = largest;
      };
      do {
        read(t ? first : second);
        read(t ? second : first);
      } while (running);
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(torn == 0);
  CHECK(backwards == 0);
  for (const Parameter &p : {first, second})
    CHECK((p->min().item() == 3 * steps && p->max().item() == 3 * steps));
  CHECK((one.traces() == 1 && two.traces() == 1));
}

TEST_CASE("a host function reads a state as it was before the run") {
  Parameter count = Parameter::state(zeros({}, i64));
  auto step = jit([&](const Tensor &x) {
    count.set(count + 1);
    return host_call([&](const Tensor &v) { return v + count->item<int64_t>(); }, x.spec(), x);
  });
  for (int i = 0; i < 3; ++i)
    CHECK(step(tensor(0.0f)).item() == i);
  CHECK(count->item<int64_t>() == 3);
}

/// A number that is 0, computed in a while.
static Tensor late() {
  Tensor x = full({700, 700}, 1e-3f);
  for (int i = 0; i < 6; ++i)
    x = matmul(x, x);
  return x.sum() * 0;
}

TEST_CASE("runs behind a failed one start with the states before it") {
  const int64_t size = GENERATE(3, 1 << 18);
  const bool isQueued = GENERATE(false, true); // behind work that delays the failure; else it has failed before
  Parameter total = Parameter::state(zeros({size})), count = Parameter::state(zeros({}, i64));
  auto step = jit([&](const Tensor &x) {
    total.set(total + x);
    count.set(count + 1);
    check(x > 0, "a value is not positive");
    return x + count.value().to(f32);
  });
  const Tensor one = ones({size});
  step(one).wait();
  step(one).wait();
  auto settle = [&](const Tensor &x) {
    if (!isQueued)
      messageOf([&] { x.wait(); });
    return x;
  };
  const Tensor begin = isQueued ? one + late() : one;
  const Tensor failed = settle(step(-begin)), again = settle(step(-one)), between = settle(total * 10),
               next = settle(step(one)), behind = settle(step(failed)), last = settle(step(one));
  CHECK(contains(messageOf([&] { failed.wait(); }), "a value is not positive"));
  CHECK(contains(messageOf([&] { again.wait(); }), "a value is not positive"));
  CHECK(floats(between) == std::vector<float>(size_t(size), 20));
  CHECK(floats(next) == std::vector<float>(size_t(size), 4));
  CHECK(contains(messageOf([&] { behind.wait(); }), "a value is not positive")); // its input has failed
  CHECK(floats(last) == std::vector<float>(size_t(size), 5));
  CHECK(floats(total) == std::vector<float>(size_t(size), 4));
  CHECK(count->item<int64_t>() == 4);
  CHECK(contains(messageOf([] { synchronize(); }), "a value is not positive"));
}

TEST_CASE("a state that was set to a failed tensor makes runs fail until it is set again") {
  const bool isQueued = GENERATE(false, true);
  Parameter total = Parameter::state(zeros({3}));
  auto step = jit([&](const Tensor &x) {
    total.set(total + x);
    return x;
  });
  const Tensor one = ones({3});
  step(one).wait();
  const Tensor begin = isQueued ? one + late() : one;
  const Tensor bad = take(begin, tensor({0, 1, 5}), 0);
  if (!isQueued)
    messageOf([&] { bad.wait(); });
  total.set(bad);
  for (int i = 0; i < 2; ++i)
    CHECK(contains(messageOf([&] { step(one).wait(); }), "is out of range"));
  CHECK(contains(messageOf([&] { total->wait(); }), "is out of range"));
  total.set(one);
  step(one).wait();
  CHECK(floats(total) == std::vector<float>{2, 2, 2});
  CHECK(!messageOf([] { synchronize(); }).empty());
}

TEST_CASE("old values that somebody holds stay as they were") {
  Parameter a(ones({3}));
  auto f = jit([&](const Tensor &x) {
    a.set(a + x);
    return a * 2;
  });
  Tensor before = a;
  f(ones({3}));
  Tensor between = a;
  f(ones({3}));
  CHECK(floats(before) == std::vector<float>{1, 1, 1});
  CHECK(floats(between) == std::vector<float>{2, 2, 2});
  CHECK(floats(a) == std::vector<float>{3, 3, 3});
}

TEST_CASE("mistakes with state are explained") {
  Parameter a(ones({3}));
  CHECK_ERROR(jit([&](const Tensor &x) { return a.set(x), x; })(ones({4})), "set", "f32[4]", "f32[3]");
  CHECK_ERROR(jit([&](const Tensor &x) { return a.set(a.value().to(f64)), x; })(ones({3})), "f64[3]", ".to(f32)");
  auto born = jit([&](const Tensor &x) { return Parameter(x * 2) + x; });
  CHECK(contains(messageOf([&] { born(ones({3})); }), "NoTrace"));
}

TEST_CASE("a parameter that a loop reads is folded into it") {
  auto cell = nn::Linear(4, 4);
  Tensor x = randn({5, 2, 4});
  auto run = [&](const Tensor &xs) {
    return scan([&](const std::vector<Tensor> &s,
                    const std::vector<Tensor> &e) { return ScanResult{{tanh(cell(s[0]) + e[0])}, {}}; },
                {zeros({2, 4})}, {xs})
        .states[0];
  };
  auto f = jit(run);
  CHECK(largestDifference(f(x), run(x)) < 1e-6);
  cell.weight.set(cell.weight * 2);
  CHECK(largestDifference(f(x), run(x)) < 1e-6);
}
