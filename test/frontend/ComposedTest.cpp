// Properties of the composed functions that test/docs/FromPytorch.cpp does not check; that one compares their values
// with PyTorch's.
#include "test/frontend/Check.h"
#include <filesystem>

TEST_CASE("A size is a number in arithmetic") {
  Tensor x = ones({3, 4}, f16), k = ones({3}, i32);
  CHECK((x / x.size(0)).dtype() == f16);
  CHECK((k * k.size(0)).dtype() == i32);
  CHECK((k / k.size(0)).dtype() == f32);
  CHECK((k + x.size(0) * 2).to_vector<int>() == std::vector<int>{7, 7, 7});
  CHECK(Tensor(x.numel()).item<int>() == 12);

  // A symbolic size promotes like the number that replaces it.
  auto types = [](const Tensor &x, const Tensor &k) {
    return std::tuple{x / x.size(0), k * k.size(0), k / k.size(0), x.sum() * x.size(0)};
  };
  Graph g = trace(types, {TensorSpec{f16, {Dim("n"), 4}}, TensorSpec{i32, {Dim("n")}}});
  CHECK(g.outputs()[0].spec.dtype == f16);
  CHECK(g.outputs()[1].spec.dtype == i32);
  CHECK(g.outputs()[2].spec.dtype == f32);
  for (int64_t n : {1, 3}) {
    auto results = g.run({ones({n, 4}, f16), ones({n}, i32)});
    CHECK(results[1].to_vector<int64_t>() == std::vector<int64_t>(size_t(n), n));
    CHECK(results[3].item<int64_t>() == 4 * n * n);
  }
  CHECK_ERROR(x * Dim("n"), "the symbolic size n has a value in a trace only");
}

TEST_CASE("One integer is a list of one, and shapes compare") {
  Tensor x = rand({1, 3, 1});
  CHECK(x.squeeze(0).shape() == std::vector<int64_t>{3, 1});
  CHECK(x.squeeze({0, 2}).shape() == Shape{3});
  CHECK(x.shape() != std::vector<int64_t>{1, 3});
  CHECK(x.shape() != std::vector<int64_t>{1, 3, 2});
  CHECK(x.reshape(std::vector<int>{3, 1}).shape() == Shape{3, 1});
  std::ostringstream text;
  text << x.shape();
  CHECK(text.str() == "[1, 3, 1]");
  CHECK(nn::LayerNorm({8}).normalized == nn::IntList{8});
  CHECK(nn::RMSNorm({2, 3}).normalized.size() == 2);
}

TEST_CASE("Slices and splits by axis stand beside those of the ops") {
  Tensor x = arange(6);
  CHECK(ints(x.slice({1}, {5}, {2})) == std::vector<int64_t>{1, 3}); // starts, stops, steps
  CHECK(ints(x.slice(0, 1, 5, 2)) == std::vector<int64_t>{1, 3});
  CHECK(ints(x.slice(-1, -2)) == std::vector<int64_t>{4, 5});
  CHECK(x.slice(0, 4, 2).shape() == Shape{0});
  CHECK(split(x, {2, 4}).size() == 2);
  CHECK(split(x, 4).back().shape() == Shape{2});
  CHECK(x.chunk(4).size() == 3);
  CHECK(zeros({0}).chunk(3).size() == 3);
  CHECK(x(-1).item<int>() == 5);
  CHECK(x(Slice(0, 1)).shape() == Shape{1});
  CHECK(x.view({2, 3})(1, Slice(1, 3)).to_vector<int>() == std::vector<int>{4, 5});
  CHECK_ERROR(x(7), "index 7 is out of range");
  CHECK_ERROR(x.slice(1, 0, 2), "axis 1 is out of range for i64[6]");
  CHECK_ERROR(x.slice(0, 0, 2, -1), "the step -1 must be positive");
}

TEST_CASE("Pieces of a symbolic size") {
  auto pieces = [](const Tensor &x) { return x.chunk(3); };
  Graph g = trace(pieces, {TensorSpec{i64, {Dim("n")}}});
  for (int64_t n : {0, 1, 4, 7}) {
    std::vector<int64_t> joined;
    for (const Tensor &part : g.run({arange(n)}))
      for (int64_t value : ints(part))
        joined.push_back(value);
    CHECK(joined == ints(arange(n)));
  }
  auto split2 = [](const Tensor &x) { return split(x, 2); };
  CHECK(contains(messageOf([&] { trace(split2, {TensorSpec{f32, {Dim("n")}}}); }), "use chunk"));
}

TEST_CASE("Composed functions on empty tensors") {
  Tensor none = zeros({0, 3});
  CHECK(none.roll(1, 0).shape() == Shape{0, 3});
  CHECK(none.repeat({2, 1}).shape() == Shape{0, 3});
  CHECK(none.norm().item() == 0);
  CHECK(one_hot(zeros({0}, i64), 3).shape() == Shape{0, 3});
  CHECK(einsum("ij,jk->ik", none, ones({3, 2})).shape() == Shape{0, 2});
  CHECK(einsum("ij,ij->j", {none, none}).to_vector<float>() == std::vector<float>{0, 0, 0});
  CHECK(diagonal(zeros({2, 3}), 5).shape() == Shape{0});
  CHECK(allclose(none, none));
  CHECK_ERROR(median(none, 0), "has no elements along axis 0");
}

TEST_CASE("t() swaps two dimensions, and leaves vectors and numbers as they are, as PyTorch's") {
  CHECK(ones({2, 3}).t().shape() == Shape{3, 2});
  CHECK(ones({3}).t().shape() == Shape{3});
  CHECK(ones({}).t().shape() == Shape{});
}

TEST_CASE("one_hot and bincount count every value or fail") {
  const Tensor x = tensor({0, 3, 1, 3});
  CHECK(ints(bincount(x)) == std::vector<int64_t>{1, 1, 0, 2});
  CHECK(ints(bincount(x, 2)) == std::vector<int64_t>{1, 1, 0, 2});
  CHECK(ints(bincount(x, 5)) == std::vector<int64_t>{1, 1, 0, 2, 0});
  CHECK(bincount(zeros({0}, i64)).shape() == Shape{0});
  CHECK(ints(bincount(zeros({0}, i64), 2)) == std::vector<int64_t>{0, 0});
  CHECK_ERROR(bincount(tensor({1, -1})).wait(), "bincount: a value is negative");
  CHECK_ERROR(one_hot(x, 3).wait(), "one_hot: a class is out of range: there are 3, from 0 on");
  CHECK_ERROR(one_hot(tensor({1, -1})).wait(), "one_hot: a class is out of range: there are 2");
  CHECK_ERROR(one_hot(zeros({0}, i64)), "has no elements to count classes of");
  auto hot = jit([](const Tensor &k) { return one_hot(k, 3); });
  CHECK(ints(hot(tensor({2, 0}))) == std::vector<int64_t>{0, 0, 1, 1, 0, 0});
  CHECK(contains(messageOf([&] { hot(x).wait(); }), "one_hot: a class is out of range"));
  auto counts = jit([](const Tensor &k) { return bincount(k, 3); });
  CHECK(ints(counts(tensor({2, 0}))) == std::vector<int64_t>{1, 0, 1});
  CHECK(contains(messageOf([&] { counts(x).wait(); }), "not less than minlength, 3"));
}

TEST_CASE("Without an axis positions and medians are of all elements") {
  const Tensor x = tensor({{3.0, 9.0, 1.0}, {9.0, 0.0, 2.0}});
  CHECK(x.argmax().shape() == Shape{});
  CHECK(argmax(x).item<int64_t>() == 1); // the first of equals
  CHECK(x.argmin().item<int64_t>() == 4);
  CHECK(argmax(tensor(5.0)).item<int64_t>() == 0);
  CHECK(x.median().item() == 2);
  CHECK(x.quantile(0.5).item() == 2.5);
  CHECK_ERROR(argmax(zeros({0, 3})), "no elements");
  CHECK_ERROR(x.argmax(2), "axis 2");
  auto flat = jit([](const Tensor &y) { return y.argmax(); });
  CHECK(flat(x).item<int64_t>() == 1);
}

TEST_CASE("NaN in composed functions") {
  const float nan = std::nanf("");
  Tensor x = tensor({1.0, 2.0, nan, 0.5});
  CHECK(std::isnan(median(x).item()));
  CHECK(std::isnan(norm(x).item()));
  CHECK(nansum(x).item() == 3.5);
  CHECK_FALSE(allclose(x, x));
  CHECK(allclose(x, x, 1e-5, 1e-8, true));
  CHECK(isclose(tensor({INFINITY, INFINITY}), tensor({INFINITY, -INFINITY})).to_vector<bool>() ==
        std::vector<bool>{true, false});
  CHECK(nan_to_num(tensor({nan, INFINITY}), 7, 8).to_vector<float>() == std::vector<float>{7, 8});
}

TEST_CASE("Composed functions say what does not fit") {
  Tensor x = rand({3, 4}), k = ones({3, 4}, i64);
  CHECK_ERROR(k.masked_fill(x > 0, 0.5), "masked_fill: ", "a value of type f32 does not fit into i64[3, 4]");
  CHECK_ERROR(x.masked_fill(k, 0), "the mask is i64[3, 4], but must be bool");
  CHECK_ERROR(einsum("ij,jk", x), "einsum: ", "has 2 terms");
  CHECK_ERROR(einsum("ijk->i", x), "the term \"ijk\" does not fit");
  CHECK_ERROR(einsum("ij->k", x), "has a label that no input has");
  CHECK_ERROR(einsum("i?->i", x), "unexpected \"?\"");
  CHECK_ERROR(einsum("ii->i", x), "one letter stands for the sizes 3 and 4");
  CHECK_ERROR(x.narrow(1, 3, 2), "2 elements from 3 on are out of range for axis 1");
  CHECK_ERROR(x.roll({1, 2}, 0), "2 shifts for 1 axes");
  CHECK_ERROR(x.expand({-1, 3, 4}), "-1 keeps a size");
  CHECK_ERROR(x.repeat(2), "1 counts are too few");
  CHECK_ERROR(pad(x, {1, 2, 3}), "the list has 3 numbers");
  CHECK_ERROR(pad(x, {{1, 2}}), "1 pairs for the 2 dimensions");
  CHECK_ERROR(glu(rand({3})), "must be a known, even number");
  CHECK_ERROR(one_hot(x), "classes are integers");
  CHECK_ERROR(x.unfold(1, 5, 1), "windows of 5");
  CHECK_ERROR(meshgrid({x}), "it takes vectors");
  CHECK_ERROR(tensordot(x, x, 3), "there are not 3 dimensions");
  CHECK_ERROR(outer(x, x), "two vectors");
  CHECK_ERROR(linear(x, ones({4, 5})), "linear: x is f32[3, 4]", "weight f32[4, 5]", "must be 5");
  CHECK_ERROR(linear(tensor(1.0), ones({4, 5})), "linear: x is f32[]");
  CHECK_ERROR(arange(x.size(0), x.size(1), 0), "the step must not be 0");
}

TEST_CASE("Gradients flow through composed functions") {
  manual_seed(3);
  auto check = [](auto function, Shape shape) {
    gradcheck([=](const std::vector<Tensor> &in) { return std::vector<Tensor>{function(in[0])}; }, {rand(shape, f64)});
  };
  check([](const Tensor &x) { return einsum("ij,kj->ik", x, x); }, {3, 4});
  check([](const Tensor &x) { return einsum("ii->i", x); }, {3, 3});
  check([](const Tensor &x) { return x.roll({1, -1}, {0, 1}); }, {3, 4});
  check([](const Tensor &x) { return x.unfold(1, 2, 1) * x.size(0); }, {2, 4});
  check([](const Tensor &x) { return diagonal(x, 1); }, {3, 4});
  check([](const Tensor &x) { return x.norm(3, 1) + x.std(1); }, {3, 4});
  check([](const Tensor &x) { return logaddexp(x[0], x[1]); }, {2, 4});
  check([](const Tensor &x) { return pad(x, {1, 2}, "reflect"); }, {2, 4});
}

TEST_CASE("Calls with many tensors, with lists, and by name") {
  auto six = [](const Tensor &a, const Tensor &b, const Tensor &c, const Tensor &d, const Tensor &e, const Tensor &f) {
    return a + b + c + d + e + f;
  };
  Tensor x = ones({2});
  CHECK(floats(jit(six)(x, 2, x, x, 3, x)) == std::vector<float>{9, 9});
  auto total = [](const std::vector<Tensor> &xs) {
    Tensor sum = xs[0];
    for (size_t i = 1; i < xs.size(); ++i)
      sum = sum + xs[i];
    return sum;
  };
  auto fast = jit(total);
  CHECK(floats(fast(std::vector<Tensor>{x, x, x})) == std::vector<float>{3, 3});
  CHECK(floats(fast(std::vector<Tensor>(20, x))) == std::vector<float>{20, 20});
  CHECK(floats(fast(x, x)) == std::vector<float>{2, 2});

  auto five = [](const Tensor &a, const Tensor &b, const Tensor &c, const Tensor &d, const Tensor &e) {
    return a * b + c * d - e;
  };
  Artifact artifact = compile(trace(five, std::vector<TensorSpec>(5, {f32, {2}}), {"a", "b", "c", "d", "e"}, {"y"}));
  CHECK(floats(artifact(x, x, x, x, x)) == std::vector<float>{1, 1});
  std::map<std::string, Tensor> inputs{{"a", x}, {"b", 2 * x}, {"c", x}, {"d", x}, {"e", x}};
  CHECK(floats(artifact.run(inputs).at("y")) == std::vector<float>{2, 2});
  inputs.erase("c");
  CHECK_ERROR(artifact.run(inputs), "the input \"c\" is missing; the inputs are a, b, c, d, e");
  inputs["c"] = inputs["z"] = x;
  CHECK_ERROR(artifact.run(inputs), "there is no input \"z\"");
  CHECK_ERROR(artifact.run({{"z", x}}), "there is no input \"z\"; the inputs are a, b, c, d, e");

  const std::string path = std::filesystem::temp_directory_path() / "burin-composed-test.plate";
  artifact.save(path);
  CHECK(floats(Artifact::load(path)(x, x, x, x, x)) == std::vector<float>{1, 1});
  std::filesystem::remove(path);
}

TEST_CASE("The number of threads is fixed once they run") {
  zeros({3}).wait();
  const int threads = num_threads();
  CHECK(threads >= 1);
  set_num_threads(threads); // no change, so it is allowed
  CHECK_ERROR(set_num_threads(threads + 1), "threads already; call it before the first op");
  CHECK_ERROR(set_num_threads(0), "0 is not a number from 1 to 1024");
}
