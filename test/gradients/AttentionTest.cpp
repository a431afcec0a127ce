// Gradients of attention in one kernel (burin-attention-gradients), compared with the same gradients in f64, which are
// products with the matrix of weights.
#include "test/Features.h"
#include "test/frontend/Check.h"
#include <cmath>
#include <limits>

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

struct Sizes {
  Shape heads;
  int64_t rows, keys, width;
};

struct Inputs {
  Tensor q, k, v, g;
  std::optional<Tensor> mask;
  std::vector<Tensor> all(DType type) const {
    std::vector<Tensor> list{q.to(type), k.to(type), v.to(type), g.to(type)};
    if (mask)
      list.push_back(isBool(mask->dtype()) ? *mask : mask->to(type));
    return list;
  }
};

Inputs inputsOf(const Sizes &s) {
  auto matrix = [&](int64_t rows) {
    Shape shape = s.heads;
    shape.insert(shape.end(), {rows, s.width});
    return randn(shape, f64).to(f32);
  };
  return {matrix(s.rows), matrix(s.keys), matrix(s.keys), matrix(s.rows), std::nullopt};
}

/// The output and the gradients of queries, keys and values.
std::vector<Tensor> attended(const std::vector<Tensor> &xs, bool isCausal) {
  auto mask = xs.size() > 4 ? std::optional(xs[4]) : std::nullopt;
  Tensor y = scaled_dot_product_attention(xs[0], xs[1], xs[2], mask, isCausal);
  std::vector<Tensor> results{y};
  for (const Tensor &x : grad(y, {xs[0], xs[1], xs[2]}, xs[3]))
    results.push_back(x);
  return results;
}

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor> &)>;
std::vector<Tensor> compiled(const Function &f, const std::vector<Tensor> &inputs) {
  std::vector<TensorSpec> specs;
  for (const Tensor &x : inputs)
    specs.push_back(x.spec());
  return trace(f, specs).run(inputs);
}

/// Compares results in a type with those in f64 of the same inputs; NaN must be at the same places.
void check(const Function &f, const Inputs &inputs, DType type, double bound) {
  std::vector<Tensor> all = inputs.all(type), exact;
  for (const Tensor &x : all)
    exact.push_back(isBool(x.dtype()) ? x : x.to(f64));
  std::vector<Tensor> got = compiled(f, all), wanted = compiled(f, exact);
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("result " << i);
    REQUIRE(got[i].shape() == wanted[i].shape());
    auto x = got[i].to(f64).to_vector<double>(), y = wanted[i].to_vector<double>();
    double top = 1;
    for (double value : y)
      top = std::isfinite(value) ? std::max(top, std::abs(value)) : top;
    for (size_t n = 0; n < x.size(); ++n)
      if (std::isnan(x[n]) != std::isnan(y[n]) || std::abs(x[n] - y[n]) > bound * top)
        FAIL("element " << n << " is " << x[n] << ", but should be " << y[n]);
  }
}

constexpr double kBound = 1e-5, kHalfBound = 8e-3; // of the largest element

} // namespace

TEST_CASE("gradients of attention, whatever the lengths") {
  const Sizes sizes =
      GENERATE(Sizes{{2, 8}, 1, 1, 1}, Sizes{{2, 8}, 1, 130, 64}, Sizes{{2, 8}, 13, 33, 5}, Sizes{{16}, 48, 32, 16},
               Sizes{{17}, 200, 97, 33}, Sizes{{1, 8, 2}, 49, 65, 40}, Sizes{{16}, 7, 300, 8}, Sizes{{16}, 300, 7, 8},
               Sizes{{2, 3}, 20, 30, 8}); // few heads: composed of products
  INFO(sizes.rows << " rows, " << sizes.keys << " keys, width " << sizes.width);
  Inputs inputs = inputsOf(sizes);
  static size_t number = 0; // without --long half of the ways for each size, others for the next one
  ++number;
  auto check = [&](const Function &f, const Inputs &given, DType type, double bound) {
    if (test::isSampled(number++, 4))
      ::check(f, given, type, bound);
  };
  auto plain = [](const std::vector<Tensor> &xs) { return attended(xs, false); };
  auto causal = [](const std::vector<Tensor> &xs) { return attended(xs, true); };
  check(plain, inputs, f32, kBound);
  check(causal, inputs, f32, kBound);
  check(plain, inputs, f16, kHalfBound);
  check(causal, inputs, f16, kHalfBound);
  inputs.mask = randn({sizes.rows, sizes.keys});
  check(plain, inputs, f32, kBound);
  inputs.mask = randn({sizes.rows, sizes.keys}) > -0.5; // some rows may see nothing
  check(plain, inputs, f32, kBound);
  check(causal, inputs, f32, kBound);
  Shape perHead = sizes.heads;
  perHead.insert(perHead.end(), {1, sizes.keys});
  inputs.mask = randn(perHead) > -0.5;
  check(plain, inputs, f32, kBound);
}

TEST_CASE("gradients of causal attention in bf16") {
  auto causal = [](const std::vector<Tensor> &xs) { return attended(xs, true); };
  check(causal, inputsOf({{16}, 260, 270, 24}), bf16, kHalfBound);
}

TEST_CASE("gradients of attention without rows, keys or heads") {
  const Sizes sizes = GENERATE(Sizes{{16}, 0, 9, 8}, Sizes{{16}, 9, 0, 8}, Sizes{{16}, 0, 0, 8});
  Dim rows("rows"), keys("keys");
  for (bool isCausal : {false, true}) {
    Graph graph = trace([&](const std::vector<Tensor> &xs) { return attended(xs, isCausal); },
                        {{f32, {16, rows, 8}}, {f32, {16, keys, 8}}, {f32, {16, keys, 8}}, {f32, {16, rows, 8}}});
    Inputs inputs = inputsOf(sizes);
    for (const Tensor &x : graph.run(inputs.all(f32)))
      for (float value : floats(x))
        CHECK(value == 0);
  }
}

TEST_CASE("rows that see nothing have no gradient, and NaN spreads as in the products") {
  Inputs inputs = inputsOf({{16}, 50, 40, 16});
  inputs.mask = iota({50, 40}, f32, 0) > 20.0;
  auto plain = [](const std::vector<Tensor> &xs) { return attended(xs, false); };
  check(plain, inputs, f32, kBound);
  auto results = compiled(plain, inputs.all(f32));
  CHECK(floats(results[1](Slice(), Slice(0, 21)).abs().max())[0] == 0);

  inputs.mask = std::nullopt;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor isBad = iota({16, 50, 16}, i64, 1) * 16 + iota({16, 50, 16}, i64, 2) == 7 * 16 + 3;
  for (Tensor *x : {&inputs.q, &inputs.g}) {
    const Tensor whole = *x;
    *x = where(isBad, nan, whole);
    check(plain, inputs, f32, kBound);
    *x = whole;
  }
}

TEST_CASE("gradients of attention of symbolic lengths have the bits of fixed ones") {
  Dim batch("batch"), rows("rows"), keys("keys"); // of a batch of 16 in the runs
  Graph graph =
      trace([](const std::vector<Tensor> &xs) { return attended(xs, true); },
            {{f32, {batch, rows, 24}}, {f32, {batch, keys, 24}}, {f32, {batch, keys, 24}}, {f32, {batch, rows, 24}}});
  for (auto [r, s] : {std::pair(1, 1), {13, 70}, {97, 97}, {100, 33}}) {
    Inputs inputs = inputsOf({{16}, r, s, 24});
    auto got = graph.run(inputs.all(f32));
    auto wanted = compiled([](const std::vector<Tensor> &xs) { return attended(xs, true); }, inputs.all(f32));
    for (size_t i = 0; i < got.size(); ++i) {
      INFO(r << " rows, " << s << " keys, result " << i);
      CHECK(largestDifference(got[i], wanted[i]) == 0);
    }
  }
}

TEST_CASE("gradients of grouped-query and composed attention") {
  // Keys and values of 2 heads for 6 heads of queries, in the layout of a projection.
  auto grouped = [](const std::vector<Tensor> &xs) {
    auto heads = [](const Tensor &x, int64_t n) { return x.reshape({4, -1, n, 16}).transpose({0, 2, 1, 3}); };
    auto repeated = [&](const Tensor &x) {
      Tensor all = heads(x, 2).reshape({4, 2, 1, -1, 16});
      return broadcast_to(all, {4, 2, 3, all.shape()[3], 16}).reshape({4, 6, -1, 16});
    };
    Tensor y = scaled_dot_product_attention(heads(xs[0], 6), repeated(xs[1]), repeated(xs[2]), std::nullopt, true);
    std::vector<Tensor> results{y};
    for (const Tensor &x : grad(y.transpose({0, 2, 1, 3}).reshape({4, -1, 96}), {xs[0], xs[1], xs[2]}, xs[3]))
      results.push_back(x);
    return results;
  };
  Inputs inputs{randn({4, 60, 96}), randn({4, 60, 32}), randn({4, 60, 32}), randn({4, 60, 96}), std::nullopt};
  check(grouped, inputs, f32, kBound);

  auto composed = [](const std::vector<Tensor> &xs) {
    Tensor scores = matmul(xs[0], xs[1].t()) / 4.0;
    scores = where(iota({70, 70}, i64, 0) >= iota({70, 70}, i64, 1), scores, kNever);
    Tensor y = matmul(softmax(scores, -1), xs[2]);
    std::vector<Tensor> results{y};
    for (const Tensor &x : grad(y, {xs[0], xs[1], xs[2]}, xs[3]))
      results.push_back(x);
    return results;
  };
  check(composed, inputsOf({{4, 4}, 70, 70, 16}), f32, kBound);
}

TEST_CASE("gradients that keep the weights: of a mask, and of gradients") {
  auto ofMask = [](const std::vector<Tensor> &xs) {
    Tensor y = scaled_dot_product_attention(xs[0], xs[1], xs[2], xs[4]);
    return grad(y, {xs[0], xs[1], xs[2], xs[4]}, xs[3]);
  };
  Inputs inputs = inputsOf({{16}, 20, 31, 8});
  inputs.mask = randn({20, 31});
  check(ofMask, inputs, f32, kBound);
  auto twice = [](const std::vector<Tensor> &xs) {
    Tensor y = scaled_dot_product_attention(xs[0], xs[1], xs[2], std::nullopt, true);
    std::vector<Tensor> first = grad(y, {xs[0], xs[1], xs[2]}, xs[3]);
    return grad(sum(first[0] * first[0]) + sum(first[1] * first[2]), {xs[0], xs[1], xs[2], xs[3]});
  };
  check(twice, inputsOf({{16}, 20, 20, 8}), f32, 1e-4);
}
