// burin-bench-hybrid: measures loops, random numbers and states. Reads names of measurements from stdin, one per line,
// and prints one number per name to stdout; tools/bench/pages/hybrid.py documents the names.
#include <burin/burin.h>
#include <chrono>
#include <iostream>
#include <map>

using namespace burin;

namespace {

using Clock = std::chrono::steady_clock;

/// Returns the seconds per call, averaged over about 0.2 s of consecutive calls.
template <class F> double secondsOf(F &&call) {
  call();
  for (int64_t calls = 1;; calls *= 2) {
    auto begin = Clock::now();
    for (int64_t i = 0; i < calls; ++i)
      call();
    double taken = std::chrono::duration<double>(Clock::now() - begin).count();
    if (taken > .2)
      return taken / double(calls);
  }
}

/// Returns the nanoseconds per loop iteration, as the difference between a loop with many iterations and one with few.
template <class Make> double nanosecondsPerTurn(Make make) {
  constexpr int64_t kFew = 1000, kMany = 21000;
  auto few = make(kFew), many = make(kMany);
  return (secondsOf(many) - secondsOf(few)) / double(kMany - kFew) * 1e9;
}

/// A while_loop whose body has `kernels` kernels on 16 floats, and a scalar counter that the condition tests.
double whileLoop(int kernels) {
  return nanosecondsPerTurn([&](int64_t turns) {
    auto loop = [=](const Tensor &x) {
      auto [count, value] = while_loop([=](const Tensor &i, const Tensor &) { return i < turns; },
                                       [=](const Tensor &i, const Tensor &v) {
                                         Tensor next = v;
                                         // a cumulative sum is not fused: one kernel each
                                         for (int k = 0; k < kernels; ++k)
                                           next = cumsum(next, 0) * 0.5;
                                         return std::pair(i + 1, next);
                                       },
                                       std::pair(tensor(0), x));
      return value;
    };
    Artifact artifact = compile(trace(loop, {{DType::f32, {16}}}));
    return [artifact, x = ones({16})] { artifact(x).wait(); };
  });
}

/// Returns the number of normally distributed f32 values generated per second.
double normals() {
  Generator generator(1);
  auto draw = jit([&] { return generator.randn({1000, 1000}); });
  return 1e6 / secondsOf([&] { draw().wait(); });
}

/// Returns the seconds of `cache[:, t] = row; t += 1` for a state of `bytes` bytes. With `isHeld`, the old value is
/// still referenced elsewhere, so that the state is copied instead of updated in place.
double update(int64_t bytes, bool isHeld) {
  const int64_t rows = bytes / 4 / 1024;
  Parameter cache = Parameter::state(zeros({rows, 1024}), "cache"), at = Parameter::state(zeros({}, i64), "at");
  auto put = jit([&](const Tensor &row) {
    Tensor where = broadcast_to(reshape(at.value(), {1, 1}), {1, 1024});
    cache.set(scatter(cache, where, row, 0, "set", /*drop=*/true));
    at.set(remainder(at + 1, rows));
    return row;
  });
  Tensor row = randn({1, 1024}), held;
  return secondsOf([&] {
    if (isHeld)
      held = cache.value();
    put(row).wait();
  });
}

/// Returns how often a training step is traced in a hundred calls in which learning rates change and weights are
/// loaded. The expected result is 1: neither change needs a new trace.
double traces() {
  manual_seed(1);
  auto net = nn::Sequential(nn::Linear(16, 32), nn::BatchNorm1d(32), nn::ReLU(), nn::Linear(32, 4));
  optim::SGD optimizer(net.parameters(), {.lr = .1, .momentum = .9});
  auto step = jit([&](const Tensor &x, const Tensor &y) {
    Tensor loss = cross_entropy(net(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss.detach();
  });
  StateDict saved = net.state_dict();
  for (int i = 0; i < 100; ++i) {
    if (i % 10 == 5)
      optimizer.set_lr(.1 / (1 + i));
    if (i == 50)
      net.load_state_dict(saved);
    step(randn({8, 16}), randint(0, 4, {8})).wait();
  }
  return double(step.traces());
}

} // namespace

int main() try {
  set_num_threads(1);
  const std::map<std::string, std::function<double()>> measurements{
      {"while-1", [] { return whileLoop(1); }},
      {"while-8", [] { return whileLoop(8); }},
      {"normals", normals},
      {"update-1", [] { return update(1 << 20, false); }},
      {"update-64", [] { return update(64 << 20, false); }},
      {"copy-1", [] { return update(1 << 20, true); }},
      {"copy-64", [] { return update(64 << 20, true); }},
      {"traces", traces},
  };
  for (std::string name; std::getline(std::cin, name);)
    std::cout << measurements.at(name)() << std::endl;
} catch (const std::exception &error) {
  std::cerr << error.what() << "\n";
  return 1;
}
