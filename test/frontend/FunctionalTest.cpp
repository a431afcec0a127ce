// What users of PyTorch write: calls, and functions of torch.nn.functional, apart from their values, which
// test/docs/FromPytorch.cpp compares with PyTorch's.
#include "test/frontend/Check.h"
#include <filesystem>
#include <sstream>

namespace {

/// Checks `function` over symbolic image sizes: one trace gives the eager results for several sizes.
template <class F> void checkOverSizes(F function) {
  const Graph graph = trace(function, {TensorSpec{f32, {Dim("n"), 3, Dim("h", 4, 100), Dim("w", 4, 100)}}});
  manual_seed(3);
  for (const Shape &shape : {Shape{1, 3, 4, 4}, Shape{2, 3, 7, 5}, Shape{3, 3, 9, 12}}) {
    Tensor x = rand(shape), expected = function(x), got = graph.run({x})[0];
    INFO(shape);
    REQUIRE(got.shape() == expected.shape());
    CHECK(largestDifference(got, expected) < 1e-5);
  }
}

template <class F> void checkGradient(F function, const Tensor &x) {
  gradcheck([=](const std::vector<Tensor> &in) { return std::vector<Tensor>{function(in[0])}; }, {x});
}

} // namespace

TEST_CASE("Sizes are printed as text") {
  std::ostringstream text;
  Tensor x = zeros({2, 3});
  text << Dim("n") * 2 + 1 << " " << x.size(1) << " " << x.shape();
  CHECK(text.str() == "n*2 + 1 3 [2, 3]");
}

TEST_CASE("Functions of a list are called with braces") {
  auto total = [](const std::vector<Tensor> &xs) {
    Tensor sum = xs[0];
    for (size_t i = 1; i < xs.size(); ++i)
      sum = sum + xs[i];
    return sum;
  };
  Tensor x = ones({2}), y = x * 3;
  nn::Linear layer(2, 2);
  CHECK(floats(jit(total)({x, y})) == std::vector<float>{4, 4});
  CHECK(floats(jit(total)({x})) == std::vector<float>{1, 1});
  CHECK(floats(jit(total)({x, 2, y})) == std::vector<float>{6, 6});
  CHECK(largestDifference(jit(total)({layer.bias, x}), layer.bias + x) == 0);
  CHECK(floats(vmap(total)({x, y})) == std::vector<float>{4, 4});
}

TEST_CASE("full has the element type of its value") {
  CHECK(full({2}, 7).dtype() == i64);
  CHECK(full({2}, 7.0).dtype() == f32);
  CHECK(full({2}, 7.0f).dtype() == f32);
  CHECK(full({2}, true).dtype() == DType::boolean);
  CHECK(full({2}, 7, f16).dtype() == f16);
  CHECK(full(std::vector<int>{2}, 7).dtype() == i64);
  CHECK(full({2}, zeros({3}).size(0)).to_vector<int64_t>() == std::vector<int64_t>{3, 3});
  CHECK(full({1}, INT64_MAX).item<int64_t>() == INT64_MAX);
  CHECK(full({1}, (int64_t(1) << 53) + 1).item<int64_t>() == (int64_t(1) << 53) + 1);
  CHECK_ERROR(full({2}, zeros({3})), "the value must be one number, but is f32[3]");
}

TEST_CASE("Sizes of creation functions may be symbolic") {
  auto make = [](const Tensor &x) {
    return std::tuple{eye(x.size(0)), linspace(0, 1, x.size(0)), linspace(x.size(0), 0, 3)};
  };
  const Graph graph = trace(make, {TensorSpec{f32, {Dim("n")}}});
  for (int64_t n : {0, 1, 2, 5}) {
    const std::vector<Tensor> made = graph.run({zeros({n})});
    CHECK(equal(made[0], eye(n)));
    CHECK(equal(made[1], linspace(0, 1, n)));
    CHECK(floats(made[2]) == std::vector<float>{float(n), float(n) / 2, 0});
  }
  CHECK_ERROR(linspace(0, 1, -1), "the count -1 must not be negative");
  CHECK_ERROR(linspace(zeros({2}), 1, 3), "start and stop must be one number each");
}

TEST_CASE("Sums with a factor keep the element type") {
  Tensor k = tensor({1, 2});
  CHECK(ints(k.sub(k, 3)) == std::vector<int64_t>{-2, -4});
  CHECK(k.add(k, 2).dtype() == i64);
  CHECK(ones({2}, f16).add(ones({2}, f16), 0.5).dtype() == f16);
  CHECK_ERROR(k.add(k, 0.5), "alpha must be an integer for i64[2] and i64[2]");
}

TEST_CASE("index_put leaves the handle as it was") {
  Tensor x = zeros({3}), y = x.index_put({1}, 5);
  CHECK(floats(x) == std::vector<float>{0, 0, 0});
  CHECK(floats(y) == std::vector<float>{0, 5, 0});
  CHECK(floats(x.index_put({tensor({2, 2})}, tensor({1.0, 2.0}), true)) == std::vector<float>{0, 0, 3});
  CHECK_ERROR(x.index_put({tensor({5})}, 1.0, true).wait(), "");
}

TEST_CASE("Sizes in types are not negative, and errors of sizes have a line") {
  CHECK_ERROR(trace([](const Tensor &x) { return x; }, {TensorSpec{f32, {-1, 4}}}),
              "input 0 is f32[-1, 4], but a size is not negative", "Dim(\"n\")");
  const Dim n("n");
  const int line = __LINE__ - 1;
  CHECK(contains(messageOf([&] { floordiv(n, 0); }), atLine(__FILE__, line) + "a size is divided by 0"));
  CHECK(contains(messageOf([&] { n * INT64_MAX * 4; }), atLine(__FILE__, line)));
  CHECK(
      contains(messageOf([&] { mod(n + 1, 0); }), "a size is divided by 0: floordiv(n + 1, 0), in an expression of n"));
  CHECK(messageOf([&] { floordiv(Dim(4), 0); }) == "a size is divided by 0: floordiv(4, 0)");
  CHECK(
      contains(messageOf([&] { Dim(INT64_MAX) * 2; }), "or its expression is too large: mul(9223372036854775807, 2)"));
}

TEST_CASE("A module made in a trace is refused with its line") {
  auto traced = [](auto &&make) {
    return messageOf([&] { trace([&](const Tensor &x) { return make()(x); }, {TensorSpec{f32, {2, 3, 4, 4}}}); });
  };
  std::string what = traced([] { return nn::LayerNorm({4}); });
  CHECK(contains(what, atLine(__FILE__, __LINE__ - 1) + "Parameter: "));
  what = traced([] { return nn::BatchNorm2d(3); });
  CHECK(contains(what, atLine(__FILE__, __LINE__ - 1)));
  what = traced([] { return nn::Linear(4, 4); });
  CHECK(contains(what, atLine(__FILE__, __LINE__ - 1)));
  what = traced([] { return nn::Conv2d(3, 3, 1); });
  CHECK(contains(what, atLine(__FILE__, __LINE__ - 1)));
  what = messageOf([&] { trace([&](const Tensor &x) { return Parameter(x).value(); }, {TensorSpec{f32, {2}}}); });
  CHECK(contains(what, atLine(__FILE__, __LINE__ - 1)));
}

TEST_CASE("dropout drops in training") {
  manual_seed(5);
  Tensor x = ones({100, 100}), y = dropout(x, 0.25);
  CHECK(((y == 0) | (y == full({}, 1 / 0.75))).all().item<bool>());
  CHECK((y == 0).to(f32).mean().item() == Approx(0.25).margin(0.03));
  CHECK(equal(dropout(x, 0.25, false), x));
  CHECK(dropout(x, 1).sum().item() == 0);
  CHECK_ERROR(dropout(x, 1.5), "dropout");
  auto f = jit([](const Tensor &x) { return dropout(x); });
  CHECK(!equal(f(x), f(x)));
}

TEST_CASE("batch_norm in training is that of the layer") {
  manual_seed(6);
  nn::BatchNorm2d layer(3);
  Parameter mean(zeros({3}), false), variance(ones({3}), false);
  Tensor x = randn({4, 3, 5, 5}), weight = rand({3}), bias = rand({3});
  layer.weight.set(weight);
  layer.bias.set(bias);
  auto f = jit([&](const Tensor &x) { return batch_norm(x, mean, variance, weight, bias, true); });
  for (int i = 0; i < 3; ++i) {
    Tensor expected = layer(x + i), got = i == 1 ? f(x + i) : batch_norm(x + i, mean, variance, weight, bias, true);
    CHECK(largestDifference(got, expected) < 1e-6);
  }
  CHECK(largestDifference(mean.value(), layer.running_mean.value()) < 1e-6);
  CHECK(largestDifference(variance.value(), layer.running_var.value()) < 1e-6);
  layer.eval();
  CHECK(largestDifference(batch_norm(x, mean, variance, weight, bias, false), layer(x)) < 1e-6);
  CHECK_ERROR(batch_norm(x, bias, weight, weight, bias, true), "must be Parameters (buffers), not tensors", "pass {}");
  CHECK_ERROR(batch_norm(x, {}, {}, weight, bias, false), "running statistics, which are not given");
  CHECK_ERROR(batch_norm(ones({1, 3}), {}, {}, weight, bias, true), "one value per channel");
}

TEST_CASE("Windows and samples of images with symbolic sizes") {
  checkOverSizes([](const Tensor &x) { return unfold(x, {3, 2}, 1, {1, 0}, 2); });
  checkOverSizes([](const Tensor &x) {
    return fold(unfold(x, {3, 2}, 1, {1, 0}, 2), {x.size(2), x.size(3)}, {3, 2}, 1, {1, 0}, 2);
  });
  checkOverSizes([](const Tensor &x) { return adaptive_max_pool2d(x, {3, 2}); });
  checkOverSizes([](const Tensor &x) {
    Tensor theta = tensor({{{0.7, 0.2, 0.1}, {-0.3, 0.9, 0.2}}}).expand({x.size(0), 2, 3});
    return grid_sample(x, affine_grid(theta, {x.size(0), 3, x.size(2) + 1, x.size(3)}), "bilinear", "reflection");
  });
  CHECK_ERROR(unfold(ones({3, 3}), 2), "must be images [N, C, H, W]", "x.unfold(axis, size, step)");
  CHECK_ERROR(unfold(ones({1, 1, 3, 3}), 5), "a window of 5 does not fit the size 3");
  CHECK_ERROR(unfold(ones({1, 1, 3, 3}), {1, 2, 3}), "the kernel has 3 numbers");
  CHECK_ERROR(fold(ones({1, 5, 4}), {3, 3}, 2), "multiple of the 4 elements");
  CHECK_ERROR(fold(ones({1, 4, 5}), {3, 3}, 2), "number of windows, 4");
  CHECK_ERROR(adaptive_max_pool2d(ones({4, 4}), 2), "adaptive_max_pool2d", "f32[4, 4]");
  CHECK_ERROR(grid_sample(ones({1, 1, 3, 3}), ones({1, 2, 2, 3})), "do not fit");
  CHECK_ERROR(grid_sample(ones({1, 1, 3, 3}), ones({1, 2, 2, 2}), "linear"), "must be one of \"bilinear\"");
  CHECK_ERROR(affine_grid(ones({1, 3, 4}), {1, 1, 2, 2}), "theta f32[1, 3, 4] and the size [1, 1, 2, 2] do not fit");
}

TEST_CASE("Windows and samples have gradients") {
  manual_seed(7);
  Tensor image = rand({2, 2, 4, 5}, f64), grid = rand({2, 3, 2, 2}, f64) * 1.6 - 0.8;
  checkGradient([](const Tensor &x) { return unfold(x, 2, 1, 1, 2); }, image);
  checkGradient([](const Tensor &x) { return fold(x, {3, 4}, 2); }, rand({1, 4, 6}, f64));
  checkGradient([](const Tensor &x) { return adaptive_max_pool2d(x, 3); }, image);
  for (const char *padding : {"zeros", "border", "reflection"}) {
    checkGradient([=](const Tensor &x) { return grid_sample(x, grid, "bilinear", padding); }, image);
    checkGradient([=](const Tensor &g) { return grid_sample(image, g, "bicubic", padding, true); }, grid);
  }
  checkGradient([](const Tensor &t) { return affine_grid(t, {1, 1, 2, 3}); }, rand({1, 2, 3}, f64));
  checkGradient([](const Tensor &x) { return x.masked_scatter(tensor({true, false, true}), x * 2); }, rand({3}, f64));
  checkGradient([](const Tensor &x) { return repeat_interleave(x, tensor({2, 0, 1}), 0); }, rand({3, 2}, f64));
  checkGradient([](const Tensor &x) { return take(x, tensor({0, 5, 5})); }, rand({3, 2}, f64));
  checkGradient([](const Tensor &x) { return x.index_put({tensor({1, 1})}, x(Slice(2)), true); }, rand({3, 2}, f64));
}

TEST_CASE("Elements that differ, and their numbers") {
  const float nan = std::nanf("");
  CHECK(unique(tensor({nan, 1.0, nan, 1.0})).shape() == Shape{3}); // each NaN is different
  CHECK(unique(zeros({0, 2})).shape() == Shape{0});
  CHECK(ints(unique_consecutive(tensor({1, 1, 3, 1}))) == std::vector<int64_t>{1, 3, 1});
  auto counted = [](const Tensor &x) {
    UniqueResult all = unique_all(x);
    return std::tuple{all.values, all.inverse, all.counts, all.values.size(0) * 1};
  };
  const Graph graph =
      trace([&](const Tensor &x) { return std::get<0>(counted(x)) * 2; }, {TensorSpec{i64, {Dim("n")}}});
  for (const std::vector<int64_t> &given : {std::vector<int64_t>{}, {5}, {3, 1, 3, 3, 1}})
    CHECK(equal(graph.run({from_vector(given)})[0], unique(from_vector(given)) * 2));
  const UniqueResult all = unique_all(tensor({{3, 1}, {3, 3}}));
  CHECK(all.inverse.shape() == Shape{2, 2});
  CHECK(ints(take(all.values, all.inverse)) == std::vector<int64_t>{3, 1, 3, 3});
  CHECK(ints(all.counts) == std::vector<int64_t>{1, 3});
}

TEST_CASE("Counts of repetitions and sources of masks must fit") {
  Tensor x = arange(3), counts = tensor({2, 0, 1});
  CHECK(ints(x.repeat_interleave(counts, 0)) == std::vector<int64_t>{0, 0, 2});
  CHECK_ERROR(repeat_interleave(x, counts, 0, 4).wait(), "their sum is not the output size 4");
  CHECK_ERROR(repeat_interleave(x, tensor({2, -1, 2}), 0).wait(), "a count is negative");
  CHECK_ERROR(repeat_interleave(x, ones({3}), 0), "must be a vector of integers");
  auto repeated = [](const Tensor &x, const Tensor &n) { return repeat_interleave(x, n, 0); };
  const std::string what = messageOf([&] { trace(repeated, {TensorSpec{f32, {3}}, TensorSpec{i64, {3}}}); });
  CHECK(contains(what, "repeat_interleave(x, counts, axis, output_size)"));
  CHECK_ERROR(x.masked_scatter(tensor({true, true, true}), arange(2)).wait(), "");
  CHECK_ERROR(x.masked_scatter(x, x), "the mask is i64[3], but must be bool");
  CHECK_ERROR(x.masked_scatter(x > 0, ones({3})), "must have the element type of i64[3]");
  CHECK(ints(x.masked_scatter(x > 5, zeros({0}, i64))) == std::vector<int64_t>{0, 1, 2});
}

TEST_CASE("A loaded artifact may have threads of its own") {
  const auto path = std::filesystem::temp_directory_path() / "burin-functional-test.plate";
  Tensor x = rand({300, 300});
  Artifact artifact = compile(trace([](const Tensor &x) { return matmul(x, x) + x; }, {x.spec()}));
  artifact.save(path);
  for (int threads : {1, 3})
    CHECK(equal(Artifact::load(path, {.threads = threads})(x), artifact(x)));
  CHECK_ERROR(Artifact::load(path, {.threads = -1}), "-1 threads is not a number from 0 to 1024");
  std::filesystem::remove(path);
}
