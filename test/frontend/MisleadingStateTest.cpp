// Programs that a tracer could misinterpret: state, escaping tensors, calls, modes and random numbers.
#include "test/frontend/Misleading.h"
#include <map>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

TEST_CASE("misleading variables: another one of the same type") {
  struct Net : nn::Module {
    Parameter weight = register_parameter("weight", ones({3}));
    Tensor operator()(const Tensor &x) const { return x * weight; }
  } one, other;
  const char *what = "is another one than before";
  SECTION("a module in a training step") {
    Net *net = &one;
    auto step = jit(
        [&](const Tensor &x) {
          Tensor loss = (*net)(x).sum();
          net->weight.set(net->weight - grad(loss, {net->weight})[0]);
          return loss;
        },
        kCheck);
    step(kPlus);
    step(kPlus);
    net = &other;
    const Tensor before = one.weight.value();
    CHECK(contains(messageOf([&] { step(kPlus); }), what));
    CHECK(isClose(one.weight, before));
  }
  SECTION("a counter that is set") {
    Parameter first = Parameter::state(zeros({3})), second = Parameter::state(zeros({3})), *counter = &first;
    auto f = jit(
        [&](const Tensor &x) {
          counter->set(*counter + x);
          return counter->value();
        },
        kCheck);
    f(kPlus);
    counter = &second;
    CHECK(contains(messageOf([&] { f(kPlus); }), what));
  }
  SECTION("a generator") {
    Generator first(1), second(2), *generator = &first;
    auto f = jit([&](const Tensor &x) { return generator->randn({3}) + x; }, kCheck);
    f(kPlus);
    generator = &second;
    CHECK(contains(messageOf([&] { f(kPlus); }), what));
  }
}

TEST_CASE("misleading state") {
  static int global;
  global = 0;
  SECTION("a counter of calls") {
    int calls = 0;
    auto f = jit([&](const Tensor &x) { return x * double(++calls); }, kCheck);
    f(kPlus);
    CHECK(contains(messageOf([&] { f(kPlus); }), "MisleadingStateTest.cpp:"));
  }
  SECTION("a global") {
    found([&](const Tensor &x) { return x + double(global); }, kPlus, [&] { global = 7; });
  }
  SECTION("a tensor member that the function assigns") {
    struct Sum {
      Tensor total = zeros({3});
      Tensor operator()(const Tensor &x) { return total = total + x; }
    } sum;
    const std::string place = "the result of add at " + std::string(__FILE__) + ":" + std::to_string(__LINE__ - 2);
    auto f = jit([&](const Tensor &x) { return sum(x); }, {.check = JitCheck::Never, .dynamic = {}});
    CHECK_ERROR(f(kPlus), place.c_str(), "register_buffer");
    sum.total = zeros({3});
    CHECK_ERROR(trace(sum, {kPlus.spec()}), place.c_str(), "register_buffer");
    sum.total = zeros({3});
    Program program;
    program.add("sum", [&](const Tensor &x) { return sum(x); }, {kPlus.spec()});
    CHECK_ERROR(program.graph(), place.c_str(), "register_buffer");
  }
  SECTION("a buffer that the function sets") {
    struct Sum : nn::Module {
      Parameter total = register_buffer("total", zeros({3}));
      Tensor operator()(const Tensor &x) {
        total.set(total.value() + x);
        return total.value() * 2;
      }
    } eager, compiled;
    auto f = jit([&](const Tensor &x) { return compiled(x); }, kCheck);
    for (int i = 0; i < 5; ++i)
      CHECK(isClose(f(kPlus * double(i)), eager(kPlus * double(i))));
  }
  SECTION("an old value of a state") {
    Parameter p = Parameter::state(ones({3}));
    auto f = jit([&](const Tensor &x) { return p.set(p.value() * 2), x + p.value(); }, kCheck);
    Tensor old = p.value();
    f(kPlus);
    f(kPlus);
    CHECK(isClose(old, ones({3})));
    CHECK(isClose(p.value(), full({3}, 4.0f)));
  }
  SECTION("results of earlier calls") {
    auto f = jit([](const Tensor &x) { return x * 3.0; }, kCheck);
    Tensor a = f(kPlus), b = f(kMinus);
    CHECK(isClose(a, kPlus * 3.0));
    CHECK(isClose(b, kMinus * 3.0));
  }
  SECTION("a random number of C++") {
    std::srand(1);
    auto f = jit([](const Tensor &x) { return x * double(std::rand()); }, kCheck);
    f(kPlus);
    CHECK(contains(messageOf([&] { f(kPlus); }), "MisleadingStateTest.cpp:"));
  }
  SECTION("the order of a container") {
    std::map<int, double> factors{{1, 2.0}, {2, -1.0}};
    found(
        [&](Tensor x) {
          for (auto [key, factor] : factors)
            x = x * factor + 1;
          return x;
        },
        kPlus, [&] { factors = {{1, -1.0}, {2, 2.0}}; });
  }
  SECTION("an exception in the first trace") {
    bool isBroken = true;
    auto f = jit(
        [&](const Tensor &x) {
          if (isBroken)
            throw std::runtime_error("not now");
          return x + 1;
        },
        kCheck);
    CHECK_THROWS_AS(f(kPlus), std::runtime_error);
    isBroken = false;
    CHECK(isClose(f(kPlus), kPlus + 1));
    CHECK(isClose(kPlus + 1, tensor({2.0, 3.0, 4.0}))); // eager calls after the trace run eagerly
  }
  SECTION("an exception after a state was set") {
    Parameter p = Parameter::state(ones({3}));
    auto f = jit([&](const Tensor &x) { return p.set(p.value() + 1), x.reshape({5}); }, kCheck);
    CHECK(contains(messageOf([&] { f(kPlus); }), "MisleadingStateTest.cpp:"));
    CHECK(isClose(p.value(), ones({3})));
  }
}

TEST_CASE("misleading escapes") {
  SECTION("a tensor of the trace used outside") {
    Tensor kept;
    auto f = jit([&](const Tensor &x) { return kept = x * 2; }, kCheck);
    CHECK_ERROR(f(kPlus), "the result of mul at", "MisleadingStateTest.cpp:", "Return the tensor");
    CHECK(contains(messageOf([&] { (kept + 1.0).item(); }), "MisleadingStateTest.cpp:"));
  }
  SECTION("an argument of the trace used outside") {
    std::vector<Tensor> kept;
    auto f = jit(
        [&](const Tensor &x) {
          kept.push_back(x);
          return x * 2;
        },
        kCheck);
    CHECK_ERROR(f(kPlus), "an argument at", "in a variable outside of the traced function");
  }
  SECTION("a tensor that the function has dropped, and one of an eager call") {
    Tensor kept;
    bool isTraced = true;
    auto f = [&](const Tensor &x) {
      kept = x * 2;
      Tensor result = kept + 1;
      if (isTraced)
        kept = {};
      return result;
    };
    right(f, {kPlus, kMinus});
    isTraced = false;
    CHECK(isClose(f(kPlus), kept + 1));
  }
  SECTION("a tensor that is kept from the fifth call on") {
    Tensor kept;
    int calls = 0;
    auto f = jit(
        [&](const Tensor &x) {
          Tensor y = x * 2;
          if (++calls == 5)
            kept = y;
          return y;
        },
        kCheck);
    for (int i = 0; i < 4; ++i)
      f(kPlus);
    CHECK_ERROR(f(kPlus), "the result of mul at");
  }
  SECTION("a tensor of the trace in another trace") {
    Tensor kept;
    messageOf([&] { jit([&](const Tensor &x) { return kept = x * 2; }, kCheck)(kPlus); });
    refused([&](const Tensor &x) { return x + kept; }, kPlus, "another trace");
  }
  SECTION("a result that is an input") {
    right([](const Tensor &x) { return x; }, {kPlus, kMinus});
  }
  SECTION("a result that depends on no input") {
    right([](const Tensor &) { return kPlus * 2; }, {kPlus, kMinus, rows(2)});
  }
  SECTION("one tensor for two arguments") {
    auto f = jit([](const Tensor &x, const Tensor &y) { return x * 2 - y; }, kCheck);
    CHECK(isClose(f(kPlus, kPlus), kPlus));
    CHECK(isClose(f(kPlus, kMinus), kPlus * 3));
  }
  SECTION("one result twice") {
    auto f = jit(
        [](const Tensor &x) {
          Tensor y = x + 1;
          return std::pair(y, y);
        },
        kCheck);
    auto [a, b] = f(kPlus);
    a += 1.0;
    CHECK(isClose(b, kPlus + 1));
  }
}

TEST_CASE("misleading calls") {
  SECTION("a jitted function in a jitted function") {
    auto inner = jit([](const Tensor &x) { return x * 2; }, kCheck);
    right([&](const Tensor &x) { return inner(x) + inner(x * x); }, {kPlus, kMinus, rows(2)});
  }
  SECTION("recursion") {
    std::function<Tensor(const Tensor &, int)> power = [&](const Tensor &x, int n) {
      return n == 0 ? ones_like(x) : x * power(x, n - 1);
    };
    right([&](const Tensor &x) { return power(x, 4); }, {kPlus, kMinus});
  }
  SECTION("a call of itself with a smaller size") {
    std::function<Tensor(const Tensor &)> sum;
    auto f = jit([&](const Tensor &x) { return x.size(0) == 1 ? x[0] : x[0] + sum(x[Slice(1, None)]); }, kCheck);
    sum = [&](const Tensor &x) { return f(x); };
    for (int n : {4, 2, 1})
      CHECK(isClose(f(rows(n)), rows(n).sum({0})));
  }
  SECTION("numbers of different kinds") {
    auto f = jit([](const Tensor &x, const Tensor &n) { return x * n; }, kCheck);
    CHECK(isClose(f(kPlus, 2), kPlus * 2));
    CHECK(isClose(f(kPlus, 2.5), kPlus * 2.5));
    CHECK(isClose(f(kPlus, 3), kPlus * 3));
    CHECK(f(kPlus.to(i64), 3).dtype() == i64);
  }
  SECTION("integers that divide") {
    right([](const Tensor &x) { return x / 2; }, {tensor({-3, 3, 8}), kPlus, tensor({-3, 3, 8}, i32)});
  }
  SECTION("threads with different sizes") {
    auto f = jit([](const Tensor &x) { return (x * x).sum({0}); }, kCheck);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 1; t <= 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 5; ++i)
          wrong += !isClose(f(rows(t)), (rows(t) * rows(t)).sum({0}));
      });
    for (std::thread &thread : threads)
      thread.join();
    CHECK(wrong == 0);
  }
  SECTION("threads that share a state") {
    Parameter count = Parameter::state(tensor(0));
    auto f = jit([&](const Tensor &x) { return count.set(count.value() + 1), x; }, kCheck);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 10; ++i)
          f(kPlus);
      });
    for (std::thread &thread : threads)
      thread.join();
    CHECK(count->item<int64_t>() == 40);
  }
  SECTION("gradients of a jitted function") {
    auto inner = jit([](const Tensor &x) { return (x * x).sum(); }, kCheck);
    auto slope = jit([&](const Tensor &x) { return grad(inner(x), {x})[0]; }, kCheck);
    CHECK(isClose(slope(kPlus), kPlus * 2));
    CHECK(isClose(slope(kMinus), kMinus * 2));
  }
  SECTION("a backward pass from outside through a jitted function") {
    auto inner = jit([](const Tensor &x) { return x * x; }, kCheck);
    Tensor x = kPlus.detach().requires_grad_();
    Tensor y = (inner(x) + x).sum();
    CHECK(contains(messageOf([&] { y.backward(); }), "not differentiated from outside"));
    CHECK_FALSE(x.grad().defined());
  }
}

TEST_CASE("misleading modes and random numbers") {
  SECTION("dropout in training") {
    nn::Dropout layer(0.5);
    auto f = jit([&](const Tensor &x) { return layer(x); }, kCheck);
    Tensor x = ones({1000});
    CHECK(largestDifference(f(x), f(x)) > 0);
  }
  SECTION("batch norm, trained and evaluated in turns") {
    manual_seed(2);
    nn::BatchNorm1d eager(3), compiled(3);
    auto f = jit([&](const Tensor &x) { return compiled(x); }, kCheck);
    for (int i = 0; i < 8; ++i) {
      eager.train(i % 3 != 2);
      compiled.train(i % 3 != 2);
      Tensor x = randn({4, 3});
      CHECK(isClose(f(x), eager(x)));
    }
    CHECK(f.traces() <= 4);
    CHECK(isClose(compiled.running_var, eager.running_var));
  }
  SECTION("random numbers in the function") {
    auto noisy = [](const Tensor &x) { return x + randn({3}); };
    auto f = jit(noisy, kCheck);
    manual_seed(4);
    Tensor a = f(kPlus), b = f(kPlus);
    manual_seed(4);
    CHECK(isClose(a, noisy(kPlus)));
    CHECK(isClose(b, noisy(kPlus)));
  }
  SECTION("a seed that is set in the function") {
    auto fixed = [](const Tensor &x) { return manual_seed(3), x + randn({3}); };
    right(fixed, {kPlus, kMinus});
  }
  SECTION("a generator that is made in the function") {
    auto fixed = [](const Tensor &x) {
      Generator g(3);
      return x + g.randn({3}) + g.rand({3});
    };
    right(fixed, {kPlus, kMinus});
  }
  SECTION("a state that is made in the function") {
    right(
        [](const Tensor &x) {
          Parameter sum = Parameter::state(kPlus);
          sum.set(sum.value() + x);
          return sum.value() * 2;
        },
        {kPlus, kMinus, kPlus});
  }
}

TEST_CASE("a fork after jitted calls") {
  auto f = jit([](const Tensor &x) { return (x * 2).sum({0}); }, kCheck);
  f(rows(3));
  pid_t child = fork();
  if (child == 0) {
    alarm(30); // ends a deadlock
    bool isRight = isClose(f(rows(3)), (rows(3) * 2).sum({0}));
    _exit(isRight ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}
