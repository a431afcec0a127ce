// A row of a product has the same bits for any number of rows, whether that number is fixed or symbolic.
#include "test/ops/Graph.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using ir::RefTensor;

namespace {

using Sizes = std::vector<int64_t>;

RefTensor numbers(Sizes shape, int step) {
  RefTensor t = RefTensor::zeros(DType::f32, std::move(shape));
  for (size_t i = 0; i < t.reals().size(); ++i)
    t.reals()[i] = double(int(i * step % 2003) - 1001) / 700;
  return t;
}

/// Returns the first `rows` of t along `axis`.
RefTensor head(const RefTensor &t, size_t axis, int64_t rows) {
  Sizes shape = t.shape;
  shape[axis] = rows;
  RefTensor result = RefTensor::zeros(t.dtype, shape);
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d)
    inner *= shape[d];
  for (int64_t i = 0; i < result.size(); ++i)
    result.reals()[i] = t.reals()[i / (rows * inner) * t.shape[axis] * inner + i % (rows * inner)];
  return result;
}

/// Compiles relu(op(x, w) - y), written in place of -y.
std::unique_ptr<Compiled> compiled(const std::string &op, const Attrs &attrs, Shape x, const RefTensor &weight, Shape y,
                                   const std::string &target) {
  Graph g;
  Graph::Value product = g.apply(op, {g.input({f32, std::move(x)}), g.constant(weight)}, attrs)[0];
  Graph::Value other = g.apply("neg", {g.input({f32, std::move(y)})})[0];
  g.output(g.apply("relu", {g.apply("add", {product, other})[0]})[0]);
  return g.compile(target);
}

std::vector<int64_t> counts() {
  std::vector<int64_t> list{49, 64, 191, 192, 193, 196, 204, 217, 385};
  for (int64_t rows = 0; rows <= 40; ++rows)
    list.push_back(rows);
  return list;
}

} // namespace

TEST_CASE("Rows of a matrix product have the same bits in any number") {
  const std::string target = GENERATE(from_range(cpuTargets()));
  // Rows of 1024 elements are 4 KB apart.
  int64_t columns = GENERATE(64, 70, 150), depth = GENERATE(37, 1024), most = 400;
  RefTensor x = numbers({most, depth}, 7919), w = numbers({depth, columns}, 104729), y = numbers({most, columns}, 31);
  auto known = compiled("matmul", {}, {most, depth}, w, {most, columns}, target);
  auto anyNumber = compiled("matmul", {}, {Dim("m"), depth}, w, {Dim("m"), columns}, target);
  RefTensor expected = known->run({x, y})[0];
  for (int64_t rows : counts()) {
    INFO(target << ", " << columns << " columns, depth " << depth << ", " << rows << " rows");
    CHECK(anyNumber->run({head(x, 0, rows), head(y, 0, rows)})[0].reals() == head(expected, 0, rows).reals());
  }
}

TEST_CASE("Positions of a convolution have the same bits in any number") {
  const std::string target = GENERATE(from_range(cpuTargets()));
  int64_t padding = GENERATE(0, 1), most = 60, outputs = 40, channels = 5;
  Attrs attrs{{"layout", std::string("nhwc")}, {"padding", std::vector<int64_t>{padding, 0}}};
  RefTensor x = numbers({2, 6, most + 2, channels}, 7919), w = numbers({3, 3, channels, outputs}, 104729),
            y = numbers({2, 4 + 2 * padding, most, outputs}, 31);
  auto build = [&](const Dim &width) {
    return compiled("conv", attrs, {2, 6, width + 2, channels}, w, {2, 4 + 2 * padding, width, outputs}, target);
  };
  auto known = build(most), anyNumber = build(Dim("w"));
  RefTensor expected = known->run({x, y})[0];
  for (int64_t width = 1; width <= 40; ++width) {
    INFO(target << ", padding " << padding << ", width " << width);
    RefTensor got = anyNumber->run({head(x, 2, width + 2), head(y, 2, width)})[0];
    CHECK(got.reals() == head(expected, 2, width).reals());
  }
}
