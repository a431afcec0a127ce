// The check that traces jitted functions again and compares with the compiled graph, and reports of recompilations.
#include "test/frontend/Check.h"
#include <burin/graph/control.h>
#include <burin/graph/host.h>
#include <burin/training/gradients.h>
#include <unistd.h>

namespace {

constexpr JitOptions kAlways{.check = JitCheck::Always, .dynamic = {}};

/// Returns the text that `code` writes to standard error.
template <class F> std::string errorOutput(F &&code) {
  std::FILE *file = std::tmpfile();
  std::fflush(stderr);
  int before = dup(2);
  dup2(fileno(file), 2);
  code();
  std::fflush(stderr);
  dup2(before, 2);
  close(before);
  REQUIRE(std::fseek(file, 0, SEEK_SET) == 0);
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

struct Variable {
  Variable(const char *name, const char *value) : name(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name); }
  const char *name;
};

} // namespace

TEST_CASE("a check finds what a trace cannot see change") {
  Tensor x = ones({3});
  SECTION("a captured tensor that is assigned") {
    Tensor c = tensor({1.0, 2.0, 3.0});
    auto f = jit([&](const Tensor &x) { return x + c; }, kAlways);
    CHECK(floats(f(x)) == std::vector<float>{2, 3, 4});
    CHECK(floats(f(x)) == std::vector<float>{2, 3, 4});
    c = tensor({1.0, 2.0, 7.0});
    CHECK_ERROR(f(x), "the constant", "was dense<[1", "[1.000000e+00, 2.000000e+00, 7");
  }
  SECTION("a large captured tensor") {
    Tensor c = ones({1000, 3});
    auto f = jit([&](const Tensor &x) { return x + c; }, kAlways);
    f(x);
    f(x);
    c = zeros({1000, 3});
    CHECK_ERROR(f(x), "the constant");
  }
  SECTION("a captured number") {
    double scale = 2;
    int line = __LINE__ + 1;
    auto f = jit([&](const Tensor &x) { return x * scale; }, kAlways);
    f(x);
    scale = 3;
    std::string what = messageOf([&] { f(x); });
    INFO(what);
    CHECK(contains(what, "JitCheckTest.cpp:" + std::to_string(line)));
  }
  SECTION("a branch on a global, at call 50") {
    int calls = 0;
    auto f = jit([&](const Tensor &x) { return calls < 50 ? exp(x) : sin(x); }, kAlways);
    for (; calls < 50; ++calls)
      f(x);
    CHECK_ERROR(f(x), "it recorded exp", "and now sin");
  }
  SECTION("another attribute, order, or number of ops") {
    int axis = 0, turns = 1;
    bool isSwapped = false;
    auto f = jit(
        [&](const Tensor &x) {
          Tensor y = x.reshape({1, 3}), z = isSwapped ? exp(y) - y : y - exp(y);
          for (int i = 0; i < turns; ++i)
            z = z.cos();
          return z.sum({axis});
        },
        kAlways);
    f(x);
    axis = 1;
    CHECK_ERROR(f(x), "of reduce_sum");
    axis = 0;
    f(x);
    isSwapped = true;
    CHECK_ERROR(f(x), "is now computed from other values");
    isSwapped = false;
    turns = 2;
    CHECK_ERROR(f(x), "it recorded");
  }
  SECTION("it throws later") {
    bool isBroken = false;
    auto f = jit([&](const Tensor &x) { return isBroken ? x + ones({2}) : x; }, kAlways);
    f(x);
    isBroken = true;
    CHECK_ERROR(f(x), "it now throws");
  }
}

TEST_CASE("a check finds nothing in functions that are pure") {
  auto net = nn::Sequential(nn::Linear(3, 4), nn::BatchNorm1d(4), nn::Dropout(0.5));
  auto f = jit([&](const Tensor &x) { return net(x) + randn({4}); }, kAlways);
  for (int i = 0; i < 6; ++i)
    f(ones({2, 3}));
  net.eval();
  for (int i = 0; i < 3; ++i)
    f(ones({2, 3}));
  CHECK(f.traces() == 2);
}

TEST_CASE("a check finds nothing in branches and loops that are pure") {
  Parameter total = Parameter::state(zeros({})), weight(ones({3}));
  auto loss = [&](const Tensor &x) {
    auto step = [&](const std::vector<Tensor> &s, const std::vector<Tensor> &e) {
      total.set(total.value() + e[0]);
      Tensor noise = host_call([](const Tensor &v) { return v * 0; }, TensorSpec{f32, {}}, e[0].detach()).detach();
      Tensor next = cond(
          e[0] > 2, [&] { return s[0] * e[0] + noise; },
          [&] {
            return fori_loop(0, 3, [&](const Tensor &, const Tensor &v) { return sin(v * weight.value()[0]); }, s[0]);
          });
      return ScanResult{{next}, {next + ones({2})}};
    };
    ScanResult all = scan(step, {tensor(0.5f)}, {x * weight});
    return all.outputs[0].sum() + map([](const Tensor &v) { return v + rand({}); }, x).sum();
  };
  auto f = jit([&](const Tensor &x) { return grad(loss(x), {x, weight}); }, kAlways);
  auto g = jit(
      [&](const Tensor &x) {
        auto body = [](const std::vector<Tensor> &s, const std::vector<Tensor> &e) {
          debug_print(e[0], "element");
          return ScanResult{{s[0] * e[0]}, {}};
        };
        return grad(scan(body, {tensor(1.0f)}, {x}).states[0], {x})[0];
      },
      kAlways);
  std::string prints = errorOutput([&] {
    for (int i = 0; i < 3; ++i) {
      f(tensor({1.0f, 2.0f, 3.0f}));
      CHECK(floats(g(tensor({1.0f, 2.0f, 3.0f}))) == std::vector<float>{6, 3, 2});
    }
  });
  CHECK(lines(prints) == 10); // one per element and call, and an empty one
  CHECK(f.traces() == 1);
  CHECK(total->item() == 18);
}

TEST_CASE("a check before the first run finds bodies that change variables") {
  int turns = 0;
  auto f = [&](const Tensor &x) {
    return fori_loop(0, 3, [&](const Tensor &, const Tensor &v) { return ++turns, v * 2; }, x) * double(turns);
  };
  CHECK_ERROR(jit(f, kAlways)(ones({3})), "a variable that the body of a loop or a branch changes");
  turns = 0;
  CHECK_ERROR(jit(f, {.check = JitCheck::First, .dynamic = {}})(ones({3})), "the constant");
  turns = 0;
  auto unchecked = jit(f, {.check = JitCheck::Never, .dynamic = {}});
  CHECK(floats(unchecked(ones({3})))[0] == 8);
  CHECK(turns == 1);
}

TEST_CASE("checks run as often as asked") {
  int runs = 0;
  auto count = [&](JitOptions options, int calls) {
    runs = 0;
    auto f = jit([&](const Tensor &x) { return ++runs, x + 1; }, options);
    for (int i = 0; i < calls; ++i)
      f(ones({2}));
    return runs;
  };
  CHECK(count({.check = JitCheck::Never, .dynamic = {}}, 10) == 1);
  CHECK(count({.check = JitCheck::First, .dynamic = {}}, 10) == 4);
  CHECK(count({.check = JitCheck::Always, .dynamic = {}}, 10) == 10);
  int sometimes = count({.check = JitCheck::Sometimes, .dynamic = {}}, 400);
  CHECK(sometimes >= 3);
  CHECK(sometimes < 60);
  Variable always("BURIN_JIT_CHECK", "always");
  CHECK(count({.check = JitCheck::Never, .dynamic = {}}, 10) == 10);
}

TEST_CASE("dynamic sizes need one compilation") {
  auto f = jit([](const Tensor &x, const Tensor &y) { return (x * y).sum({1}); }, {.dynamic = {{0, 0}, {1, 0}}});
  for (int n : {3, 1, 7, 0, 100}) {
    Tensor x = randn({n, 4}), y = randn({n, 4});
    CHECK(values<float>(f(x, y)) == values<float>((x * y).sum({1})));
  }
  CHECK(f.traces() == 2); // one trace for 1, one for other sizes
  CHECK(f(randn({5, 4}), ones({1, 4})).shape() == Shape{5});
  CHECK(f(randn({6, 4}), ones({1, 4})).shape() == Shape{6});
  CHECK(f.traces() == 3);
  auto wrong = jit([](const Tensor &x) { return x; }, {.dynamic = {{0, 2}}});
  CHECK_ERROR(wrong(ones({2, 2})), "dimension 2 of argument 0");
}

TEST_CASE("recompilations are counted and explained") {
  auto f = jit([](const Tensor &x) { return x + 1; });
  std::string text = errorOutput([&] {
    for (int n = 1; n <= 8; ++n)
      f(ones({n}));
  });
  CHECK(text == "");
  text = errorOutput([&] { f(ones({9})); });
  CHECK(contains(text, "recompilation 8: argument 0 is f32[9], and was f32[8]"));
  CHECK(contains(text, ".dynamic"));
  CHECK(contains(text, "JitCheckTest.cpp:"));
  Variable log("BURIN_LOG", "recompile");
  CHECK(contains(errorOutput([&] { f(ones({9}, f64)); }), "argument 0 is f64[9], and was f32[9]"));
  nn::Linear layer(2, 2);
  layer.eval();
  auto g = jit(layer);
  g(ones({1, 2}));
  CHECK(contains(errorOutput([&] {
                   layer.bias.set(ones({2}));
                   g(ones({1, 2}));
                 }),
                 "the parameter bias, f32[2], whose value was a constant, has changed"));
  CHECK(contains(errorOutput([&] {
                   layer.bias.set(ones({2}) * 2);
                   g(ones({1, 2}));
                 }),
                 "the parameter bias, f32[2], whose value was a constant, has changed; it is an input from now on"));
  CHECK(errorOutput([&] {
          layer.bias.set(ones({2}) * 3);
          g(ones({1, 2}));
        }) == "");
}

TEST_CASE("a check accepts an optimiser that makes its states while it is traced") {
  for (const bool isFrozenFirst : {true, false}) {
    nn::Linear first(4, 1), second(4, 1);
    std::vector<Parameter> parameters = first.parameters();
    for (const Parameter &parameter : second.parameters())
      parameters.push_back(parameter);
    optim::Adam optimizer(parameters, {.lr = 0.1});
    auto train = [=](const Tensor &x) mutable {
      Tensor loss = (first(x) + second(x)).pow(2).sum();
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      return loss;
    };
    auto step = jit(train, {.check = JitCheck::First});
    const Tensor x = randn({3, 4});
    first.requires_grad_(!isFrozenFirst);
    for (int phase = 0; phase < 3; ++phase) {
      for (int call = 0; call < 4; ++call)
        CHECK_NOTHROW(step(x));
      first.requires_grad_(!first.weight->requires_grad());
    }
  }
}
