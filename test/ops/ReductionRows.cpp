// Reductions, argmax and argmin, cumsum.
#include "test/ops/Row.h"

namespace burin::test {

namespace {

using Ints = std::vector<int64_t>;
using Sizes = std::map<std::string, int64_t>;

const std::vector<Sizes> kMatrices{{{"n", 5}, {"m", 129}}, {{"n", 3}, {"m", 7}}, {{"n", 33}, {"m", 1}},
                                   {{"n", 1}, {"m", 300}}, {{"n", 0}, {"m", 4}}, {{"n", 4}, {"m", 0}},
                                   {{"n", 50}, {"m", 70}}};

Example over(const Row &row, DType dtype, Shape shape, Attrs attrs, std::vector<Sizes> sizes = {}) {
  return {{{TensorSpec{dtype, std::move(shape)}, row.draw}}, std::move(attrs), std::move(sizes)};
}

std::vector<Example> overAxes(const Row &row, DType dtype) {
  Dim n("n"), m("m");
  std::vector<Example> examples;
  for (const Attrs &extra : row.attrs) {
    auto add = [&](Shape shape, Ints axes, bool keepdims = false, std::vector<Sizes> sizes = {}) {
      Attrs attrs = extra;
      attrs["axes"] = std::move(axes);
      attrs["keepdims"] = keepdims;
      examples.push_back(over(row, dtype, std::move(shape), std::move(attrs), std::move(sizes)));
    };
    add({n, m}, {1}, false, kMatrices);
    add({n, m}, {0}, true, kMatrices);
    add({3, 50}, {-1});
    if (dtype != f32 && dtype != i32)
      continue;
    add({n, m}, {}, false, kMatrices);
    add({2, n, 3, m}, {1, 3}, true, {{{"n", 4}, {"m", 19}}, {{"n", 1}, {"m", 2}}});
    add({50, 129}, {0});
    add({3, 5, 7}, {0, 2});
    add({2, 3, 5, 4, 3}, {1, 2, 4}, true);
    add({4, 1, 6}, {1});
    add({1, 1}, {});
    add({1000}, {});
    add({}, {});
    add({2, 0, 3}, {1});
    add({0, 3}, {1});
  }
  return examples;
}

std::vector<Example> alongAxis(const Row &row, DType dtype) {
  Dim n("n"), m("m");
  std::vector<Example> examples;
  std::vector<Sizes> filled; // an empty axis has no largest element, which cannot be refused if the size is symbolic
  for (const Sizes &s : kMatrices)
    if (s.at("n") && s.at("m"))
      filled.push_back(s);
  for (const Attrs &extra : row.attrs) {
    auto add = [&](Shape shape, int64_t axis, std::vector<Sizes> sizes = {}) {
      Attrs attrs = extra;
      attrs["axis"] = axis;
      examples.push_back(over(row, dtype, std::move(shape), std::move(attrs), std::move(sizes)));
    };
    add({n, m}, 1, filled);
    add({n, m}, 0, filled);
    add({33}, 0);
    if (dtype != f32 && dtype != i32)
      continue;
    add({3, 70, 5}, 1);
    add({2, 3, 1, 5}, 2);
    add({0, 3}, 1);
    add({2, 2100}, 1);
  }
  return examples;
}

} // namespace

const std::vector<Row> &reductionRows() {
  static const std::vector<Row> rows{
      {"reduce_sum", kAll, overAxes, {.sumEpsilons = 16, .zeroSigns = false}, kModest},
      {"reduce_prod", kAll, overAxes, {.ulps = 200, .zeroSigns = false}, {0.5, 1.6, Specials::None}},
      {"reduce_max", kAll, overAxes, {.zeroSigns = false}},
      {"reduce_min", kAll, overAxes, {.zeroSigns = false}},
      {"reduce_mean", kFloats, overAxes, {.sumEpsilons = 16, .zeroSigns = false}, kModest},
      {"reduce_var",
       kFloats,
       overAxes,
       {.ulps = 2, .epsilons = 64, .zeroSigns = false},
       {-2, 3, Specials::None},
       {{}, {{"correction", int64_t(0)}}}},
      {"reduce_any", kAll, overAxes, {}, {0, 0.6}},
      {"reduce_all", kAll, overAxes, {}, {0.4, 3}},
      {"logsumexp", kFloats, overAxes, {.ulps = 2, .epsilons = 8, .zeroSigns = false}},
      {"argmax", kAll, alongAxis, {}, {-4, 4}, {{}, {{"keepdims", true}}}},
      {"argmin", kAll, alongAxis},
      {"cumsum",
       kAll,
       alongAxis,
       {.sumEpsilons = 16, .zeroSigns = false},
       kModest,
       {{}, {{"exclusive", true}}, {{"reverse", true}}, {{"exclusive", true}, {"reverse", true}}}},
  };
  return rows;
}

} // namespace burin::test
