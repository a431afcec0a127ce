// Small programs as users of PyTorch's C++ API write them: training loops, in-place calls, queries, initial values.
#include "test/frontend/Check.h"
#include <filesystem>
#include <sstream>

namespace {

struct Classifier : nn::Module {
  nn::Linear first{4, 8}, last{8, 3};
  nn::BatchNorm1d norm{8};
  nn::Dropout drop{0.5};
  Classifier() {
    first = register_module("first", first);
    norm = register_module("norm", norm);
    drop = register_module("drop", drop);
    last = register_module("last", last);
  }
  // const, as all layers are: a batch norm updates its statistics all the same
  Tensor forward(const Tensor &x) const { return last(drop(relu(norm(first(x))))); }
};

/// Also where both are NaN.
bool isSame(const Tensor &x, const Tensor &y) {
  return x.dtype() == y.dtype() && x.shape() == y.shape() &&
         (x.is_floating_point() ? x.allclose(y, 0, 0, true) : equal(x, y));
}

} // namespace

TEST_CASE("A training loop with two optimisers, gradient clipping and accumulation") {
  manual_seed(4);
  Classifier net;
  Tensor x = randn({32, 4}), y = x.argmax(1) % 3;
  optim::AdamW optimizer(net.parameters(), {.lr = 0.01});
  double first = 0, last = 0;
  for (int epoch = 0; epoch < 30; ++epoch) {
    optimizer.zero_grad();
    for (int part = 0; part < 2; ++part)
      (cross_entropy(net.forward(x(Slice(16 * part, 16 * part + 16))), y(Slice(16 * part, 16 * part + 16))) / 2)
          .backward();
    CHECK(nn::utils::clip_grad_norm_(net.parameters(), 10.0).item() > 0);
    optimizer.step();
    last = cross_entropy(net.forward(x), y).item();
    first = epoch ? first : last;
  }
  CHECK(last < first);
  CHECK(net.norm.running_mean.value().abs().sum().item() > 0);
  net.eval();
  CHECK(equal(net.forward(x), net.forward(x)));
  int64_t total = 0;
  for (const Parameter &p : net.parameters())
    total += p.numel();
  CHECK(total == net.count_parameters());
  std::ostringstream text;
  text << net;
  CHECK(contains(text.str(), "first: Linear"));
}

TEST_CASE("Methods with an underscore give the handle a new value") {
  Tensor x = arange(4, f32).view({2, 2}), kept = x;
  x.add_(1).mul_(2).sub_(tensor({0.0, 1.0})).div_(2);
  CHECK(floats(x) == std::vector<float>{1, 1.5, 3, 3.5});
  CHECK(floats(kept) == std::vector<float>{0, 1, 2, 3});
  CHECK(floats(x.clamp_(1.25, 3)) == std::vector<float>{1.25, 1.5, 3, 3});
  CHECK(floats(x.masked_fill_(x == 3, 0)) == std::vector<float>{1.25, 1.5, 0, 0});
  CHECK(floats(x.index_put_({1}, 5)) == std::vector<float>{1.25, 1.5, 5, 5});
  CHECK(floats(x.index_put_({tensor({0, 0}), 0}, 1.0, true)) == std::vector<float>{3.25, 1.5, 5, 5});
  CHECK(floats(x.copy_(tensor({7, 8}))) == std::vector<float>{7, 8, 7, 8});
  CHECK(floats(x.fill_(3)) == std::vector<float>{3, 3, 3, 3});
  CHECK(floats(x.zero_()) == std::vector<float>{0, 0, 0, 0});
  Tensor k = tensor({1, 2});
  CHECK(k.fill_(true).dtype() == i64);
  CHECK_ERROR(k.fill_(0.5), "f32[] does not fit into i64[2]");
  CHECK_ERROR(x.fill_(k), "fill_: the value must be one number, but is i64[2]");
  CHECK_ERROR(x.copy_(ones({3})), "broadcast");
  auto f = jit([](const Tensor &given) {
    Tensor y = given;
    y.mul_(2).index_put_({0}, 1);
    return y;
  });
  CHECK(floats(f(tensor({3.0, 4.0}))) == std::vector<float>{1, 8});
}

TEST_CASE("An in-place method is the method of its name") {
  const Tensor x = tensor({0.5, -0.25, 0.75}), y = tensor({2.0, 3.0, -1.0}), mask = tensor({true, false, true});
  const Tensor at = tensor({2, 0});
  struct Case {
    const char *name;
    std::function<Tensor &(Tensor &)> change;
    std::function<Tensor(const Tensor &)> method;
  };
#define IN_PLACE(name, ...)                                                                                            \
  Case {                                                                                                               \
    #name, [&](Tensor &t) -> Tensor & { return t.name##_(__VA_ARGS__); },                                              \
        [&](const Tensor &t) { return t.name(__VA_ARGS__); }                                                           \
  }
  const std::vector<Case> cases{
      IN_PLACE(abs),
      IN_PLACE(acos),
      IN_PLACE(asin),
      IN_PLACE(atan),
      IN_PLACE(ceil),
      IN_PLACE(cos),
      IN_PLACE(cosh),
      IN_PLACE(erf),
      IN_PLACE(exp),
      IN_PLACE(exp2),
      IN_PLACE(expm1),
      IN_PLACE(floor),
      IN_PLACE(frac),
      IN_PLACE(log),
      IN_PLACE(log10),
      IN_PLACE(log1p),
      IN_PLACE(log2),
      IN_PLACE(neg),
      IN_PLACE(reciprocal),
      IN_PLACE(relu),
      IN_PLACE(round),
      IN_PLACE(rsqrt),
      IN_PLACE(sigmoid),
      IN_PLACE(sign),
      IN_PLACE(sin),
      IN_PLACE(sinh),
      IN_PLACE(sqrt),
      IN_PLACE(square),
      IN_PLACE(tan),
      IN_PLACE(tanh),
      IN_PLACE(trunc),
      IN_PLACE(add, y, 0.5),
      IN_PLACE(sub, y, 2),
      IN_PLACE(pow, 3),
      IN_PLACE(remainder, y),
      IN_PLACE(fmod, y),
      IN_PLACE(clamp, 0, 0.5),
      IN_PLACE(clamp_min, 0),
      IN_PLACE(clamp_max, 0.5),
      IN_PLACE(lerp, y, 0.25),
      IN_PLACE(addcmul, y, y, 0.5),
      IN_PLACE(addcdiv, y, y + 4),
      IN_PLACE(masked_fill, mask, 7),
      IN_PLACE(masked_scatter, mask, y),
      IN_PLACE(index_add, 0, at, tensor({1.0, 2.0}), 2),
      IN_PLACE(index_copy, 0, at, tensor({1.0, 2.0})),
      IN_PLACE(index_fill, 0, at, 9),
      IN_PLACE(scatter, 0, at, tensor({1.0, 2.0})),
      IN_PLACE(scatter, 0, at, 3),
      IN_PLACE(scatter_add, 0, at, tensor({1.0, 2.0})),
      IN_PLACE(scatter_reduce, 0, at, tensor({1.0, 2.0}), "amax"),
      IN_PLACE(unsqueeze, 0),
  };
#undef IN_PLACE
  for (const Case &c : cases) {
    INFO(c.name);
    Tensor changed = x, kept = changed;
    CHECK(&c.change(changed) == &changed);
    CHECK(isSame(changed, c.method(x)));
    CHECK(isSame(kept, x));
  }
  Tensor square = arange(9, f32).view({3, 3});
  Tensor lower = square, upper = square, turned = square, finite = square / 0, no = mask, inverted = at;
  CHECK(isSame(lower.tril_(), square.tril()));
  CHECK(isSame(upper.triu_(1), square.triu(1)));
  CHECK(isSame(turned.t_(), square.t()));
  CHECK(isSame(finite.nan_to_num_(1), (square / 0).nan_to_num(1)));
  CHECK(isSame(no.logical_not_(), tensor({false, true, false})));
  CHECK(isSame(inverted.bitwise_not_(), tensor({-3, -1})));
  Tensor column = zeros({2, 1});
  CHECK(column.squeeze_().shape() == Shape{2});

  // On temporaries, whose result is used.
  CHECK(isSame(zeros({3}).scatter_(0, at, 1), tensor({1.0, 0.0, 1.0})));
  CHECK(isSame(zeros({3}).scatter_add_(0, at, tensor({1.0, 2.0})), tensor({2.0, 0.0, 1.0})));
  CHECK(isSame(zeros({3}).index_fill_(0, at, 4), tensor({4.0, 0.0, 4.0})));
  CHECK(isSame(ones({2, 2}).tril_(), tensor({{1.0, 0.0}, {1.0, 1.0}})));
  CHECK(isSame(ones({2}).fill_(3), tensor({3.0, 3.0})));
  CHECK(empty({9}).uniform_(2, 3).min().item() >= 2);

  Tensor k = tensor({1, 2}), wide = ones({2, 1});
  CHECK(isSame(k.pow_(2), tensor({1, 4})));
  CHECK_ERROR(k.sqrt_(),
              "sqrt_: the result f32[2] does not fit the tensor i64[2] that it is to replace; write x = x.sqrt(…)");
  CHECK_ERROR(wide.add_(ones({2, 2}), 2), "write x = x.add(…)");
  CHECK_ERROR(wide += ones({2, 2}), "write x = x + y");
}

TEST_CASE("In-place random numbers") {
  manual_seed(3);
  Tensor x = empty({1000}), whole = zeros({1000}, i64), flags = zeros({1000}, DType::boolean);
  auto mean = [](const Tensor &t) { return t.to(f64).mean().item(); };
  x.uniform_(2, 4);
  CHECK((x.min().item() >= 2 && x.max().item() < 4));
  CHECK(std::abs(mean(x) - 3) < 0.1);
  CHECK(std::abs(mean(x.normal_(5, 0.5)) - 5) < 0.1);
  CHECK(std::abs(x.std().item() - 0.5) < 0.1);
  CHECK(std::abs(mean(x.exponential_(4)) - 0.25) < 0.05);
  CHECK(std::abs(mean(x.bernoulli_(0.2)) - 0.2) < 0.06);
  CHECK(isSame(x * x, x));
  CHECK(std::abs(mean(flags.bernoulli_()) - 0.5) < 0.08);
  whole.random_(3, 6);
  CHECK((whole.min().item<int64_t>() == 3 && whole.max().item<int64_t>() == 5));
  CHECK(x.random_(0, 2).dtype() == f32);
  CHECK_ERROR(x.bernoulli_(2), "bernoulli_: the probability 2.000000 is not in [0, 1]");
  CHECK_ERROR(whole.uniform_(), "uniform");

  Tensor p = tensor({0.0, 1.0}).expand({500, 2});
  CHECK(isSame(bernoulli(p), p));
  Tensor y = normal(tensor({0.0, 100.0}), tensor({1.0, 2.0}).view({2, 1}).expand({2, 2}));
  CHECK((y.shape() == Shape{2, 2} && y.select(1, 1).min().item() > 80 && y.select(1, 0).max().item() < 20));
  CHECK_ERROR(normal(zeros({2}), ones({3})), "do not broadcast");
  CHECK_ERROR(normal(zeros({2}), full({2}, -1)).sum().item(), "a deviation is negative");

  auto noisy = jit([](const Tensor &t) {
    Tensor noise = t;
    noise.normal_();
    return t + noise;
  });
  CHECK(!isSame(noisy(y), noisy(y)));
  Parameter weight(zeros({4}));
  weight.uniform_(-1, 1);
  CHECK(weight->abs().max().item() > 0);
  CHECK(weight.normal_().add_(ones({4}), 10)->min().item() > 4);
  CHECK(isSame(weight.fill_(1).lerp_(full({4}, 3), 0.5).clamp_(0, 1.5).addcmul_(ones({4}), ones({4}), 2),
               full({4}, 3.5)));
}

TEST_CASE("In-place methods of parameters change their values, also in jitted functions") {
  Parameter p(tensor({1.0, 2.0})), q(tensor({4.0, 8.0}));
  p.mul_(0.5).add_(q * 0.5);
  CHECK(floats(p) == std::vector<float>{2.5, 5});
  CHECK(p.requires_grad());
  p -= 1;
  p /= 2;
  CHECK(floats(p) == std::vector<float>{.75, 2});
  CHECK(floats(p.copy_(7)) == std::vector<float>{7, 7});
  CHECK_ERROR(p.copy_(ones({3})), "broadcast");
  CHECK_ERROR(p += ones({2, 2}), "does not fit the tensor f32[2]");
  auto average = jit([&] { return p.mul_(0.75).add_(q * 0.25).value().sum(); });
  average();
  CHECK(average().item<float>() == (7 * .75f + 1) * .75f + 1 + (7 * .75f + 2) * .75f + 2);
  CHECK(floats(p) == std::vector<float>{(7 * .75f + 1) * .75f + 1, (7 * .75f + 2) * .75f + 2});
  CHECK(floats(p.zero_()) == std::vector<float>{0, 0});
  (p->sum() * 3).backward();
  CHECK(floats(p.grad()) == std::vector<float>{3, 3});
}

TEST_CASE("Properties of tensors and parameters under PyTorch's names") {
  const Tensor x = zeros({2, 3, 4}, f16);
  CHECK(x.ndimension() == 3);
  CHECK(x.is_floating_point());
  CHECK(!x.to(i32).is_floating_point());
  CHECK(x.element_size() == 2);
  CHECK(x.nbytes() == 48);
  CHECK(x.is_contiguous());
  CHECK(x.T().shape() == Shape{4, 3, 2});
  CHECK(x.mT().shape() == Shape{2, 4, 3});
  CHECK(empty_like(x).spec() == x.spec());
  CHECK(*tensor({1.5, 2.0}).data_ptr<float>() == 1.5f);
  CHECK(floats(tensor(std::vector<float>{1, 2})) == std::vector<float>{1, 2});
  std::vector<int32_t> numbers{1, 2, 3, 4};
  CHECK(from_blob(numbers.data(), {2, 2}).spec() == TensorSpec{i32, {2, 2}});
  CHECK(promote_types(f16, bf16) == f32);
  CHECK(promote_types(i32, u8) == i32);
  CHECK(result_type(ones({2}, f16), 1.5) == f16);
  CHECK(result_type(ones({2}, i32), 1.5) == f32);
  CHECK(result_type(ones({2}, i32), ones({}, i64)) == i64);
  std::ostringstream text;
  text << x.dtype();
  CHECK(text.str() == "f16");
  const Parameter p(ones({2, 3}));
  CHECK(p.sizes() == Shape{2, 3});
  CHECK(p.size(1) == 3);
  CHECK(p.dim() == 2);
  CHECK(p.requires_grad());
  int64_t count = 0;
  count += x.numel();
  count -= x.size(0);
  count *= x.size(1);
  CHECK(count == 66);
  auto symbolic = [](const Tensor &y) {
    int64_t n = 0;
    n += y.size(0);
    return y * n;
  };
  CHECK(contains(messageOf([&] { trace(symbolic, {TensorSpec{f32, {Dim("n")}}}); }), "n"));
}

TEST_CASE("Initial values are set by functions with an underscore") {
  manual_seed(8);
  nn::Linear layer(64, 64);
  nn::init::xavier_uniform_(layer.weight);
  CHECK(layer.weight->abs().max().item() <= std::sqrt(6.0 / 128));
  nn::init::zeros_(layer.bias);
  CHECK(layer.bias->abs().max().item() == 0);
  nn::init::normal_(layer.weight, 1, 0.1);
  CHECK(layer.weight->mean().item() == Approx(1).margin(0.02));
  nn::init::eye_(layer.weight);
  CHECK(equal(layer.weight, eye(64)));
  nn::init::orthogonal_(layer.weight);
  CHECK(largestDifference(matmul(layer.weight, layer.weight->t()), eye(64)) < 1e-4);
}

TEST_CASE("Modules are saved and loaded in a line") {
  const std::string path = (std::filesystem::temp_directory_path() / "burin-user-test.safetensors").string();
  nn::Linear a(2, 3), b(2, 3);
  save(a, path);
  load(b, path);
  CHECK(equal(a.weight, b.weight));
  nn::Linear other(3, 3);
  CHECK_ERROR(load(other, path), "weight");
  std::filesystem::remove(path);
}

TEST_CASE("einsum names the letter whose sizes differ") {
  CHECK_ERROR(einsum("ij,jk->ik", ones({2, 3}), ones({4, 5})), "einsum: the letter \"j\" of \"ij,jk->ik\"",
              "the sizes 3 of f32[2, 3] and 4 of f32[4, 5]");
  CHECK(einsum("ij,jk->ik", ones({2, 3}), ones({1, 5})).shape() == Shape{2, 5}); // sizes of 1 broadcast
}
