// Programs that a tracer could misinterpret: modes of the caller, variables of the function, other threads, states,
// random numbers, hooks. They were written against the public headers alone, without a look at the code that traces,
// except for those of the last test, on bodies of loops and branches.
#include "test/frontend/Misleading.h"
#include <burin/training/autocast.h>
#include <burin/training/gradients.h>
#include <burin/training/optim.h>
#include <thread>

TEST_CASE("misleading modes of the caller") {
  SECTION("mixed precision around the call") {
    Tensor w = rows(3);
    auto f = [&](const Tensor &x) { return matmul(x, w); };
    auto compiled = jit(f, kCheck);
    for (int i = 0; i < 4; ++i) {
      Autocast scope(bf16, i % 2 == 1);
      CHECK(compiled(rows(2)).dtype() == f(rows(2)).dtype());
      CHECK(isClose(compiled(rows(2)), f(rows(2))));
    }
  }
  SECTION("whether the caller records gradients") {
    refused([](const Tensor &x) { return is_grad_enabled() ? x * 2 : x; }, kPlus, "is_grad_enabled");
    right(
        [](const Tensor &x) {
          NoGrad off;
          return is_grad_enabled() ? x * 2 : x;
        },
        {kPlus, kMinus});
    right(
        [](const Tensor &x) {
          EnableGrad on;
          return is_grad_enabled() ? x * 2 : x;
        },
        {kPlus});
  }
  SECTION("no gradients around the call") {
    Parameter w(tensor({3.0, 4.0, 5.0}));
    auto f = [&](const Tensor &x) { return (x * w).sum(); };
    auto compiled = jit(f, kCheck);
    for (bool isOn : {true, false, true}) {
      std::optional<NoGrad> off;
      if (!isOn)
        off.emplace();
      CHECK(isClose(compiled(kPlus), f(kPlus)));
      CHECK(compiled(kPlus).requires_grad() == isOn);
    }
  }
  SECTION("a variable of the thread") {
    static thread_local double factor = 1;
    factor = 1;
    auto f = jit([](const Tensor &x) { return x * factor; }, kCheck);
    f(kPlus);
    std::string what;
    std::thread([&] {
      factor = 2;
      what = messageOf([&] { f(kPlus); });
    }).join();
    CHECK(hasPlace(what));
  }
  SECTION("a variable of the environment") {
    unsetenv("MISLEADING_SCALE");
    found([](const Tensor &x) { return getenv("MISLEADING_SCALE") ? x * 2 : x * 3; }, kPlus,
          [] { setenv("MISLEADING_SCALE", "2", 1); });
    unsetenv("MISLEADING_SCALE");
  }
}

TEST_CASE("misleading variables of the function") {
  SECTION("a counter in the closure") {
    auto f = jit([n = 0](const Tensor &x) mutable { return x + double(++n); }, kCheck);
    f(kPlus);
    CHECK(hasPlace(messageOf([&] { f(kPlus); })));
  }
  SECTION("a zero that becomes negative") {
    double zero = 0.0;
    found([&](const Tensor &x) { return x / (x * 0 + zero); }, kMinus, [&] { zero = -0.0; });
  }
  SECTION("a captured NaN") {
    const double nothing = std::nan("");
    auto f = jit([&](const Tensor &x) { return where(x > 1.5, x, nothing); }, kCheck);
    for (int i = 0; i < 3; ++i) {
      std::vector<float> y = floats(f(kPlus * double(i + 1)));
      CHECK(std::isnan(y[0]) == (i == 0));
      CHECK(y[2] == 3.0f * float(i + 1));
    }
  }
  SECTION("a captured tensor of another element type") {
    Tensor c = tensor({1, 2, 3}, i32);
    found([&](const Tensor &x) { return x.to(i64) * c; }, kPlus, [&] { c = tensor({1, 2, 3}, i64); });
  }
  SECTION("a list of axes") {
    std::vector<int64_t> order{0, 1};
    found([&](const Tensor &x) { return x.transpose(order); }, rows(3), [&] { order = {1, 0}; });
  }
  SECTION("a strategy behind a pointer") {
    struct Activation {
      virtual ~Activation() = default;
      virtual Tensor apply(const Tensor &x) const { return relu(x); }
    };
    struct Smooth : Activation {
      Tensor apply(const Tensor &x) const override { return gelu(x); }
    };
    std::unique_ptr<Activation> activation = std::make_unique<Activation>();
    found([&](const Tensor &x) { return activation->apply(x); }, kPlus,
          [&] { activation = std::make_unique<Smooth>(); });
  }
  SECTION("the argument, changed in the function") {
    auto f = [](Tensor x) {
      x.set(0, 7.0);
      x += 1.0;
      return x * 2;
    };
    Tensor x = tensor({1.0, 2.0, 3.0});
    right(f, {x, kMinus});
    CHECK(isClose(x, kPlus));
  }
  SECTION("a number and a tensor of one element") {
    auto f = [](const Tensor &x, const Tensor &factor) { return x * factor; };
    auto compiled = jit(f, kCheck);
    const Tensor half = kPlus.to(f16), whole = tensor({1, 2, 3}, i32);
    for (int round = 0; round < 2; ++round) {
      CHECK(isClose(compiled(half, 2.0), half * 2.0));
      CHECK(isClose(compiled(half, tensor(2.0)), half * tensor(2.0)));
      CHECK(isClose(compiled(whole, 2), whole * 2));
      CHECK(isClose(compiled(whole, tensor(2)), whole * tensor(2)));
      CHECK(isClose(compiled(whole, true), whole * true));
    }
  }
  SECTION("an error that the function handles") {
    auto f = [](const Tensor &x) {
      try {
        return x.reshape({2, 3});
      } catch (const Error &) {
        return x * 2;
      }
    };
    right(f, {rows(2), rows(3), rows(2)});
    refused(f, rows(3), "reshape", dynamic({{0, 0}}));
    right([](const Tensor &x) { return x.reshape({-1, 3}) * 2; }, {rows(3), rows(2)}, dynamic({{0, 0}}));
  }
  SECTION("the larger one of two sizes") {
    auto f = [](const Tensor &x, const Tensor &y) { return x.size(0) < y.size(0) ? x.sum() : y.sum(); };
    CHECK(hasPlace(messageOf([&] { jit(f, dynamic({{0, 0}, {1, 0}}))(rows(2), rows(3)); })));
    auto compiled = jit(f, kCheck);
    for (int n : {2, 3, 4})
      CHECK(isClose(compiled(rows(n), rows(3)), f(rows(n), rows(3))));
  }
  SECTION("ops on another thread") {
    auto f = [](const Tensor &x) {
      Tensor y;
      std::exception_ptr problem;
      std::thread([&] {
        try {
          y = x * 2;
        } catch (...) {
          problem = std::current_exception();
        }
      }).join();
      if (problem)
        std::rethrow_exception(problem);
      return y + 1;
    };
    CHECK(isClose(f(kPlus), kPlus * 2 + 1));
    refused(f, kPlus, "on another thread");
  }
}

TEST_CASE("misleading arguments of functions of functions") {
  SECTION("the direction of a loop") {
    bool isReverse = false;
    found(
        [&](const Tensor &x) {
          auto step = [](const std::vector<Tensor> &s, const std::vector<Tensor> &e) {
            Tensor next = s[0] * 0.5 + e[0];
            return ScanResult{{next}, {next}};
          };
          return scan(step, {tensor(0.0)}, {x}, isReverse).outputs[0];
        },
        kPlus, [&] { isReverse = true; });
  }
  SECTION("the limit of a loop") {
    int64_t limit = 5;
    found(
        [&](const Tensor &x) {
          return while_loop([](const Tensor &v) { return v.sum() < 100.0; }, [](const Tensor &v) { return v * 2; }, x,
                            limit);
        },
        kPlus, [&] { limit = 2; });
  }
  SECTION("a branch chosen by a captured number") {
    int chosen = 0;
    found([&](const Tensor &x) { return switch_case(chosen, [&] { return x * 2; }, [&] { return x * 3; }); }, kPlus,
          [&] { chosen = 1; });
  }
  SECTION("a gradient of the user's") {
    double factor = 1;
    auto square = custom_vjp([](const std::vector<Tensor> &x) { return std::vector<Tensor>{x[0] * x[0]}; },
                             [&](const std::vector<Tensor> &x, const std::vector<Tensor> &,
                                 const std::vector<Tensor> &g) { return std::vector<Tensor>{x[0] * g[0] * factor}; });
    found([&](const Tensor &x) { return grad(square({x})[0].sum(), {x})[0]; }, kPlus, [&] { factor = 3; });
  }
  SECTION("a recomputed function") {
    double factor = 1;
    auto part = remat([&](const Tensor &x) { return sin(x * factor); });
    found([&](const Tensor &x) { return grad(part(x).sum(), {x})[0]; }, kPlus, [&] { factor = 3; });
  }
  SECTION("a hook of a weight") {
    Parameter w(ones({3}));
    auto f = jit([&](const Tensor &x) { return (x * w).sum().backward(), w->grad() * 1; }, kCheck);
    CHECK(isClose(f(kPlus), kPlus));
    w->register_hook([](const Tensor &g) { return g * 10; });
    std::string what = messageOf([&] { CHECK(isClose(f(kPlus), kPlus * 10)); });
    CHECK((what.empty() || hasPlace(what)));
  }
  SECTION("a compiled graph that the function runs") {
    Graph inner = trace([](const Tensor &x) { return x * 2; }, {kPlus.spec()});
    refused([&](const Tensor &x) { return inner.run({x})[0] + 1; }, kPlus, "call the function it came from");
  }
}

TEST_CASE("misleading states") {
  SECTION("two that are swapped") {
    auto f = [](Parameter a, Parameter b) {
      return [a, b](const Tensor &x) mutable {
        Tensor old = a.value();
        a.set(b.value() + x);
        b.set(old);
        return a.value() - old;
      };
    };
    auto eager = f(Parameter::state(ones({3})), Parameter::state(zeros({3})));
    auto compiled = jit(f(Parameter::state(ones({3})), Parameter::state(zeros({3}))), kCheck);
    for (int i = 0; i < 5; ++i)
      CHECK(isClose(compiled(kPlus * double(i)), eager(kPlus * double(i))));
  }
  SECTION("results that are the state") {
    Parameter p = Parameter::state(zeros({3}));
    auto f = jit([&](const Tensor &x) { return p.set(p.value() + x), p.value(); }, kCheck);
    std::vector<Tensor> kept;
    for (int i = 0; i < 5; ++i)
      kept.push_back(f(kPlus));
    for (int i = 0; i < 5; ++i)
      CHECK(isClose(kept[size_t(i)], kPlus * double(i + 1)));
  }
  SECTION("the argument becomes the state") {
    Parameter p = Parameter::state(zeros({3}));
    auto f = jit(
        [&](const Tensor &x) {
          Tensor before = p.value();
          p.set(x);
          return before;
        },
        kCheck);
    Tensor x = tensor({1.0, 2.0, 3.0});
    f(x);
    x += 10.0;
    CHECK(isClose(f(x), kPlus));
    x.set(0, 0.0);
    CHECK(isClose(f(kMinus), kPlus + 10));
    CHECK(isClose(f(kPlus), kMinus));
  }
  SECTION("set by one branch") {
    Parameter n = Parameter::state(tensor(0));
    auto f = jit(
        [&](const Tensor &x) {
          return cond(
              x.sum() > 0,
              [&] {
                n.set(n.value() + 1);
                return x * n.value();
              },
              [&] { return x; });
        },
        kCheck);
    CHECK(isClose(f(kPlus), kPlus));
    CHECK(isClose(f(kMinus), kMinus));
    CHECK(isClose(f(kPlus), kPlus * 2));
    CHECK(n->item<int64_t>() == 2);
  }
  SECTION("two functions with one state") {
    Parameter p = Parameter::state(ones({3}));
    auto twice = jit([&](const Tensor &x) { return p.set(p.value() * 2), x * p; }, kCheck);
    auto plus = jit([&](const Tensor &x) { return p.set(p.value() + x), p * 1.0; }, kCheck);
    Tensor want = ones({3});
    for (int i = 0; i < 4; ++i) {
      want = want * 2;
      CHECK(isClose(twice(kPlus), kPlus * want));
      want = want + kMinus;
      CHECK(isClose(plus(kMinus), want));
    }
  }
  SECTION("set in every other call") {
    Parameter p = Parameter::state(zeros({}));
    int calls = 0;
    auto f = jit(
        [&](const Tensor &x) {
          if (calls++ % 2 == 1)
            p.set(p.value() + 1);
          return x + p.value();
        },
        kCheck);
    f(kPlus);
    CHECK(hasPlace(messageOf([&] { f(kPlus); })));
    CHECK(p->item() == 0);
  }
  SECTION("a learning rate and frozen weights at call 50") {
    auto build = [] { return std::make_pair(nn::Linear(3, 2), nn::Linear(2, 1)); };
    manual_seed(5);
    auto eager = build(), compiled = build();
    compiled.first.load_state_dict(eager.first.state_dict());
    compiled.second.load_state_dict(eager.second.state_dict());
    auto stepOf = [](std::pair<nn::Linear, nn::Linear> &net, optim::SGD &sgd) {
      return [&net, &sgd](const Tensor &x) {
        Tensor loss = net.second(tanh(net.first(x))).pow(2).mean();
        loss.backward();
        sgd.step();
        sgd.zero_grad();
        return loss.detach();
      };
    };
    auto all = [](std::pair<nn::Linear, nn::Linear> &net) {
      return std::vector{net.first.weight, net.first.bias, net.second.weight, net.second.bias};
    };
    optim::SGD one(all(eager), {.lr = 0.05}), other(all(compiled), {.lr = 0.05});
    auto plain = stepOf(eager, one);
    auto fast = jit(stepOf(compiled, other), kCheck);
    for (int call = 1; call <= 55; ++call) {
      if (call == 50)
        for (auto *net : {&eager, &compiled}) {
          net->first.freeze();
          (net == &eager ? one : other).set_lr(0.01);
        }
      CHECK(isClose(fast(rows(4)), plain(rows(4))));
    }
    CHECK(isClose(compiled.first.weight, eager.first.weight));
    CHECK(isClose(compiled.second.weight, eager.second.weight));
  }
}

TEST_CASE("misleading random numbers") {
  SECTION("in one branch") {
    Generator one(3), other(3);
    auto with = [](const Generator &g) {
      return [g](const Tensor &x) {
        return cond(x.sum() > 0, [&] { return x + g.rand({3}); }, [&] { return x * 2; }) + g.rand({3});
      };
    };
    auto eager = with(one);
    auto compiled = jit(with(other), kCheck);
    for (const Tensor &x : {kPlus, kMinus, kMinus, kPlus, kPlus})
      CHECK(isClose(compiled(x), eager(x)));
  }
  SECTION("until a draw is large") {
    Generator one(8), other(8);
    auto with = [](const Generator &g) {
      return [g](const Tensor &x) {
        auto [turns, last] = while_loop([](const Tensor &, const Tensor &v) { return v < 0.8; },
                                        [&](const Tensor &n, const Tensor &) { return std::pair(n + 1, g.rand({})); },
                                        std::pair(tensor(0), tensor(0.0)));
        return x * last + turns + g.rand({3});
      };
    };
    auto eager = with(one);
    auto compiled = jit(with(other), kCheck);
    for (int i = 0; i < 5; ++i)
      CHECK(isClose(compiled(kPlus), eager(kPlus)));
  }
  SECTION("a seed that is set between calls") {
    auto noisy = [](const Tensor &x) { return x + randn({3}); };
    auto f = jit(noisy, kCheck);
    for (int i = 0; i < 3; ++i) {
      manual_seed(uint64_t(i % 2));
      Tensor a = f(kPlus);
      manual_seed(uint64_t(i % 2));
      CHECK(isClose(a, noisy(kPlus)));
    }
  }
}

TEST_CASE("misleading bodies of loops and branches") {
  SECTION("a loop that counts in C++, and its count is used later") {
    foundAtOnce([](const Tensor &x) {
      int turns = 0;
      auto twice = [&](const Tensor &, const Tensor &v) { return ++turns, v * 2; };
      return fori_loop(0, 3, twice, x) * double(turns);
    });
  }
  SECTION("a loop that counts in C++, and its count is used in it") {
    foundAtOnce([](const Tensor &x) {
      int turns = 0;
      auto body = [&](const Tensor &, const Tensor &v) { return v * double(++turns); };
      return fori_loop(0, 3, body, x);
    });
  }
  SECTION("a counter per row") {
    static int row;
    row = 0;
    foundAtOnce([](const Tensor &x) { return map([](const Tensor &v) { return v * double(++row); }, x); });
  }
  SECTION("a list that a scan fills") {
    foundAtOnce([](const Tensor &x) {
      std::vector<double> seen;
      auto step = [&](const std::vector<Tensor> &sum, const std::vector<Tensor> &v) {
        seen.push_back(1);
        return ScanResult{{sum[0] + v[0]}, {}};
      };
      return scan(step, {tensor(0.0)}, {x}).states[0] / double(seen.size());
    });
  }
  SECTION("a number that both branches assign") {
    foundAtOnce([](const Tensor &x) {
      double factor = 1;
      Tensor y = cond(x.sum() > 0, [&] { return factor = 2, x + 1; }, [&] { return factor = 3, x - 1; });
      return y * factor;
    });
  }
  SECTION("a flag that the body of a loop turns") {
    foundAtOnce([](const Tensor &x) {
      bool isOdd = false;
      auto body = [&](const Tensor &v) { return isOdd = !isOdd, isOdd ? v * 2 : v * 3; };
      return while_loop([](const Tensor &v) { return v.sum() < 100.0; }, body, x);
    });
  }
  SECTION("the condition of a loop counts") {
    foundAtOnce([](const Tensor &x) {
      int turns = 0;
      return while_loop([&](const Tensor &v) { return v.sum() < 10.0 * ++turns; },
                        [](const Tensor &v) { return v * 2; }, x);
    });
  }
  SECTION("a generator of C++ in a branch") {
    std::srand(2);
    foundAtOnce(
        [](const Tensor &x) { return cond(x.sum() > 0, [&] { return x * double(std::rand()); }, [&] { return x; }); });
  }
  SECTION("a tensor that a branch assigns to a variable outside") {
    refused(
        [](const Tensor &x) {
          Tensor kept = x;
          Tensor y = cond(x.sum() > 0, [&] { return kept = x * 2; }, [&] { return x; });
          return y + kept;
        },
        kPlus, "");
  }
}
