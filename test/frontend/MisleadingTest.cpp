// Programs that a tracer could misinterpret: branches, sizes and captures.
#include "test/frontend/Misleading.h"
#include <map>

TEST_CASE("misleading branches") {
  SECTION("on a value") {
    refused([](const Tensor &x) { return x.sum().item() > 0 ? x * 2 : x; }, kPlus, "while tracing");
  }
  SECTION("a while loop on a value") {
    refused(
        [](Tensor x) {
          while (x.max().item() > 1)
            x = x / 2;
          return x;
        },
        kPlus, "while tracing");
  }
  SECTION("on a list of values") {
    refused([](const Tensor &x) { return x.to_vector<float>()[0] > 0 ? x : -x; }, kPlus, "while tracing");
  }
  SECTION("on whether a value can be read") {
    auto f = [](const Tensor &x) {
      try {
        if (x.sum().item() > 5)
          return x * 2;
      } catch (const Error &) { // NOLINT(bugprone-empty-catch): the program of a user
      }
      return x * 4;
    };
    refused(f, kPlus, "while tracing");
  }
  SECTION("on whether gradients are recorded") {
    refused([](const Tensor &x) { return x.requires_grad() ? x * 2 : x; }, kPlus, "is not known while tracing");
    refused([](const Tensor &x) { return (x * 3).is_leaf() ? x * 2 : x; }, kPlus, "is not known while tracing");
    Parameter weight(ones({3}));
    auto f = jit([&](const Tensor &x) { return weight->requires_grad() ? x * weight : x + weight; }, kCheck);
    for (bool isTrained : {true, false, true}) {
      weight.requires_grad_(isTrained);
      CHECK(isClose(f(kPlus), isTrained ? kPlus : kPlus + 1));
    }
  }
  SECTION("where, for both signs and NaN") {
    right([](const Tensor &x) { return where(x > 0, x, x * x); }, {kPlus, kMinus});
  }
  SECTION("on the element type") {
    right([](const Tensor &x) { return x.dtype() == f32 ? x * 2 : x + 1; }, {kPlus, kPlus.to(i64), kPlus.to(f64)});
  }
  SECTION("on the rank") {
    right([](const Tensor &x) { return x.rank() == 1 ? x * 2 : x.sum(); }, {kPlus, rows(2), tensor(5.0)});
  }
  SECTION("on a size") {
    right([](const Tensor &x) { return x.size(0) > 3 ? x * 2 : x; }, {rows(2), rows(5), rows(3)});
  }
  SECTION("on a dynamic size") {
    refused([](const Tensor &x) { return x.size(0) > 3 ? x * 2 : x; }, rows(2), "is not known", dynamic({{0, 0}}));
  }
  SECTION("on a dynamic shape, compared with numbers") {
    auto f = [](const Tensor &x) { return x.shape() == std::vector<int64_t>{2, 3} ? x * 2 : x; };
    refused(f, rows(2), "is not known", dynamic({{0, 0}}));
    right(f, {rows(2), rows(5)});
  }
  SECTION("on dynamic sizes as parts of shapes") {
    auto both = [](auto decide) { return [=](const Tensor &x) { return decide(x, x.transpose({1, 0})) ? x * 2 : x; }; };
    auto first = both([](const Tensor &x, const Tensor &) { return x.shape()[0] == 4; });
    auto shapes = both([](const Tensor &x, const Tensor &y) { return x.shape() == y.shape(); });
    auto copies = both([](const Tensor &x, const Tensor &y) {
      const Dim a = x.size(0), b = y.size(0);
      return a != b;
    });
    auto specs = both([](const Tensor &x, const Tensor &y) { return x.spec() == y.spec(); });
    auto search = both([](const Tensor &x, const Tensor &) { return std::ranges::count(x.shape(), Dim(3)) == 2; });
    auto check = [](auto f) {
      refused(f, rows(2), "is not known", dynamic({{0, 0}}));
      right(f, {rows(2), rows(3), rows(4)});
    };
    check(first), check(shapes), check(copies), check(specs), check(search);
    right(both([](const Tensor &x, const Tensor &) { return x.shape() == (x + 1).shape(); }), {rows(2), rows(5)},
          dynamic({{0, 0}}));
  }
  SECTION("on a captured flag") {
    bool isDoubled = false;
    found([&](const Tensor &x) { return isDoubled ? x * 2 : x + 0; }, kPlus, [&] { isDoubled = true; });
  }
  SECTION("on the mode of a module") {
    nn::Dropout layer(0.5);
    auto f = jit([&](const Tensor &x) { return layer.is_training() ? x * 2 : layer(x); }, kCheck);
    for (bool mode : {true, false, true, false}) {
      layer.train(mode);
      CHECK(isClose(f(kPlus), mode ? kPlus * 2 : kPlus));
    }
  }
}

TEST_CASE("misleading sizes") {
  const JitOptions first = dynamic({{0, 0}});
  SECTION("a size as a number") {
    right([](const Tensor &x) { return x.sum() / double(x.size(0)); }, {rows(2), rows(5)});
  }
  SECTION("a dynamic size as a number") {
    refused([](const Tensor &x) { return x.sum() / double(x.size(0)); }, rows(2), "is not known", first);
  }
  SECTION("reshape by sizes") {
    right([](const Tensor &x) { return x.reshape({x.size(0) * x.size(1)}); }, {rows(2), rows(7), rows(0)}, first);
  }
  SECTION("reshape with -1") {
    right([](const Tensor &x) { return x.reshape({-1}) + 1; }, {rows(2), rows(7), rows(1)}, first);
  }
  SECTION("a division of sizes") {
    right([](const Tensor &x) { return x[Slice(0, x.size(0) / 2)]; }, {rows(6), rows(7), rows(1), rows(2)}, first);
  }
  SECTION("a mean over a dynamic size") {
    right([](const Tensor &x) { return x.mean({0}); }, {rows(2), rows(5), rows(1)}, first);
  }
  SECTION("a slice from the end, longer than the tensor") {
    right([](const Tensor &x) { return x[Slice(-3, None)]; }, {rows(5), rows(2), rows(3), rows(1)}, first);
  }
  SECTION("a slice beyond the end") {
    right([](const Tensor &x) { return x[Slice(1, 4)]; }, {rows(9), rows(2), rows(1), rows(3)});
  }
  SECTION("the last row") {
    right([](const Tensor &x) { return x[-1]; }, {rows(4), rows(2), rows(1)}, first);
  }
  SECTION("a loop over a size") {
    auto f = [](const Tensor &x) {
      Tensor sum = zeros({3});
      for (int i = 0; i < int(x.size(0)); ++i)
        sum = sum * 0.5 + x[i];
      return sum;
    };
    right(f, {rows(2), rows(5), rows(0)});
    refused(f, rows(2), "is not known", first);
  }
  SECTION("a batch of 1 first") {
    right([](const Tensor &x) { return x + rows(1); }, {rows(1), rows(4)}, first);
  }
  SECTION("a batch of 1 last") {
    right([](const Tensor &x) { return x * x.sum({0}, true); }, {rows(4), rows(1)}, first);
  }
  SECTION("an empty batch first") {
    right([](const Tensor &x) { return x.sum({0}); }, {rows(0), rows(3)}, first);
  }
  SECTION("sizes that are equal by chance") {
    auto f = [](const Tensor &x, const Tensor &y) { return matmul(x, y.t()); };
    auto compiled = jit(f, dynamic({{0, 0}, {1, 0}}));
    for (auto [n, m] : {std::pair(3, 3), {3, 5}, {4, 4}, {2, 9}, {1, 3}, {3, 1}})
      CHECK(isClose(compiled(rows(n), rows(m)), f(rows(n), rows(m))));
  }
  SECTION("a tensor that grows in a loop") {
    right(
        [](const Tensor &x) {
          Tensor y = x;
          for (int i = 0; i < 3; ++i)
            y = concat({y, x * double(i)}, 0);
          return y;
        },
        {rows(2), rows(3)}, first);
  }
  SECTION("positions by size") {
    right([](const Tensor &x) { return x + arange(int64_t(x.size(0))).to(f32).unsqueeze({1}); }, {rows(2), rows(5)});
  }
  SECTION("a square from one size") {
    right([](const Tensor &x) { return matmul(x, x.t()).tril(); }, {rows(2), rows(5), rows(1)}, first);
  }
}

TEST_CASE("misleading captures") {
  SECTION("a tensor that is assigned later") {
    Tensor c = tensor({1.0, 1.0, 1.0});
    found([&](const Tensor &x) { return x + c; }, kPlus, [&] { c = tensor({2.0, 1.0, 1.0}); });
  }
  SECTION("a tensor that is changed in place") {
    Tensor c = tensor({1.0, 1.0, 1.0});
    found([&](const Tensor &x) { return x + c; }, kPlus, [&] { c += 1.0; });
  }
  SECTION("a number") {
    double rate = 0.5;
    found([&](const Tensor &x) { return x * rate; }, kPlus, [&] { rate = 0.25; });
  }
  SECTION("a number as a state") {
    Parameter rate = Parameter::state(tensor(0.5));
    auto f = jit([&](const Tensor &x) { return x * rate; }, kCheck);
    for (double r : {0.5, 0.25, 4.0}) {
      rate.set(tensor(r));
      CHECK(isClose(f(kPlus), kPlus * r));
    }
    CHECK(f.traces() == 1);
  }
  SECTION("a list of weights that grows") {
    std::vector<Tensor> weights{ones({3})};
    found(
        [&](Tensor x) {
          for (const Tensor &w : weights)
            x = x * w + 1;
          return x;
        },
        kPlus, [&] { weights.push_back(ones({3})); });
  }
  SECTION("a module that is replaced") {
    auto net = nn::Sequential(nn::Linear(3, 2));
    found([&](const Tensor &x) { return net(x); }, rows(2), [&] { net = nn::Sequential(nn::Linear(3, 2)); });
  }
  SECTION("a weight that is set") {
    nn::Linear layer(3, 2);
    auto f = jit([&](const Tensor &x) { return layer(x); }, kCheck);
    for (int i = 0; i < 6; ++i) {
      layer.weight.set(randn({2, 3}));
      CHECK(isClose(f(rows(2)), layer(rows(2))));
    }
  }
  SECTION("weights that are loaded") {
    auto net = nn::Sequential(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2));
    auto f = jit([&](const Tensor &x) { return net(x); }, kCheck);
    for (int i = 0; i < 4; ++i) {
      net.load_state_dict(nn::Sequential(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2)).state_dict());
      CHECK(isClose(f(rows(2)), net(rows(2))));
    }
  }
  SECTION("a mask that is kept from the first trace") {
    std::optional<Tensor> mask;
    auto f = jit(
        [&](const Tensor &x) {
          if (!mask)
            mask = x > 0;
          return where(*mask, x, 0.0);
        },
        kCheck);
    CHECK_ERROR(f(kPlus), "the result of gt at", "MisleadingTest.cpp:", "in a variable outside of the traced");
    CHECK(contains(messageOf([&] { f(kMinus); }), "MisleadingTest.cpp:"));
  }
  SECTION("a mask per size, made eagerly") {
    std::map<int64_t, Tensor> masks;
    right(
        [&](const Tensor &x) {
          int64_t n = int64_t(x.size(0));
          if (!masks.count(n)) {
            std::vector<float> m(size_t(n), 1.0f);
            m[0] = 0;
            masks[n] = from_vector(m);
          }
          return x * masks[n].unsqueeze({1});
        },
        {rows(2), rows(5), rows(3)});
  }
  SECTION("a copy in the function") {
    double scale = 2;
    auto f = jit([scale](const Tensor &x) { return x * scale; }, kCheck);
    f(kPlus);
    scale = 3; // the function has captured a copy
    CHECK(isClose(f(kPlus), kPlus * 2));
  }
  SECTION("memory that a tensor was copied from") {
    std::vector<float> memory{1, 2, 3};
    Tensor c = from_vector(memory);
    auto f = jit([&](const Tensor &x) { return x + c; }, kCheck);
    f(kPlus);
    memory[0] = 100;
    CHECK(isClose(f(kPlus), kPlus * 2));
  }
  SECTION("one tensor in two buffers") {
    struct Two : nn::Module {
      Parameter a, b;
      explicit Two(const Tensor &x) : a(register_buffer("a", x)), b(register_buffer("b", x)) {}
      Tensor operator()(const Tensor &x) {
        a.set(a.value() + x);
        return a.value() - b.value();
      }
    } eager(zeros({3})), compiled(zeros({3}));
    auto f = jit([&](const Tensor &x) { return compiled(x); }, kCheck);
    for (int i = 0; i < 4; ++i)
      CHECK(isClose(f(kPlus), eager(kPlus)));
    CHECK(isClose(compiled.b, zeros({3})));
  }
}
