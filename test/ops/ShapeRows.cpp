// Ops that move elements. Every element type has one shape; f32 and bool (one byte) have all.
#include "test/ops/Row.h"

namespace burin::test {

namespace {

using Ints = std::vector<int64_t>;
using Sizes = std::map<std::string, int64_t>;

const Dim n("n"), m("m");
const std::vector<Sizes> kMatrices{
    {{"n", 3}, {"m", 17}}, {{"n", 33}, {"m", 50}}, {{"n", 1}, {"m", 5}}, {{"n", 0}, {"m", 4}}, {{"n", 64}, {"m", 1}}};

/// Collects examples of one op with one operand.
struct Examples {
  const Row &row;
  DType dtype;
  std::vector<Example> list = {};

  void add(Shape shape, Attrs attrs, std::vector<Sizes> sizes = {}) {
    list.push_back({{{TensorSpec{dtype, std::move(shape)}, row.draw}}, std::move(attrs), std::move(sizes)});
  }
  void addMany(std::vector<Shape> shapes, Attrs attrs, std::vector<Sizes> sizes = {}) {
    Example example{{}, std::move(attrs), std::move(sizes)};
    for (Shape &shape : shapes)
      example.operands.push_back({TensorSpec{dtype, std::move(shape)}, row.draw});
    list.push_back(std::move(example));
  }
  /// The remaining examples are only for f32 and bool.
  bool isDone() const { return dtype != f32 && dtype != boolean; }
};

std::vector<Example> reshape(const Row &row, DType dtype) {
  Examples e{row, dtype};
  e.add({n, 6}, {{"shape", Shape{n, 2, 3}}}, {{{"n", 5}}, {{"n", 0}}, {{"n", 40}}});
  if (e.isDone())
    return e.list;
  e.add({4, 6}, {{"shape", Shape{3, -1}}});
  e.add({n, m}, {{"shape", Shape{n * m}}}, kMatrices);
  e.add({1}, {{"shape", Shape{}}});
  e.add({0, 3}, {{"shape", Shape{5, 0}}});
  return e.list;
}

std::vector<Example> squeeze(const Row &row, DType dtype) {
  Examples e{row, dtype};
  e.add({1, n, 1, 3}, {}, {{{"n", 5}}, {{"n", 0}}, {{"n", 1}}});
  if (e.isDone())
    return e.list;
  e.add({1, 1, 7}, {{"axes", Ints{-2}}});
  e.add({1, 1}, {});
  return e.list;
}

std::vector<Example> unsqueeze(const Row &row, DType dtype) {
  Examples e{row, dtype};
  e.add({n, 3}, {{"axes", Ints{0, -1}}}, {{{"n", 5}}, {{"n", 0}}});
  if (e.isDone())
    return e.list;
  e.add(Shape{}, {{"axes", Ints{0}}});
  e.add({7}, {{"axes", Ints{1}}});
  return e.list;
}

std::vector<Example> transpose(const Row &row, DType dtype) {
  Examples e{row, dtype};
  e.add({n, m}, {}, kMatrices);
  e.add({3, 5, 7}, {{"perm", Ints{2, 0, 1}}});
  if (e.isDone())
    return e.list;
  e.add({2, n, 3, m}, {{"perm", Ints{0, 2, 1, 3}}}, kMatrices);
  e.add({2, 3, 4, 5, 6}, {{"perm", Ints{4, 2, 0, 3, 1}}});
  e.add({50, 129}, {{"perm", Ints{1, 0}}});
  e.add({7}, {{"perm", Ints{0}}});
  e.add({1, 9}, {{"perm", Ints{1, 0}}});
  // Blocks of lanes that are transposed together, whole and partial.
  e.add({n, 3, m}, {{"perm", Ints{2, 1, 0}}}, {{{"n", 33}, {"m", 70}}, {{"n", 16}, {"m", 64}}, {{"n", 1}, {"m", 100}}});
  e.add({n, 8, m, 5}, {{"perm", Ints{0, 2, 3, 1}}}, {{{"n", 2}, {"m", 7}}, {{"n", 1}, {"m", 1}}, {{"n", 3}, {"m", 0}}});
  e.add({128, 64}, {{"perm", Ints{1, 0}}});
  e.add({2, 3, 20, 11}, {{"perm", Ints{0, 3, 1, 2}}});
  e.add({9, 2, 40}, {{"perm", Ints{1, 2, 0}}});
  return e.list;
}

std::vector<Example> broadcastTo(const Row &row, DType dtype) {
  Examples e{row, dtype};
  e.add({n, 1}, {{"shape", Shape{3, n, 17}}}, {{{"n", 5}}, {{"n", 0}}, {{"n", 33}}});
  if (e.isDone())
    return e.list;
  e.add({1, m}, {{"shape", Shape{7, m}}}, kMatrices);
  e.add(Shape{}, {{"shape", Shape{3, 5}}});
  e.add({2, 1, 3}, {{"shape", Shape{2, 4, 3}}});
  e.add({3}, {{"shape", Shape{0, 3}}});
  return e.list;
}

std::vector<Example> slice(const Row &row, DType dtype) {
  Examples e{row, dtype};
  e.add({n, m}, {{"starts", Shape{0, 2}}, {"stops", Shape{INT64_MAX, -1}}, {"steps", Ints{2, 1}}}, kMatrices);
  e.add({20, 33}, {{"starts", Shape{3, 1}}, {"stops", Shape{17, 33}}, {"steps", Ints{1, 3}}});
  if (e.isDone())
    return e.list;
  e.add({n, 5}, {{"starts", Shape{-3, 0}}, {"stops", Shape{INT64_MAX, 5}}, {"steps", Ints{1, 1}}},
        {{{"n", 7}}, {{"n", 2}}});
  e.add({9}, {{"starts", Shape{5}}, {"stops", Shape{5}}, {"steps", Ints{1}}});
  e.add({2, 9, 4}, {{"starts", Shape{0, 1}}, {"stops", Shape{1, 8}}, {"steps", Ints{1, 5}}});
  return e.list;
}

std::vector<Example> flip(const Row &row, DType dtype) {
  Examples e{row, dtype};
  e.add({n, m}, {{"axes", Ints{1}}}, kMatrices);
  if (e.isDone())
    return e.list;
  e.add({n, m}, {{"axes", Ints{0, 1}}}, kMatrices);
  e.add({3, 33, 2}, {{"axes", Ints{0}}});
  e.add({5}, {{"axes", Ints{}}});
  return e.list;
}

std::vector<Example> concat(const Row &row, DType dtype) {
  Examples e{row, dtype};
  e.addMany({{n, m}, {n, 3}, {n, m}}, {{"axis", int64_t(1)}}, kMatrices);
  e.addMany({{n, 7}, {m, 7}}, {{"axis", int64_t(0)}}, kMatrices);
  if (e.isDone())
    return e.list;
  e.addMany({Shape{5}}, {});
  e.addMany({{2, 3, 4}, {2, 0, 4}, {2, 9, 4}}, {{"axis", int64_t(-2)}});
  e.addMany({Shape{33}, Shape{1}, Shape{17}}, {});
  return e.list;
}

std::vector<Example> stack(const Row &row, DType dtype) {
  Examples e{row, dtype};
  e.addMany({{n, m}, {n, m}}, {{"axis", int64_t(0)}}, kMatrices);
  if (e.isDone())
    return e.list;
  e.addMany({{n, m}, {n, m}, {n, m}}, {{"axis", int64_t(-1)}}, kMatrices);
  e.addMany({Shape{}, Shape{}}, {});
  e.addMany({{3, 4}, {3, 4}}, {{"axis", int64_t(1)}});
  return e.list;
}

std::vector<Example> split(const Row &row, DType dtype) {
  Examples e{row, dtype};
  e.add({n, 20}, {{"sizes", Ints{7, 0, 13}}, {"axis", int64_t(1)}}, {{{"n", 3}}, {{"n", 0}}, {{"n", 33}}});
  if (e.isDone())
    return e.list;
  e.add({5, m}, {{"sizes", Ints{2, 3}}}, kMatrices);
  e.add({4, 6, 3}, {{"sizes", Ints{1, -1}}, {"axis", int64_t(-2)}});
  return e.list;
}

std::vector<Example> tile(const Row &row, DType dtype) {
  Examples e{row, dtype};
  e.add({n, m}, {{"repeats", Ints{2, 3}}}, kMatrices);
  if (e.isDone())
    return e.list;
  e.add({4, 5}, {{"repeats", Ints{1, 0}}});
  e.add({3, 1, 7}, {{"repeats", Ints{1, 4, 2}}});
  e.add(Shape{}, {});
  return e.list;
}

std::vector<Example> pad(const Row &row, DType dtype) {
  Examples e{row, dtype};
  e.add({n, m}, {{"low", Ints{1, 2}}, {"high", Ints{0, 3}}, {"value", 1.0}}, kMatrices);
  e.add({5, 17}, {{"low", Ints{2, 3}}, {"high", Ints{1, 4}}, {"mode", std::string("reflect")}});
  if (e.isDone())
    return e.list;
  e.add({n, m}, {{"low", Ints{1, 0}}, {"high", Ints{2, 33}}, {"mode", std::string("edge")}},
        {{{"n", 3}, {"m", 17}}, {{"n", 1}, {"m", 1}}, {{"n", 40}, {"m", 2}}});
  e.add({n, 30}, {{"low", Ints{0, 29}}, {"high", Ints{0, 29}}, {"mode", std::string("reflect")}},
        {{{"n", 3}}, {{"n", 0}}});
  e.add({20, 30}, {{"low", Ints{-2, 1}}, {"high", Ints{3, -5}}, {"value", -2.5}});
  e.add({n, 9}, {{"low", Ints{1, 2}}, {"high", Ints{2, 0}}, {"interior", Ints{0, 2}}},
        {{{"n", 3}}, {{"n", 0}}, {{"n", 20}}});
  e.add({4, m}, {{"low", Ints{0, -1}}, {"high", Ints{0, 1}}, {"interior", Ints{1, 1}}, {"value", 3.0}},
        {{{"m", 3}}, {{"m", 1}}, {{"m", 50}}});
  e.add({6}, {{"low", Ints{0}}, {"high", Ints{0}}});
  e.add({2, 3, 4}, {{"low", Ints{0, 1, 0}}, {"high", Ints{0, 0, 0}}, {"value", double(INFINITY)}});
  e.add({0, 3}, {{"low", Ints{2, 0}}, {"high", Ints{1, 1}}, {"value", 7.0}});
  return e.list;
}

std::vector<Example> triangle(const Row &row, DType dtype) {
  Examples e{row, dtype};
  e.add({n, m}, {}, kMatrices);
  if (e.isDone())
    return e.list;
  e.add({2, n, m}, {{"diagonal", int64_t(2)}}, kMatrices);
  e.add({40, 33}, {{"diagonal", int64_t(-5)}});
  e.add({5, 7}, {{"diagonal", int64_t(100)}});
  e.add({5, 7}, {{"diagonal", int64_t(-100)}});
  return e.list;
}

std::vector<Example> identity(const Row &row, DType dtype) {
  Examples e{row, dtype};
  e.add({n, m}, {}, kMatrices);
  return e.list;
}

} // namespace

const std::vector<Row> &shapeRows() {
  static const std::vector<Row> rows{
      {"reshape", kStored, reshape},
      {"squeeze", kStored, squeeze},
      {"unsqueeze", kStored, unsqueeze},
      {"transpose", kStored, transpose},
      {"broadcast_to", kStored, broadcastTo},
      {"slice", kStored, slice},
      {"flip", kStored, flip},
      {"concat", kStored, concat},
      {"stack", kStored, stack},
      {"split", kStored, split},
      {"tile", kStored, tile},
      {"pad", kStored, pad},
      {"tril", kStored, triangle},
      {"triu", kStored, triangle},
      {"dropout", kAll, identity},
  };
  return rows;
}

} // namespace burin::test
