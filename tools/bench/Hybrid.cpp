// burin-bench-hybrid: what loops, random numbers and states cost. Names of measurements come on stdin, one per line;
// one number goes to stdout for each. tools/bench/hybrid.py says what they mean.
#include <burin/burin.h>
#include <chrono>
#include <iostream>
#include <map>

using namespace burin;

namespace {

using Clock = std::chrono::steady_clock;

/// Seconds of one call, in a row of calls that takes about a fifth of a second.
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

/// Nanoseconds of one turn more: the difference between many turns and few.
template <class Make> double nanosecondsPerTurn(Make make) {
  constexpr int64_t kFew = 1000, kMany = 21000;
  auto few = make(kFew), many = make(kMany);
  return (secondsOf(many) - secondsOf(few)) / double(kMany - kFew) * 1e9;
}

/// A while_loop whose body has `kernels` kernels on 16 floats, with a counter and its condition.
double whileLoop(int kernels) {
  return nanosecondsPerTurn([&](int64_t turns) {
    auto loop = [=](const Tensor &x) {
      auto [count, value] = while_loop([=](const Tensor &i, const Tensor &) { return i < turns; },
                                       [=](const Tensor &i, const Tensor &v) {
                                         Tensor next = v;
                                         for (int k = 0; k < kernels; ++k) // a cumulative sum is a kernel of its own
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

/// Normally distributed f32, per second.
double normals() {
  Generator generator(1);
  auto draw = jit([&] { return generator.randn({1000, 1000}); });
  return 1e6 / secondsOf([&] { draw().wait(); });
}

/// Seconds of `cache[:, t] = row` and `t += 1` for a state of this many bytes. With `isHeld` somebody holds the old
/// value, so that it is copied.
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

/// How often a training step of a hundred calls is traced: learning rates change, weights are loaded.
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
