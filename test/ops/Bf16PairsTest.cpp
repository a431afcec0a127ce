// Products of bf16 by pairs (AVX512-BF16, and the same order of sums without it): against sums in f64, with what is not
// finite, and equal for all targets, static and symbolic sizes.
#include "runtime/format/Target.h"
#include "test/Features.h"
#include "test/ops/Graph.h"
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>

using namespace burin;
using namespace burin::test;
using ir::RefTensor;

namespace {

constexpr const char *kPairs = "x86-64-v4+bf16", *kAvx2 = "x86-64-v3", *kAvx512 = "x86-64-v4";
using Ints = std::vector<int64_t>;

/// bf16 of both signs between 2^-5 and 1.
RefTensor numbers(Ints shape, uint32_t seed) {
  RefTensor t = RefTensor::zeros(bf16, std::move(shape));
  for (double &x : t.reals()) {
    seed = seed * 1664525 + 1013904223;
    x = ir::roundTo(bf16, std::ldexp(double(int32_t(seed)) / 2147483648.0, -int(seed >> 4 & 3)));
  }
  return t;
}

bool isSame(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

void checkSame(const RefTensor &x, const RefTensor &y) {
  REQUIRE(x.shape == y.shape);
  CHECK(std::equal(x.reals().begin(), x.reals().end(), y.reals().begin(), isSame));
}

/// Checks rows · w, rounded to bf16, against sums in f64.
void checkProduct(const RefTensor &got, const RefTensor &x, const RefTensor &w) {
  const int64_t depth = w.shape[0], columns = w.shape[1], rows = x.shape[0];
  REQUIRE(got.size() == rows * columns);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      double sum = 0, all = 0;
      for (int64_t k = 0; k < depth; ++k) {
        double product = x.reals()[size_t(row * depth + k)] * w.reals()[size_t(k * columns + column)];
        sum += product;
        all += std::fabs(product);
      }
      double error = std::fabs(got.reals()[size_t(row * columns + column)] - sum);
      if (error > all * 0x1p-20 + std::fabs(sum) * 0x1p-8)
        FAIL_CHECK("(" << row << ", " << column << "): error " << error << " of " << sum);
    }
}

RefTensor transposed(const RefTensor &x) {
  RefTensor y = RefTensor::zeros(bf16, {x.shape[1], x.shape[0]});
  for (int64_t i = 0; i < x.shape[0]; ++i)
    for (int64_t j = 0; j < x.shape[1]; ++j)
      y.reals()[size_t(j * x.shape[0] + i)] = x.reals()[size_t(i * x.shape[1] + j)];
  return y;
}

struct Sizes {
  int64_t rows, depth, columns;
};

/// The product of two inputs, both as they are or read through a transpose.
Graph productOf(const Sizes &n, bool turnsLeft, bool turnsRight) {
  Graph g;
  auto side = [&](int64_t rows, int64_t columns, bool isTurned) {
    if (!isTurned)
      return g.input({bf16, {rows, columns}});
    return g.apply("transpose", {g.input({bf16, {columns, rows}})}, {{"perm", Ints{1, 0}}})[0];
  };
  Graph::Value left = side(n.rows, n.depth, turnsLeft), right = side(n.depth, n.columns, turnsRight);
  g.output(g.apply("matmul", {left, right})[0]);
  return g;
}

void checkTarget(const std::string &target) {
  auto n = GENERATE(Sizes{1, 64, 32}, Sizes{128, 384, 320}, Sizes{97, 402, 333}, Sizes{5, 2, 1}, Sizes{7, 1, 40},
                    Sizes{13, 1001, 33}, Sizes{24, 63, 40}, Sizes{3, 0, 5});
  RefTensor x = numbers({n.rows, n.depth}, 1), w = numbers({n.depth, n.columns}, 2);
  INFO(n.rows << "x" << n.depth << "x" << n.columns << " for " << target);
  checkProduct(productOf(n, false, false).compile(target)->run({x, w})[0], x, w);
  checkProduct(productOf(n, true, false).compile(target)->run({transposed(x), w})[0], x, w);
  checkProduct(productOf(n, false, true).compile(target)->run({x, transposed(w)})[0], x, w);
  if (n.depth == 0)
    return;
  Graph g; // weights are packed at compile time
  g.output(g.apply("matmul", {g.input({bf16, {n.rows, n.depth}}), g.constant(w)})[0]);
  checkProduct(g.compile(target)->run({x})[0], x, w);
}

/// A batch of products with an epilogue, and convolutions with odd and even channels, groups, padding and strides.
Graph mixed(const Dim &images, const Dim &depth) {
  Graph g;
  Graph::Value a = g.input({bf16, {3, images, depth}}), b = g.input({bf16, {3, depth, 37}});
  Graph::Value product = g.apply("matmul", {a, b})[0];
  g.output(g.apply("relu", {g.apply("neg", {product})[0]})[0]);
  for (int64_t channels : {3, 8}) {
    Graph::Value x = g.input({bf16, {images, channels, 13, 11}}), w = g.constant(numbers({40, channels, 3, 3}, 5));
    g.output(g.apply("conv", {x, w, Graph::none}, {{"strides", Ints{2, 1}}, {"padding", Ints{1, 1, 1, 1}}})[0]);
  }
  Graph::Value x = g.input({bf16, {images, 10, 9, 9}}), w = g.constant(numbers({32, 5, 3, 3}, 6));
  g.output(g.apply("conv", {x, w, Graph::none}, {{"groups", int64_t(2)}})[0]);
  return g;
}

Tensors mixedInputs(int64_t images, int64_t depth) {
  return {numbers({3, images, depth}, 1), numbers({3, depth, 37}, 2), numbers({images, 3, 13, 11}, 3),
          numbers({images, 8, 13, 11}, 4), numbers({images, 10, 9, 9}, 7)};
}

} // namespace

TEST_CASE("code for AVX512-BF16 is chosen where the processor has it, and nowhere else") {
  if (std::getenv("BURIN_TEST_WITHOUT")) // hides features from tests alone
    return;
  const bool has = hasFeature("avx512_bf16");
  CHECK((rt::targetRank(kPairs) >= 0) == has);
  if (has) {
    CHECK(rt::targetRank(kPairs) > rt::targetRank(kAvx512));
    CHECK(rt::hostTarget() == kPairs);
  } else {
    CHECK(rt::hostTarget() != kPairs);
    CHECK_THROWS(productOf({2, 2, 2}, false, false).compile(kPairs));
  }
}

TEST_CASE("products of pairs of bf16 are exact but for f32 sums: AVX2") { checkTarget(kAvx2); }
TEST_CASE("products of pairs of bf16 are exact but for f32 sums: AVX-512") {
  REQUIRE_FEATURE("avx512f");
  checkTarget(kAvx512);
}
TEST_CASE("products of pairs of bf16 are exact but for f32 sums: AVX512-BF16") {
  REQUIRE_FEATURE("avx512_bf16");
  checkTarget(kPairs);
}

TEST_CASE("products of pairs have the same bits for static and symbolic sizes") {
  auto [images, depth] = GENERATE(std::pair<int64_t, int64_t>{5, 34}, std::pair<int64_t, int64_t>{14, 51});
  const std::string target = GENERATE(std::string(kAvx2), std::string("native"));
  Tensors inputs = mixedInputs(images, depth);
  Tensors known = mixed(images, depth).compile(target)->run(inputs);
  Tensors any = mixed(Dim("n"), Dim("k")).compile(target)->run(inputs);
  for (size_t i = 0; i < known.size(); ++i)
    checkSame(known[i], any[i]);
}

TEST_CASE("products of pairs have the bits of code without the instruction") {
  REQUIRE_FEATURE("avx512_bf16");
  Tensors inputs = mixedInputs(6, 51);
  Graph g = mixed(6, 51);
  Tensors expected = g.compile(kAvx2)->run(inputs), wide = g.compile(kAvx512)->run(inputs),
          got = g.compile(kPairs)->run(inputs);
  for (size_t i = 0; i < got.size(); ++i) {
    checkSame(expected[i], wide[i]);
    checkSame(expected[i], got[i]);
  }
}

TEST_CASE("products of pairs: infinities and NaN stay in their rows and columns") {
  const std::string target = GENERATE(std::string(kAvx2), std::string("native"));
  constexpr int64_t rows = 30, depth = 35, columns = 40;
  RefTensor x = numbers({rows, depth}, 1), w = numbers({depth, columns}, 2);
  x.reals()[3 * depth + 4] = INFINITY;
  x.reals()[5 * depth + 34] = NAN; // the last element of an odd row
  x.reals()[7 * depth + 9] = ir::roundTo(bf16, 3e38);
  x.reals()[7 * depth + 10] = ir::roundTo(bf16, 3e38);
  w.reals()[9 * columns] = w.reals()[10 * columns] = 1.5;
  w.reals()[34 * columns + 11] = -INFINITY;
  RefTensor got = productOf({rows, depth, columns}, false, false).compile(target)->run({x, w})[0];
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += x.reals()[size_t(row * depth + k)] * w.reals()[size_t(k * columns + column)];
      const double y = got.reals()[size_t(row * columns + column)];
      INFO(row << ", " << column << ": " << y << " for " << sum);
      CHECK(std::isnan(y) == std::isnan(sum));
      if (std::isinf(sum) || std::fabs(sum) > 3.5e38)
        CHECK((std::isinf(y) && std::signbit(y) == std::signbit(sum)));
    }
}

TEST_CASE("subnormal operands and results count as 0 with AVX512-BF16, and count without") {
  REQUIRE_FEATURE("avx512_bf16");
  RefTensor x = RefTensor::zeros(bf16, {2, 2}), w = RefTensor::zeros(bf16, {2, 1});
  x.reals() = {0x1p-130, 1, 0x1p-70, 0};
  w.reals() = {0x1p60, 0x1p-72};
  Graph g = productOf({2, 2, 1}, false, false);
  RefTensor plain = g.compile(kAvx512)->run({x, w})[0], pairs = g.compile(kPairs)->run({x, w})[0];
  CHECK(plain.reals()[0] == 0x1p-70 + 0x1p-72);
  CHECK(pairs.reals()[0] == 0x1p-72);
  CHECK(plain.reals()[1] == 0x1p-10);
  CHECK(pairs.reals()[1] == 0x1p-10);
}
