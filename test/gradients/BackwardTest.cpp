// Eager gradients: documented behaviour of backward(), grad() and the functions built on them. Expected numbers without
// a formula are PyTorch's.
#include "test/frontend/Check.h"

namespace {

Tensor leaf(Tensor x) { return x.requires_grad_(); }

} // namespace

TEST_CASE("backward() leaves gradients in leaves and adds to them") {
  Tensor x = leaf(tensor({1.0f, 2.0f, 3.0f})), y = leaf(tensor({4.0f, 5.0f, 6.0f})), c = tensor({7.0f, 8.0f, 9.0f});
  Tensor loss = (x * x * y + c).sum();
  CHECK(loss.requires_grad());
  CHECK_FALSE(loss.is_leaf());
  CHECK_FALSE((c + c).requires_grad());
  CHECK_FALSE(x.grad().defined());
  loss.backward();
  CHECK(floats(x.grad()) == std::vector<float>{8, 20, 36});
  CHECK(floats(y.grad()) == std::vector<float>{1, 4, 9});
  (x * 2).sum().backward();
  CHECK(floats(x.grad()) == std::vector<float>{10, 22, 38});
  x.set_grad({});
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("operands that are broadcast and promoted get gradients of their own type") {
  Tensor row = leaf(tensor({1.0f, 2.0f, 3.0f})), column = leaf(randn({4, 1}, f64)), scalar = leaf(tensor(2.0f));
  Tensor y = row * column + scalar;
  CHECK(y.dtype() == f64);
  y.sum().backward();
  CHECK(str(row.grad().spec()) == "f32[3]");
  CHECK(str(column.grad().spec()) == "f64[4, 1]");
  CHECK(scalar.grad().item() == 12);
  CHECK(largestDifference(row.grad(), column.detach().sum().to(f32)) < 1e-6);
  CHECK(values<double>(column.grad()) == std::vector<double>(4, 6));
  Tensor a = leaf(randn({2, 3, 4})), v = leaf(randn({4}));
  matmul(a, v).sum().backward();
  CHECK(largestDifference(a.grad(), v.detach()) == 0);
  CHECK(largestDifference(v.grad(), a.detach().sum({0, 1})) < 1e-5);
}

TEST_CASE("a tape is freed as backward() consumes it") {
  Tensor x = leaf(tensor({1.0f, 2.0f}));
  Tensor y = exp(x).sum();
  y.backward();
  CHECK_ERROR(y.backward(), "backward", "retain_graph");
  Tensor z = exp(x).sum();
  z.backward(std::nullopt, {.retain_graph = true});
  z.backward();
  CHECK(largestDifference(x.grad(), exp(x.detach()) * 3) < 1e-5);
}

TEST_CASE("leaves without a gradient have an undefined one, and other values none") {
  CHECK_FALSE(ones({2}).grad().defined());
  Parameter frozen(ones({2}), false), weight(ones({2}));
  CHECK_FALSE(frozen->grad().defined());
  CHECK_FALSE(weight->grad().defined());
  (Tensor(frozen) * weight).sum().backward();
  CHECK_FALSE(frozen->grad().defined());
  CHECK(floats(weight->grad()) == std::vector<float>{1, 1});
  CHECK_ERROR((Tensor(weight) * 2).grad(), "no leaf");
  CHECK_ERROR(frozen->set_grad(ones({2})), "requires no gradient");
}

TEST_CASE("second gradients of products by scatter, also of zeros") {
  const Tensor indices = tensor({0, 0, 1, 1, 1, 0});
  auto product = [&](const std::vector<Tensor> &in) {
    return std::vector<Tensor>{scatter(in[0], indices, in[1], 0, "mul")};
  };
  auto gradients = [&](const std::vector<Tensor> &in) {
    EnableGrad enabled;
    std::vector<Tensor> xs;
    for (const Tensor &x : in)
      xs.push_back(x.requires_grad() ? x : Tensor(x).requires_grad_());
    Tensor y = scatter(xs[0], indices, xs[1], 0, "mul");
    return grad((y * tensor({2.0, 3.0, 5.0}, f64)).sum(), xs, std::nullopt, {.create_graph = true});
  };
  for (const std::vector<double> &x : {std::vector<double>{2, 3, 4}, {0, 3, 0}, {2, 0, 4}})
    for (const std::vector<double> &u :
         {std::vector<double>{2, 3, 4, 5, 6, 7}, {0, 3, 4, 5, 6, 7}, {0, 3, 0, 0, 6, 7}}) {
      CHECK_NOTHROW(gradcheck(product, {from_vector(x), from_vector(u)}));
      CHECK_NOTHROW(gradcheck(gradients, {from_vector(x), from_vector(u)}));
    }
}

TEST_CASE("what requires no gradient is not recorded") {
  Tensor x = leaf(tensor({1.0f, 2.0f}));
  {
    NoGrad off;
    CHECK_FALSE((x * 2).requires_grad());
    EnableGrad on;
    CHECK((x * 2).requires_grad());
  }
  CHECK((x * 2).requires_grad());
  CHECK_FALSE(x.detach().requires_grad());
  CHECK_FALSE((x > 1).requires_grad());
  CHECK_FALSE(x.to(i64).requires_grad());
  Tensor y = x * x.detach();
  y.sum().backward();
  CHECK(floats(x.grad()) == std::vector<float>{1, 2});
}

TEST_CASE("mistakes are explained") {
  Tensor x = leaf(tensor({1.0f, 2.0f})), c = tensor({1.0f});
  CHECK_ERROR((x * 2).backward(), "backward", "f32[2]", "sum");
  CHECK_ERROR(c.backward(), "backward", "no gradient flows");
  CHECK_FALSE(c.grad().defined());
  CHECK_ERROR((x * 2).grad(), "grad", "no leaf");
  CHECK_ERROR(tensor({1, 2}).requires_grad_(), "requires_grad_", "i64[2]");
  CHECK_ERROR(grad(x.sum(), {c}), "grad", "requires_grad_");
  CHECK_ERROR((x * 2).backward(tensor({1.0f})), "backward", "one shape");
  CHECK_ERROR(c.register_hook([](const Tensor &g) { return g; }), "register_hook");
}

TEST_CASE("grad() gives gradients of any value on the way and leaves leaves alone") {
  Tensor x = leaf(tensor({1.0f, 2.0f, 3.0f})), unused = leaf(tensor({5.0f}));
  Tensor h = x * x, y = (h * h).sum();
  std::vector<Tensor> g = grad(y, {h, x, unused}, std::nullopt, {.retain_graph = true});
  CHECK(floats(g[0]) == std::vector<float>{2, 8, 18});
  CHECK(floats(g[1]) == std::vector<float>{4, 32, 108});
  CHECK(floats(g[2]) == std::vector<float>{0});
  CHECK_FALSE(x.grad().defined());
  CHECK(floats(grad(h, {x}, tensor({1.0f, 10.0f, 100.0f}))[0]) == std::vector<float>{2, 40, 600});
}

TEST_CASE("eager gradients of gradients") {
  Tensor x = leaf(tensor({0.5, 1.0, -2.0}, f64));
  Tensor y = (sin(x) * x * x).sum();
  Tensor first = grad(y, {x}, std::nullopt, {.create_graph = true})[0];
  Tensor second = grad(first.sum(), {x}, std::nullopt, {.create_graph = true})[0];
  Tensor third = grad(second.sum(), {x})[0];
  Tensor d = x.detach(), s = sin(d), c = cos(d);
  CHECK(largestDifference(first, c * d * d + s * d * 2) < 1e-12);
  CHECK(largestDifference(second, c * d * 4 + s * 2 - s * d * d) < 1e-12);
  CHECK(largestDifference(third, c * 6 - s * d * 6 - c * d * d) < 1e-12);
}

TEST_CASE("hooks see a gradient when it is complete, and may replace it") {
  Tensor x = leaf(tensor({1.0f, 2.0f}));
  Tensor h = x * 3;
  int calls = 0;
  h.register_hook([&](const Tensor &g) {
    ++calls;
    CHECK(floats(g) == std::vector<float>{5, 5});
    return g * 10;
  });
  (h * 2 + h * 3).sum().backward();
  CHECK(calls == 1);
  CHECK(floats(x.grad()) == std::vector<float>{150, 150});
}

TEST_CASE("eager gradients equal those of a trace, for a network of layers") {
  manual_seed(7);
  auto net = nn::Sequential(
      nn::Conv2d(1, 4, 3), [](const Tensor &x) { return max_pool(relu(x), {2, 2}, {2, 2}); },
      [](const Tensor &x) { return x.flatten(1); }, nn::Linear(4 * 5 * 5, 10));
  Tensor x = randn({3, 1, 12, 12});
  auto loss = [&](const Tensor &input) { return -log_softmax(net(input)).mean(); };
  loss(x).backward();
  std::vector<Tensor> weights;
  for (const Parameter &p : net.parameters())
    weights.push_back(p);
  Graph g = trace([&](const Tensor &input) { return grad(loss(input), weights); }, {x.spec()});
  std::vector<Tensor> want = g.run({x});
  for (size_t i = 0; i < want.size(); ++i) {
    CHECK(want[i].abs().max().item() > 0);
    CHECK(largestDifference(weights[i].grad(), want[i]) < 1e-6);
  }
}

TEST_CASE("a frozen parameter gets no gradient, a new value keeps the leaf") {
  auto layer = nn::Linear(3, 2);
  layer.bias.requires_grad_(false);
  layer(ones({4, 3})).sum().backward();
  CHECK_FALSE(layer.bias->requires_grad());
  CHECK(floats(layer.weight->grad()) == std::vector<float>(6, 4));
  layer.weight.set(layer.weight - layer.weight->grad() * 0.1);
  CHECK(layer.weight->is_leaf());
  CHECK(floats(layer.weight->grad()) == std::vector<float>(6, 4));
}

TEST_CASE("a function with a gradient of its own, eagerly and in a trace") {
  auto straightThrough = custom_vjp([](const std::vector<Tensor> &in) { return std::vector<Tensor>{round(in[0])}; },
                                    [](const std::vector<Tensor> &, const std::vector<Tensor> &,
                                       const std::vector<Tensor> &g) { return std::vector<Tensor>{g[0]}; });
  Tensor x = leaf(tensor({0.2f, 1.7f}));
  Tensor y = straightThrough({x * 2})[0];
  (y * y).sum().backward();
  CHECK(floats(x.grad()) == std::vector<float>{0, 12});
  Graph g = trace(
      [&](const Tensor &in) {
        Tensor made = straightThrough({in * 2})[0];
        return grad((made * made).sum(), {in})[0];
      },
      {x.spec()});
  CHECK(floats(g.run({x.detach()})[0]) == std::vector<float>{0, 12});
}

TEST_CASE("a custom gradient of several results") {
  auto both = custom_vjp([](const std::vector<Tensor> &in) { return std::vector<Tensor>{in[0] * 2, in[0] * 3}; },
                         [](const std::vector<Tensor> &, const std::vector<Tensor> &, const std::vector<Tensor> &g) {
                           return std::vector<Tensor>{g[0] * 10 + g[1] * 100};
                         });
  for (int used = 0; used < 3; ++used) {
    auto loss = [&](const Tensor &x) {
      std::vector<Tensor> made = both({x});
      return used == 2 ? (made[0] + made[1]).sum() : made[size_t(used)].sum();
    };
    Tensor x = leaf(tensor({1.0f}));
    loss(x).backward();
    const float want = used == 0 ? 10.0f : used == 1 ? 100.0f : 110.0f;
    CHECK(floats(x.grad()) == std::vector<float>{want});
    Graph g = trace([&](const Tensor &in) { return grad(loss(in), {in})[0]; }, {x.spec()});
    CHECK(floats(g.run({x.detach()})[0]) == std::vector<float>{want});
  }
}

TEST_CASE("value_and_grad, jvp and hvp") {
  auto f = value_and_grad([](const Tensor &x, const Tensor &y) { return (x * x * y).sum(); });
  auto [value, gradients] = f(tensor({1.0f, 2.0f}), tensor({3.0f, 4.0f}));
  CHECK(value.item() == 19);
  CHECK(floats(gradients[0]) == std::vector<float>{6, 16});
  CHECK(floats(gradients[1]) == std::vector<float>{1, 4});
  auto [results, derivatives] = jvp([](const std::vector<Tensor> &in) { return std::vector<Tensor>{in[0] * in[0]}; },
                                    {tensor({1.0f, 2.0f})}, {tensor({10.0f, 100.0f})});
  CHECK(floats(results[0]) == std::vector<float>{1, 4});
  CHECK(floats(derivatives[0]) == std::vector<float>{20, 400});
  auto product = hvp([](const std::vector<Tensor> &in) { return std::vector<Tensor>{(in[0] * in[0] * in[0]).sum()}; },
                     {tensor({1.0f, 2.0f})}, {tensor({1.0f, 10.0f})});
  CHECK(floats(product[0]) == std::vector<float>{6, 120});
}

TEST_CASE("gradcheck agrees with right gradients and finds wrong ones") {
  manual_seed(11);
  auto smooth = [](const std::vector<Tensor> &in) {
    return std::vector<Tensor>{softmax(matmul(in[0], in[1])), tanh(in[0]).sum(1)};
  };
  gradcheck(smooth, {randn({3, 4}, f64), randn({4, 2}, f64)});
  auto wrong = custom_vjp([](const std::vector<Tensor> &in) { return std::vector<Tensor>{in[0] * in[0]}; },
                          [](const std::vector<Tensor> &in, const std::vector<Tensor> &, const std::vector<Tensor> &g) {
                            return std::vector<Tensor>{g[0] * in[0]};
                          });
  CHECK_ERROR(gradcheck(wrong, {tensor({1.0, 2.0}, f64)}), "gradcheck", "differences say");
  CHECK_ERROR(gradcheck(smooth, {randn({3, 4}), randn({4, 2})}), "gradcheck", "f64");
}

TEST_CASE("gradcheck takes results of any rank and tells every element of a result from the others") {
  manual_seed(12);
  using Tensors = std::vector<Tensor>;
  auto of = [](auto value, auto vjp) {
    return custom_vjp([=](const Tensors &in) { return Tensors{value(in[0])}; },
                      [=](const Tensors &in, const Tensors &, const Tensors &g) { return Tensors{vjp(in[0], g[0])}; });
  };
  gradcheck([](const Tensors &in) { return Tensors{(in[0] * in[0]).sum(), in[0] > 0, in[0].sum({0, 1}, true)}; },
            {randn({3, 4}, f64)});
  gradcheck([](const Tensors &in) { return Tensors{in[0] * 2}; }, {zeros({0, 3}, f64)});
  CHECK_ERROR(gradcheck(of([](const Tensor &x) { return x.sum(); },
                           [](const Tensor &x, const Tensor &g) { return g * 2 * ones_like(x); }),
                        {randn({2}, f64)}),
              "result 0", "differences say");
  auto unflipped = [&](int64_t axis) {
    return of([=](const Tensor &x) { return flip(x, {axis}); }, [](const Tensor &, const Tensor &g) { return g; });
  };
  for (const Shape &shape : {Shape{3, 4}, Shape{4, 1}, Shape{2, 2}})
    CHECK_ERROR(gradcheck(unflipped(0), {randn(shape, f64)}), "differences say");
  CHECK_ERROR(gradcheck(unflipped(1), {randn({3, 4}, f64)}), "differences say");
  // The error names the worst element.
  auto half = of([](const Tensor &x) { return x * x; }, [](const Tensor &x, const Tensor &g) { return g * x; });
  CHECK_ERROR(gradcheck(half, {tensor({1.0, 10.0}, f64)}, {.rtol = 0}), "element 1");
}

TEST_CASE("anomalies are found where they arise") {
  Tensor x = leaf(tensor({0.0f, 1.0f}));
  Tensor y = sqrt(x).sum();
  {
    DetectAnomaly detect;
    CHECK_ERROR(log(x.detach() - 1), "log", "NaN");
    std::string what = messageOf([&] { y.backward(); });
    CHECK(contains(what, "sqrt"));
    CHECK(contains(what, "an infinity"));
  }
}

TEST_CASE("a chain of many calls is walked and freed without recursion") {
  Tensor x = leaf(tensor(1.0f)), y = x;
  for (int i = 0; i < 20000; ++i)
    y = y + 1;
  y.backward();
  CHECK(x.grad().item() == 1);
}

TEST_CASE("sizes that depend on data, empty tensors, several results") {
  Tensor x = leaf(tensor({1.0f, -2.0f, 3.0f}));
  Tensor chosen = masked_select(x, x.detach() > 0);
  (chosen * chosen).sum().backward();
  CHECK(floats(x.grad()) == std::vector<float>{2, 0, 6});
  Tensor empty = leaf(zeros({0, 3}));
  (empty * 2).sum().backward();
  CHECK(str(empty.grad().spec()) == "f32[0, 3]");
  Tensor z = leaf(tensor({3.0f, 1.0f, 2.0f}));
  auto best = topk(z, 2);
  best.values.sum().backward();
  CHECK(floats(z.grad()) == std::vector<float>{1, 0, 1});
}

TEST_CASE("DetectAnomaly finds the call in a jitted function") {
  const Tensor w = tensor({4.0f, 0.0f});
  auto step = jit([](const Tensor &x, const Tensor &v) {
    Tensor root = sqrt(v);
    return grad((root * x).sum(), {v})[0];
  });
  auto forward = jit([](const Tensor &x) { return log(x) * 2; });
  const Tensor bad = tensor({1.0f, -1.0f});
  CHECK(std::isnan(forward(bad)(1).item()));
  {
    DetectAnomaly detect;
    const std::string inForward = messageOf([&] { forward(bad); });
    CHECK(contains(inForward, "log"));
    CHECK(contains(inForward, "BackwardTest.cpp"));
    const std::string inBackward = messageOf([&] { step(ones({2}), w); });
    CHECK(contains(inBackward, "sqrt"));
    CHECK(forward(tensor({1.0f}))(0).item() == 0);
  }
  CHECK(std::isnan(forward(bad)(1).item()));
  CHECK(forward.traces() == 1);
}
