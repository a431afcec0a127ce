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

namespace {

/// Rows of images with zeros before and behind them.
RefTensor withBorders(const RefTensor &x, int64_t before, int64_t behind) {
  Sizes shape = x.shape;
  shape[2] += before + behind;
  RefTensor result = RefTensor::zeros(x.dtype, shape);
  const int64_t row = x.shape[2] * x.shape[3], padded = shape[2] * shape[3];
  for (int64_t i = 0; i < x.size(); ++i)
    result.reals()[i / row * padded + before * x.shape[3] + i % row] = x.reals()[i];
  return result;
}

} // namespace

TEST_CASE("Windows over padded rows of any size have the bits of windows over zeros") {
  struct Case {
    int64_t kernel, stride, dilation, before, behind, groups;
  };
  const std::string target = GENERATE(from_range(cpuTargets()));
  const auto c =
      GENERATE(Case{3, 1, 1, 1, 1, 1}, Case{3, 2, 1, 1, 1, 1}, Case{3, 2, 1, 0, 1, 1}, Case{5, 1, 1, 2, 1, 1},
               Case{3, 1, 2, 2, 2, 1}, Case{7, 2, 1, 3, 4, 1}, Case{3, 1, 1, 1, 1, 2});
  const int64_t channels = 20 * c.groups, outputs = 40, reach = (c.kernel - 1) * c.dilation, most = 64;
  auto attrs = [&](int64_t before, int64_t behind) {
    return Attrs{{"layout", std::string("nhwc")},
                 {"strides", Sizes{1, c.stride}},
                 {"dilations", Sizes{1, c.dilation}},
                 {"groups", c.groups},
                 {"padding", Sizes{1, before, 1, behind}}};
  };
  RefTensor x = numbers({3, 3, most, channels}, 7919), w = numbers({3, c.kernel, 20, outputs}, 104729);
  // Sizes of x whose windows are as many as `width`, which a residual connection shares.
  const Dim width("w");
  auto build = [&](int64_t before, int64_t behind) {
    const Dim size = (width - 1) * c.stride + 1 + reach - before - behind;
    return compiled("conv", attrs(before, behind), {3, 3, size, channels}, w, {3, 3, width, outputs}, target);
  };
  auto padded = build(c.before, c.behind), plain = build(0, 0);
  for (int64_t windows = 1; windows <= 29; ++windows) {
    const int64_t size = (windows - 1) * c.stride + 1 + reach - c.before - c.behind;
    if (size < 1 || size > most)
      continue;
    INFO(target << ", kernel " << c.kernel << ", stride " << c.stride << ", " << windows << " windows");
    const RefTensor row = head(x, 2, size), y = numbers({3, 3, windows, outputs}, 31);
    CHECK(padded->run({row, y})[0].reals() == plain->run({withBorders(row, c.before, c.behind), y})[0].reals());
  }
}
