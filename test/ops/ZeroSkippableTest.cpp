// Products of one row with a large matrix skip rows of the matrix that would be multiplied by zero; the result is the
// same.
#include "test/ops/Graph.h"
#include <catch2/catch.hpp>
#include <cmath>

using namespace burin;
using namespace burin::test;
using ir::RefTensor;

namespace {

constexpr int64_t kDepth = 1031, kColumns = 261; // more than 1 MB, the threshold of skipping; no multiples of a vector

RefTensor weights(double special) {
  RefTensor w = RefTensor::zeros(DType::f32, {kDepth, kColumns});
  for (size_t i = 0; i < w.reals().size(); ++i)
    w.reals()[i] = double(float(int(i * 7919 % 2003) - 1001) / 1000);
  w.reals()[5 * kColumns + 7] = special;
  return w;
}

/// Compiles -(x · w).
std::unique_ptr<Compiled> compiled(const Dim &rows, const RefTensor &w, const std::string &target) {
  Graph g;
  Graph::Value product = g.apply("matmul", {g.input({f32, {rows, kDepth}}), g.constant(w)})[0];
  g.output(g.apply("neg", {product})[0]);
  return g.compile(target);
}

/// Returns the first row of the result for `rows` copies of x.
std::vector<double> firstRow(Compiled &product, const std::vector<double> &x, int64_t rows) {
  RefTensor in = RefTensor::zeros(DType::f32, {rows, kDepth});
  for (size_t i = 0; i < in.reals().size(); ++i)
    in.reals()[i] = x[i % kDepth];
  std::vector<double> y = product.run({in})[0].reals();
  return {y.begin(), y.begin() + kColumns};
}

bool isSame(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

/// Returns a row in which one element per `period`, from `first` on, is not zero.
std::vector<double> sparseRow(int64_t first, int64_t period) {
  std::vector<double> x(kDepth);
  for (int64_t i = 0; i < kDepth; ++i)
    x[i] = i >= first && (i - first) % period == 0 ? double(float(i % 101 + 1) / 100) : i % 3 ? 0. : -0.;
  return x;
}

} // namespace

TEST_CASE("A row with zeros gives what it gives beside another one, where nothing is left out") {
  const std::string target = GENERATE(from_range(cpuTargets()));
  RefTensor w = weights(GENERATE(1., double(INFINITY), double(NAN)));
  auto one = compiled(1, w, target), two = compiled(2, w, target), any = compiled(Dim("n"), w, target);
  std::vector<std::vector<double>> inputs{sparseRow(0, 1),          sparseRow(0, 2),     sparseRow(1, 3),
                                          sparseRow(2, 7),          sparseRow(0, 40),    sparseRow(30, 31),
                                          sparseRow(kDepth - 1, 1), sparseRow(kDepth, 1)};
  for (double special : {double(NAN), double(INFINITY), -double(INFINITY), double(1e-40f)}) {
    inputs.push_back(sparseRow(0, 2));
    inputs.back()[8] = special;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    INFO(target << ", input " << i << ", weight " << w[5 * kColumns + 7]);
    std::vector<double> expected = firstRow(*two, inputs[i], 2);
    for (int64_t column = 0; column < kColumns; ++column) {
      double sum = 0;
      for (int64_t k = 0; k < kDepth; ++k)
        sum -= inputs[i][k] * w[size_t(k * kColumns + column)];
      bool isClose = std::isfinite(sum) ? std::fabs(expected[column] - sum) < 1e-3 : isSame(expected[column], sum);
      if (!isClose)
        FAIL_CHECK("column " << column << ": " << expected[column] << " for " << sum);
    }
    for (auto [product, rows] : {std::pair(one.get(), 1), std::pair(any.get(), 1), std::pair(any.get(), 3)})
      CHECK(std::equal(expected.begin(), expected.end(), firstRow(*product, inputs[i], rows).begin(), isSame));
  }
}
