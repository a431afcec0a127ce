// Ops that process elements in order, and those with data-dependent result sizes.
#include "test/ops/Row.h"

namespace burin::test {

namespace {

using Sizes = std::map<std::string, int64_t>;

const Dim n("n"), m("m");
const std::vector<Sizes> kSizes{
    {{"n", 5}, {"m", 17}}, {{"n", 33}, {"m", 3}}, {{"n", 1}, {"m", 60}}, {{"n", 3}, {"m", 0}}};

Operand operand(const Row &row, DType dtype, Shape shape) { return {TensorSpec{dtype, std::move(shape)}, row.draw}; }

std::vector<Example> cumprod(const Row &row, DType dtype) {
  std::vector<Example> list{
      {{operand(row, dtype, {n, m})}, {{"axis", int64_t(1)}}, kSizes},
      {{operand(row, dtype, {n, m, 2})}, {{"axis", int64_t(0)}, {"exclusive", true}}, kSizes},
      {{operand(row, dtype, {7, 12})}, {{"axis", int64_t(-1)}, {"reverse", true}}},
      {{operand(row, dtype, {3, 130})}, {{"axis", int64_t(1)}, {"exclusive", true}}},
  };
  return list;
}

std::vector<Example> argsort(const Row &row, DType dtype) {
  auto x = [&](Shape shape) { return operand(row, dtype, std::move(shape)); };
  std::vector<Example> list;
  for (bool descending : {false, true}) {
    list.push_back({{x({n, m})}, {{"axis", int64_t(0)}, {"descending", descending}}, kSizes});
    list.push_back({{x({2, 300})}, {{"descending", descending}}});
  }
  if (dtype == f32) {
    list.push_back({{x({0})}, {}});
    list.push_back({{x({2, 70, 3})}, {{"axis", int64_t(1)}}});
    list.push_back({{x({2, 2050})}, {}});
    list.push_back({{x({1, 4100})}, {{"descending", true}}});
  }
  return list;
}

std::vector<Example> suppression(const Row &row, DType dtype) {
  auto boxes = [&](Shape shape) { return operand(row, dtype, std::move(shape)); };
  auto attrs = [](double overlap, double least, int64_t most, bool centers) {
    return Attrs{{"iou_threshold", overlap}, {"score_threshold", least}, {"max_output", most}, {"centers", centers}};
  };
  return {
      {{boxes({n, m, 4}), boxes({n, 2, m})}, attrs(.3, .2, 5, false), kSizes},
      {{boxes({1, 200, 4}), boxes({1, 3, 200})}, attrs(.5, -1, 1000, false)},
      {{boxes({1, 200, 4}), boxes({1, 1, 200})}, attrs(.1, .4, 20, true)},
      {{boxes({2, 9, 4}), boxes({2, 1, 9})}, attrs(0, 0, 0, false)},
  };
}

std::vector<Example> prefix(const Row &row, DType dtype) {
  const std::vector<Sizes> atLeastFour{{{"n", 5}, {"m", 17}}, {{"n", 4}, {"m", 3}}, {{"n", 40}, {"m", 0}}};
  Operand count{TensorSpec{i64, {}}, {0, 4, Specials::None}};
  return {
      {{operand(row, dtype, {n, m}), count}, {{"size", Shape{Dim("p")}}}, atLeastFour},
      {{operand(row, dtype, {4}), count}, {{"size", Shape{Dim("p")}}}},
  };
}

std::vector<Example> nonzero(const Row &row, DType dtype) {
  std::vector<Example> list{
      {{operand(row, dtype, {n, m})}, {{"size", Shape{Dim("p")}}}, kSizes},
      {{operand(row, dtype, {37})}, {{"size", Shape{Dim("p")}}}},
  };
  if (dtype == i32)
    list.push_back({{operand(row, dtype, {2, n, 3})}, {{"size", Shape{Dim("p")}}}, kSizes});
  return list;
}

} // namespace

const std::vector<Row> &orderRows() {
  static const std::vector<Row> rows{
      {"cumprod", kAll, cumprod, {.ulps = 64, .epsilons = 1}, {-1.5, 1.5, Specials::None}},
      {"argsort", kAll, argsort},
      {"non_max_suppression", kFloats, suppression, {}, {0, 1, Specials::None}},
      {"prefix", kStored, prefix},
      {"nonzero", kAll, nonzero, {}, {-1, 1}},
  };
  return rows;
}

} // namespace burin::test
