// Pools with positions, order statistics, distances, integers, sampling: shapes that are symbolic, gradients, errors.
// test/docs/FromPytorch.cpp compares values with PyTorch's.
#include "test/frontend/Check.h"
#include <cmath>

using Tensors = const std::vector<Tensor> &;

namespace {

template <class F> void checkGradient(F function, const Tensor &x) {
  gradcheck([=](Tensors in) { return std::vector<Tensor>{function(in[0])}; }, {x});
}

/// Numbers without ties, in f64.
Tensor distinct(const Shape &shape) {
  manual_seed(7);
  return randperm(elements(shape).value()).to(f64).reshape(shape) / 3.0 - 2.0;
}

} // namespace

TEST_CASE("Max pools with positions agree with the op and are undone by unpools") {
  auto both = [](const Tensor &x) {
    auto [values, places] = max_pool2d_with_indices(x, 3, 2, 1, 1, true);
    return std::vector<Tensor>{values, places, max_pool2d(x, 3, 2, 1, 1, true)};
  };
  const Graph graph = trace(both, {TensorSpec{f32, {Dim("n"), 2, Dim("h", 3, 100), Dim("w", 3, 100)}}});
  for (const Shape &shape : {Shape{1, 2, 3, 3}, Shape{2, 2, 7, 4}, Shape{1, 2, 8, 9}}) {
    const Tensor x = distinct(shape).to(f32);
    const std::vector<Tensor> got = graph.run({x}), eager = both(x);
    CHECK(equal(got[0], got[2]));
    CHECK(equal(got[0], eager[0]));
    CHECK(equal(got[1], eager[1]));
    const Tensor flat = x.reshape({shape[0], 2, -1}), taken = flat.gather(2, got[1].reshape({shape[0], 2, -1}));
    CHECK(equal(taken, got[0].reshape(taken.shape())));
    const Tensor back = max_unpool2d(got[0], got[1], 3, 2, 1, x.shape());
    CHECK(equal(back.where(back != 0, x), x));
  }
  CHECK(ints(max_pool1d_with_indices(full({1, 1, 4}, -INFINITY), 2, 2, 1).indices) == std::vector<int64_t>{0, 1, 3});
  CHECK(ints(max_pool1d_with_indices(tensor({{{3, 3, 1}}}), 3).indices) == std::vector<int64_t>{0}); // the first
  CHECK(max_pool3d_with_indices(distinct({1, 1, 4, 4, 4}), 2).indices.shape() == Shape{1, 1, 2, 2, 2});
}

TEST_CASE("Pools have gradients") {
  checkGradient([](const Tensor &x) { return max_pool2d_with_indices(x, 3, 2, 1).values; }, distinct({1, 2, 5, 4}));
  checkGradient(
      [](const Tensor &x) {
        auto [values, places] = max_pool1d_with_indices(x, 2);
        return max_unpool1d(values * values, places, 2);
      },
      distinct({1, 2, 6}));
  checkGradient([](const Tensor &x) { return lp_pool2d(x, 3, 2); }, distinct({1, 1, 4, 4}).abs() + 0.5);
  checkGradient([](const Tensor &x) { return local_response_norm(x, 3, 0.5); }, distinct({1, 4, 3}));
  CHECK_ERROR(max_pool2d_with_indices(zeros({3, 4}), 2), "max_pool2d_with_indices: x is f32[3, 4]", "[N, C]");
  CHECK_ERROR(max_pool1d_with_indices(zeros({1, 1, 4}), 2, 2, 2), "the padding is at most half the window");
  CHECK_ERROR(max_unpool1d(zeros({1, 1, 4}), zeros({1, 1, 3}, i64), 2), "the indices are i64[1, 1, 3]");
  CHECK_ERROR(max_unpool1d(zeros({1, 1, 1}), full({1, 1, 1}, 9), 2).wait(), "");
  CHECK_ERROR(lp_pool1d(zeros({1, 1, 4}), 0, 2), "the power 0.0", "must be positive");
}

TEST_CASE("Modes and medians of numbers") {
  const Tensor x = tensor({{3, 1, 3, 1, 2}, {5, 4, 5, 5, 4}});
  auto [values, places] = mode(x, 1);
  CHECK(ints(values) == std::vector<int64_t>{1, 5});
  CHECK(ints(places) == std::vector<int64_t>{3, 3});
  CHECK(x.mode(0).values.shape() == Shape{5});
  CHECK(std::isnan(nanmedian(full({2}, NAN)).item()));
  CHECK(nanmedian(tensor({NAN, 4.0, 1.0, 9.0})).item() == 4);
  CHECK(nanquantile(tensor({NAN, 4.0, 1.0, 9.0}), 0.25).item() == 2.5);
  CHECK(nanmedian(tensor({7, 2, 5})).item<int64_t>() == 5);
  CHECK_ERROR(mode(zeros({0, 2}), 0), "mode: f32[0, 2] has no elements along axis 0");
  CHECK_ERROR(nanquantile(x, 2, 1), "q is 2.0");
  auto modes = [](const Tensor &k) { return mode(k, 0).values; };
  const Graph graph = trace(modes, {TensorSpec{i64, {Dim("n", 1, 100), 2}}});
  CHECK(ints(graph.run({tensor({{1, 2}, {3, 2}, {3, 0}})})[0]) == std::vector<int64_t>{3, 2});
  checkGradient([](const Tensor &y) { return nanmedian(y, 1); }, distinct({2, 5}));
}

TEST_CASE("Sums of exponentials do not overflow or vanish") {
  const std::vector<float> sums = floats(logcumsumexp(tensor({-1000.0, -1000.0, 0.0, 1000.0}), 0));
  CHECK(sums[1] == Approx(-1000 + std::log(2.0)));
  CHECK(sums[2] == 0);
  CHECK(sums[3] == 1000);
  CHECK(floats(logcumsumexp(full({2}, -INFINITY), 0))[1] == -INFINITY);
  CHECK(logcumsumexp(ones({2}, f16), 0).dtype() == f16);
  CHECK(logcumsumexp(zeros({0, 3}), 0).shape() == Shape{0, 3});
  checkGradient([](const Tensor &x) { return logcumsumexp(x, 1); }, distinct({2, 4}));
}

TEST_CASE("Divisors and multiples of integers") {
  constexpr int64_t a = 2971215073, b = 1836311903; // Fibonacci numbers: the most steps of Euclid's algorithm
  CHECK(ints(gcd(tensor({a, a * 2, int64_t(0), int64_t(-12)}), tensor({b, a * 3, int64_t(0), int64_t(18)}))) ==
        std::vector<int64_t>{1, a, 0, 6});
  CHECK(ints(lcm(tensor({4, 0, -6}), tensor({6, 5, 4}))) == std::vector<int64_t>{12, 0, 12});
  CHECK(gcd(tensor({4}, i32), tensor({6}, i64)).dtype() == i64);
  CHECK(gcd(tensor({{4}, {9}}), tensor({6, 3})).shape() == Shape{2, 2});
  auto f = jit([](const Tensor &x, const Tensor &y) { return gcd(x, y); });
  CHECK(ints(f(tensor({48, 7}), tensor({36, 21}))) == std::vector<int64_t>{12, 7});
  CHECK(gcd(zeros({0}, i64), 2).shape() == Shape{0});
  CHECK_ERROR(gcd(ones({2}), 2), "gcd: it takes integers, not f32[2]");
}

TEST_CASE("Distances of pairs over any number of rows") {
  const Graph graph = trace([](const Tensor &x) { return pdist(x); }, {TensorSpec{f32, {Dim("n"), 3}}});
  for (int64_t n : {0, 1, 2, 3, 17, 100}) {
    const Tensor x = distinct({n, 3}).to(f32), all = cdist(x, x), pairs = triu_indices(n, n, 1);
    const Tensor expected = all[{pairs[0], pairs[1]}], got = graph.run({x})[0];
    REQUIRE(got.shape() == Shape{n * (n - 1) / 2});
    CHECK(allclose(got, expected));
    CHECK(allclose(pdist(x), expected));
  }
  checkGradient([](const Tensor &x) { return pdist(x, 3); }, distinct({4, 2}));
  CHECK_ERROR(pdist(zeros({3})), "pdist: x is f32[3], but must be [N, M]");
}

TEST_CASE("Parts are replaced in a copy") {
  auto check = [](auto function) { checkGradient(function, distinct({3, 3})); };
  check([](const Tensor &x) { return select_scatter(x, x[0] * 2, 1, -1) * x; });
  check([](const Tensor &x) { return slice_scatter(x, x(Slice(2)) * x(Slice(1, 3)), 0, 1); });
  check([](const Tensor &x) { return diagonal_scatter(x, x[0](Slice(2)) * 3, 1) * x; });
  check([](const Tensor &x) { return index_reduce(x, 0, tensor({2, 0}), x(Slice(2)) * 2, "prod"); });
  check([](const Tensor &x) { return renorm(x, 2, 0, 0.5); });
  const Tensor x = zeros({2, 3});
  CHECK_ERROR(select_scatter(x, ones({2}), 0, 0), "the source is f32[2]", "has the shape [3]");
  CHECK_ERROR(slice_scatter(x, ones({2, 3}), 0, 1), "has the shape [1, 3]");
  CHECK_ERROR(diagonal_scatter(x, ones({3})), "has the shape [2]");
  CHECK_ERROR(index_reduce(x, 0, tensor({0}), ones({1, 3}), "sum"), "index_add");
  CHECK_ERROR(hsplit(x, 2), "2 pieces do not divide dimension 1 of f32[2, 3]", "tensor_split");
  CHECK_ERROR(pad(x, {4, 0}, "circular"), "a circular padding of 4 is more than dimension 1 of f32[2, 3]");
  CHECK_ERROR(x.sum_to_size({3, 3}), "[3, 3] does not broadcast to f32[2, 3]");
}

TEST_CASE("Samples of the Gumbel-softmax") {
  manual_seed(11);
  const Tensor logits = tensor({1.0, 2.0, 0.0}).expand({20000, 3});
  const Tensor hard = gumbel_softmax(logits, 1, true), soft = gumbel_softmax(logits, 0.5);
  CHECK(((hard == 0) | (hard == 1)).all().item<bool>());
  CHECK(allclose(hard.sum(1), ones({20000})));
  CHECK(allclose(soft.sum(1), ones({20000})));
  CHECK(largestDifference(hard.mean(0), softmax(logits[0])) < 0.02); // of the same distribution
  Parameter p(zeros({4, 3}));
  auto loss = [&] { return (gumbel_softmax(p.value(), 1, true) * tensor({1.0, 2.0, 3.0})).sum(); };
  CHECK(grad(loss(), {p})[0].abs().sum().item() > 0);
  CHECK_ERROR(gumbel_softmax(logits, 0), "a positive temperature");
}

TEST_CASE("Dropout that keeps mean and variance") {
  manual_seed(12);
  const Tensor x = randn({200, 500}), y = alpha_dropout(x, 0.3);
  CHECK(y.mean().item() == Approx(0).margin(0.02));
  CHECK(y.std().item() == Approx(1).margin(0.02));
  const Tensor channels = feature_alpha_dropout(randn({50, 40, 6}), 0.5);
  const Tensor isConstant = channels.std(2) == 0; // dropped as a whole
  CHECK(isConstant.to(f32).mean().item() == Approx(0.5).margin(0.05));
  const Tensor slopes = rrelu(full({1000}, -1.0), 0.1, 0.3, true);
  CHECK(slopes.max().item() <= -0.1f);
  CHECK(slopes.min().item() >= -0.3f);
}

TEST_CASE("Short-time Fourier transforms of any length are inverted") {
  const StftOptions options{.hop_length = 4, .window = hann_window(16)};
  auto there = [&](const Tensor &x) { return stft(x, 16, options); };
  const Graph graph = trace(there, {TensorSpec{f32, {Dim("n", 16, 10000)}}});
  manual_seed(13);
  for (int64_t n : {16, 33, 100}) {
    const Tensor x = randn({n}), spectra = graph.run({x})[0];
    CHECK(allclose(spectra, there(x), 1e-4, 1e-5));
    CHECK(allclose(istft(spectra, 16, options, n), x, 1e-4, 1e-5));
  }
  CHECK_ERROR(stft(ones({4}), 16, {.center = false}), "a frame of 16 samples does not fit the signal f32[4]");
  CHECK_ERROR(stft(ones({40}), 16, {.window = ones({4})}), "the window is f32[4]", "the 16 elements of win_length");
  CHECK_ERROR(istft(ones({4, 3, 2}), 16), "must be floats [9, frames, 2]");
  CHECK_ERROR(hann_window(-1), "the size -1 must not be negative");
}

TEST_CASE("Modules and parameters by name and by position") {
  struct Net : nn::Module {
    nn::ModuleDict<nn::Linear> heads = register_module("heads", nn::ModuleDict<nn::Linear>());
    nn::ParameterList scales = register_module("scales", nn::ParameterList());
    Net() {
      heads.insert("a", nn::Linear(2, 3));
      heads.insert("b", nn::Linear(2, 1));
      scales.append(ones({3}));
    }
    Tensor operator()(const Tensor &x) const { return heads["a"](x) * scales[0] + heads["b"](x); }
  } net;
  CHECK(net(ones({4, 2})).shape() == Shape{4, 3});
  CHECK(net.state_dict().find("heads.b.weight"));
  CHECK(net.state_dict().find("scales.0"));
  CHECK(net.parameters().size() == 5);
  CHECK(net.heads.contains("b"));
  CHECK(messageOf([&] { net.heads["c"]; }).find("there is no module \"c\"") != std::string::npos);
  CHECK(messageOf([&] { net.scales[1]; }).find("there is no parameter 1 among 1") != std::string::npos);
}
