#include "test/frontend/Check.h"
#include <thread>

TEST_CASE("jit traces once per signature") {
  int calls = 0;
  auto f = jit([&](const Tensor &x) {
    ++calls;
    return x * 2.0;
  });
  CHECK(floats(f(tensor({1.0}))) == std::vector<float>{2});
  CHECK(floats(f(tensor({3.0}))) == std::vector<float>{6});
  CHECK(calls == 1);
  f(tensor({1.0, 2.0}));
  f(tensor({1.0}, f64));
  f(tensor({5.0}));
  CHECK(calls == 3);
  auto copy = f;
  copy(tensor({1.0}));
  CHECK(copy.traces() == 3);
}

TEST_CASE("a number given to a jitted function is a number inside too") {
  auto f = jit([](const Tensor &x, const Tensor &s) { return x * s; });
  CHECK(f(tensor({2.0}, f16), 1.5).dtype() == f16);
  CHECK(f(tensor({2.0}, f64), 0.1).item() == 0.2);
  CHECK(f(tensor({2}), 3).dtype() == i64);
  CHECK(f(tensor({2}), 1.5).item() == 3.0);
  CHECK(f(tensor({2.0}, f16), 2.5).item() == 5.0);
  CHECK(f.traces() == 4); // a different number does not cause a new trace
}

TEST_CASE("results keep their form") {
  auto pair = jit([](const Tensor &x) { return std::pair(x + 1.0, x - 1.0); });
  auto [up, down] = pair(tensor({1.0}));
  CHECK(up.item() == 2);
  CHECK(down.item() == 0);
  auto list = jit([](const Tensor &x) { return split(x, {1, 2}); });
  CHECK(list(tensor({1.0, 2.0, 3.0})).size() == 2);
  auto number = jit([](const Tensor &) { return 2.5; });
  CHECK(number(tensor({1.0})).item() == 2.5);
}

TEST_CASE("a jitted module notices new weights and modes") {
  nn::Linear layer(2, 1);
  layer.eval();
  auto f = jit(layer);
  Tensor x = ones({1, 2});
  f(x);
  layer.weight.set(tensor({{1.0, 2.0}}));
  layer.bias.set(tensor({0.5}));
  CHECK(f(x).item() == 3.5);
  CHECK(f.traces() == 2);
  f(x);
  CHECK(f.traces() == 2);

  auto net = nn::Sequential(nn::Linear(2, 2), nn::Dropout(0.5));
  auto g = jit(net);
  CHECK(largestDifference(g(ones({64, 2})), g(ones({64, 2}))) > 0); // each call draws another mask
  net.eval();
  CHECK(largestDifference(g(x), net(x)) < 1e-6);
  CHECK(largestDifference(g(x), g(x)) == 0);
  net.train();
  g(x);
  CHECK(g.traces() == 3); // one trace per shape and mode; returning to a mode reuses its code
}

TEST_CASE("a jitted function inside a trace is part of it") {
  auto inner = jit([](const Tensor &x) { return x * 3.0; });
  Graph g = trace([&](const Tensor &x) { return inner(x) + 1.0; }, {{f32, {Dim("n")}}});
  CHECK(floats(g.run({tensor({1.0, 2.0})}).front()) == std::vector<float>{4, 7});
  CHECK(inner.traces() == 0);
}

TEST_CASE("jitted functions may be called from several threads") {
  auto f = jit([](const Tensor &x) { return (x * x).sum(); });
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 1; i <= 20; ++i)
        if (f(full({i % 3 + 1}, t)).item() != double(t) * t * (i % 3 + 1))
          ++wrong;
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == 0);
  CHECK(f.traces() == 3);
}

TEST_CASE("errors in a jitted function name the user's line") {
  auto f = jit([](const Tensor &x) { return x.reshape({7}); });
  CHECK(contains(messageOf([&] { f(zeros({2, 3})); }), atLine(__FILE__, __LINE__ - 1)));
  CHECK_ERROR(f(Tensor()), "empty");
}

TEST_CASE("a jitted function keeps the 64 variants that were used last") {
  auto f = jit([](const Tensor &x) { return x + 1; });
  for (int n = 1; n <= 64; ++n)
    f(ones({n}));
  CHECK(f.traces() == 64);
  f(ones({1})); // now used after all others
  CHECK(f.traces() == 64);
  f(ones({65})); // takes the place of size 2
  CHECK(f.traces() == 65);
  f(ones({1}));
  f(ones({3}));
  CHECK(f.traces() == 65);
  CHECK(f(ones({2}))(0).item() == 2);
  CHECK(f.traces() == 66);
}
