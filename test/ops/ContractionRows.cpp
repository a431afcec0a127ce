// Matrix products and convolutions. Errors are measured relative to the sums of the absolute products.
#include "test/ops/Row.h"

namespace burin::test {

namespace {

using Ints = std::vector<int64_t>;
using Sizes = std::map<std::string, int64_t>;

const Dim n("n"), m("m"), k("k"), b("b");

Operand operand(DType dtype, Shape shape, Draw draw = kModest) { return {TensorSpec{dtype, std::move(shape)}, draw}; }

std::vector<Example> matmul(const Row &, DType dtype) {
  std::vector<Example> list;
  auto add = [&](Shape lhs, Shape rhs, std::vector<Sizes> sizes = {}) {
    list.push_back({{operand(dtype, std::move(lhs)), operand(dtype, std::move(rhs))}, {}, std::move(sizes)});
  };
  const std::vector<Sizes> sizes{{{"b", 2}, {"m", 7}, {"k", 33}, {"n", 17}},  {{"b", 1}, {"m", 1}, {"k", 1}, {"n", 1}},
                                 {{"b", 3}, {"m", 50}, {"k", 3}, {"n", 129}}, {{"b", 0}, {"m", 4}, {"k", 5}, {"n", 6}},
                                 {{"b", 1}, {"m", 13}, {"k", 0}, {"n", 40}},  {{"b", 2}, {"m", 5}, {"k", 64}, {"n", 0}},
                                 {{"b", 1}, {"m", 193}, {"k", 8}, {"n", 32}}};
  add({m, k}, {k, n}, sizes);
  add({13, 17}, {17, 33});
  if (dtype == f16 || dtype == bf16) { // for tensor cores: multiples of 16 bytes, several slices, tiles of all sizes
    add({m, 40}, {40, n}, sizes);
    add({70, 104}, {104, 72});
    add({16, 72}, {72, 200});
    add({b, m, 64}, {b, 64, 136}, sizes);
    add({3, 200}, {200, 70});
    add({40, 2048}, {2048, 40}); // split along the depth
    // For warpgroups: several tiles, and more slices than are in memory at once.
    add({m, 328}, {328, n}, {{{"m", 130}, {"n", 270}}, {{"m", 5}, {"n", 72}}, {{"m", 64}, {"n", 256}}});
  }
  if (isFloat8(dtype)) { // for tensor cores: multiples of 16 bytes, several slices, tiles of all sizes
    add({70, 208}, {208, 72});
    add({16, 144}, {144, 200});
    add({b, m, 64}, {b, 64, 136}, sizes);
    add({3, 200}, {200, 70});
    add({40, 2048}, {2048, 40}); // split along the depth
    list.push_back({{operand(f8e4m3fn, {9, k}), operand(f8e5m2, {k, 70})}, {}, {{{"k", 40}}, {{"k", 17}}}});
    list.push_back({{operand(f8e5m2, {9, 64}), operand(f8e4m3fn, {64, 70})}});
  }
  // For warpgroups: several tiles, and more slices than are in memory at once.
  if (byteWidth(dtype) == 1)
    add({m, 656}, {656, n}, {{{"m", 130}, {"n", 270}}, {{"m", 5}, {"n", 72}}, {{"m", 64}, {"n", 256}}});
  if (isFloat8(dtype))
    list.push_back({{operand(dtype, {m, 144}), operand(dtype == f8e5m2 ? f8e4m3fn : f8e5m2, {144, n})},
                    {},
                    {{{"m", 140}, {"n", 130}}}});
  if (dtype != f32 && dtype != i8)
    return list;
  add({b, m, k}, {b, k, n}, sizes);
  add({b, m, 40}, {b, 40, 50}, sizes);
  add({m, 64}, {64, 96}, sizes);
  add({2, 3, 5, 7}, {2, 3, 7, 9});
  for (int64_t rows : {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 25})
    add({rows, 19}, {19, 70});
  add({200, 24}, {24, 33});
  add({200, 1024}, {1024, 33});
  add({3, 0}, {0, 5});
  add({0, 4}, {4, 5});
  add({4, 5}, {5, 0});
  return list;
}

std::vector<Example> dotGeneral(const Row &, DType dtype) {
  std::vector<Example> list;
  auto add = [&](Shape lhs, Shape rhs, Ints lhsBatch, Ints rhsBatch, Ints lhsContract, Ints rhsContract,
                 std::vector<Sizes> sizes = {}) {
    list.push_back({{operand(dtype, std::move(lhs)), operand(dtype, std::move(rhs))},
                    {{"lhs_batch", lhsBatch},
                     {"rhs_batch", rhsBatch},
                     {"lhs_contract", lhsContract},
                     {"rhs_contract", rhsContract}},
                    std::move(sizes)});
  };
  const std::vector<Sizes> sizes{{{"b", 2}, {"m", 7}, {"k", 33}, {"n", 17}},
                                 {{"b", 1}, {"m", 1}, {"k", 1}, {"n", 1}},
                                 {{"b", 3}, {"m", 5}, {"k", 0}, {"n", 4}}};
  add({m, b, k}, {k, n, b}, {1}, {2}, {2}, {0}, sizes);
  if (dtype != f32 && dtype != i32)
    return list;
  add({k, m}, {n, k}, {}, {}, {0}, {1}, sizes);
  add({m, k}, {n, k}, {}, {}, {1}, {1}, {{{"m", 3}, {"k", 40}, {"n", 70}}, {{"m", 1}, {"k", 64}, {"n", 64}}});
  add({2, 40}, {50, 40}, {}, {}, {1}, {1});
  add({b, m, k}, {b, n, k}, {0}, {0}, {2}, {2}, {{{"b", 2}, {"m", 5}, {"k", 17}, {"n", 33}}});
  add({3, 4, 5}, {5, 4, 6}, {}, {}, {1, 2}, {1, 0});
  add({3, 4}, {5}, {}, {}, {}, {});
  add({7}, {7}, {}, {}, {0}, {0});
  add({2, 3, 4, 5}, {3, 5, 2, 6}, {0, 1}, {2, 0}, {3}, {1});
  return list;
}

struct Conv {
  Shape x, weight;
  bool bias = false;
  Attrs attrs = {};
  std::vector<Sizes> sizes = {};
};

/// Padding is multiplied with the weight as zeros, so only x may contain NaN and infinities.
Example conv(DType dtype, const Conv &c, const Dim &outputs) {
  Operand bias = c.bias ? operand(dtype, {outputs}) : Operand{};
  return {{operand(dtype, c.x), operand(dtype, c.weight, {-2, 2, Specials::None}), bias}, c.attrs, c.sizes};
}

std::vector<Example> convolution(const Row &, DType dtype) {
  const std::vector<Sizes> sizes{{{"b", 2}, {"n", 9}, {"m", 17}},
                                 {{"b", 1}, {"n", 5}, {"m", 5}},
                                 {{"b", 0}, {"n", 6}, {"m", 7}},
                                 {{"b", 1}, {"n", 33}, {"m", 3}}};
  std::vector<Example> list;
  auto add = [&](Conv c) { list.push_back(conv(dtype, c, c.weight[0])); };
  add({{b, 3, n, m}, {5, 3, 3, 3}, true, {{"padding", Ints{1}}}, sizes});
  add({{1, 4, 9, 11}, {6, 4, 3, 2}, false, {{"strides", Ints{2, 1}}}});
  add({{1, 40, 5, 6}, {35, 40, 2, 3}, true, {}});
  if (dtype == f16)
    add({{2, 16, 9, 7},
         {40, 16, 3, 3},
         true,
         {{"strides", Ints{2, 1}}, {"padding", Ints{1}}, {"dilations", Ints{1, 2}}}});
  if (dtype == f16 || dtype == f32) { // split along the depth on a GPU
    add({{1, 128, 5, 5}, {40, 128, 3, 3}, true, {{"padding", Ints{1}}}});
    add({{2, 64, 7, 6}, {33, 64, 3, 3}, false, {{"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}}});
    add({{6, 64, 5, 5}, {40, 64, 5, 5}, false, {}}); // windows as large as the image
  }
  if (dtype == f16) // on a GPU by warpgroups
    list.push_back(conv(
        dtype, {{b, n, m, 16}, {3, 3, 16, 72}, true, {{"padding", Ints{1}}, {"layout", std::string("nhwc")}}, sizes},
        72));
  if (dtype != f32)
    return list;
  add({{2, 3, 20}, {7, 3, 5}, true, {{"padding", Ints{2, 1}}, {"dilations", Ints{2}}, {"strides", Ints{3}}}});
  add({{1, 2, 5, 6, 7}, {3, 2, 2, 3, 2}, true, {{"padding", Ints{1, 0, 1}}}});
  add({{1, 6, 8, 8}, {4, 3, 3, 3}, true, {{"groups", int64_t(2)}, {"padding", Ints{0, 1, 2, 1}}}});
  add({{b, 6, n, m}, {6, 1, 3, 3}, true, {{"groups", int64_t(6)}, {"padding", Ints{1}}}, sizes});
  add({{2, 40, 10, 9}, {40, 1, 3, 3}, false, {{"groups", int64_t(40)}, {"strides", Ints{2}}, {"padding", Ints{1}}}});
  add({{1, 3, 12, 12}, {6, 1, 5, 5}, true, {{"groups", int64_t(3)}}}); // two filters per channel
  add({{3, 8, 7, 7}, {16, 8, 1, 1}, true, {}});
  add({{1, 16, 14, 14}, {33, 16, 3, 3}, false, {{"padding", Ints{1}}}});
  // Channels after the last whole vector, which are summed across lanes.
  add({{b, 20, n, m}, {18, 20, 3, 3}, true, {{"padding", Ints{2, 0}}}, sizes});
  add({{2, 36, 9, 12}, {3, 36, 3, 2}, true, {{"strides", Ints{2, 1}}, {"dilations", Ints{1, 3}}}});
  add({{1, 33, 1, 15}, {49, 33, 3, 1}, false, {{"padding", Ints{1, 0}}}});
  add({{1, 2, 40, 3, 4}, {2, 2, 33, 1, 2}, true, {}});
  // Windows nearly as large as the image, as in gradients of weights: split along the batch or the channels, or deep.
  const std::vector<Sizes> batches{{{"b", 9}}, {{"b", 4}}, {{"b", 1}}};
  add({{1, b, 12, 12}, {6, b, 10, 10}, false, {{"padding", Ints{1}}}, batches});
  add({{6, 10, 10, 9}, {17, 10, 8, 8}, false, {}});
  add({{3, b, 17, 17}, {7, b, 8, 8}, false, {{"dilations", Ints{2}}}, batches});
  add({{20, 5, 9, 9}, {40, 5, 9, 9}, false, {{"padding", Ints{1}}}});
  add({{5, 128, 7, 7}, {33, 128, 8, 8}, false, {{"padding", Ints{1}}}});
  add({{4, 128, 9, 10}, {34, 128, 8, 8}, false, {}});
  add({{b, 128, 7, 9}, {33, 128, 8, 8}, false, {{"padding", Ints{1}}}, batches});
  add({{b, 128, 9, 10}, {5, 128, 8, 8}, true, {}, batches});
  for (Conv c :
       {Conv{{b, n, m, 3}, {3, 3, 3, 8}, true, {{"padding", Ints{1}}}, sizes},
        Conv{{2, 9, 9, 6}, {3, 3, 1, 6}, true, {{"groups", int64_t(6)}}},
        // Tiles of several rows; few remaining channels, with several positions in a vector.
        Conv{{b, n, 9, 37}, {3, 3, 1, 37}, true, {{"groups", int64_t(37)}, {"padding", Ints{1}}}, sizes},
        Conv{{b, n, 20, 33}, {2, 3, 1, 33}, false, {{"groups", int64_t(33)}, {"padding", Ints{0, 2, 1, 0}}}, sizes},
        Conv{{2, 12, 11, 18},
             {3, 2, 1, 18},
             true,
             {{"groups", int64_t(18)}, {"strides", Ints{2, 1}}, {"padding", Ints{2, 0, 1, 1}}}},
        Conv{{1, 13, 8, 16},
             {3, 3, 1, 16},
             true,
             {{"groups", int64_t(16)}, {"strides", Ints{2, 1}}, {"dilations", Ints{2, 1}}, {"padding", Ints{2}}}},
        // Several tasks share the channels of a pixel.
        Conv{{1, 11, 7, 64}, {5, 5, 1, 64}, true, {{"groups", int64_t(64)}, {"padding", Ints{2}}}},
        Conv{{2, 19, 6, 80}, {3, 2, 1, 80}, false, {{"groups", int64_t(80)}, {"strides", Ints{2, 1}}}},
        Conv{{1, 6, 5, 275}, {3, 3, 1, 275}, true, {{"groups", int64_t(275)}, {"padding", Ints{1}}}},
        Conv{{1, 4, 6, 5, 17}, {2, 3, 3, 1, 17}, false, {{"groups", int64_t(17)}, {"padding", Ints{1}}}},
        Conv{{1, 9, 41, 19}, {3, 7, 1, 19}, true, {{"groups", int64_t(19)}}},
        Conv{{2, 50, 22}, {5, 1, 22}, false, {{"groups", int64_t(22)}, {"padding", Ints{2}}}},
        Conv{{1, 15, 21, 35},
             {3, 3, 1, 35},
             true,
             {{"groups", int64_t(35)}, {"strides", Ints{2}}, {"dilations", Ints{2}}, {"padding", Ints{3}}}},
        Conv{{1, 9, 9, 4}, {3, 3, 2, 6}, false, {{"groups", int64_t(2)}}}}) {
    c.attrs["layout"] = std::string("nhwc");
    list.push_back(conv(dtype, c, c.weight.back()));
  }
  return list;
}

std::vector<Example> transposedConvolution(const Row &, DType dtype) {
  const std::vector<Sizes> sizes{
      {{"b", 2}, {"n", 5}, {"m", 7}}, {{"b", 1}, {"n", 1}, {"m", 3}}, {{"b", 0}, {"n", 3}, {"m", 4}}};
  std::vector<Example> list;
  auto add = [&](Conv c, int64_t outputs) { list.push_back(conv(dtype, c, outputs)); };
  add({{b, 3, n, m},
       {3, 5, 3, 3},
       true,
       {{"strides", Ints{2}}, {"padding", Ints{1}}, {"output_padding", Ints{1}}},
       sizes},
      5);
  // Positions of the result that no element of x contributes to.
  add({{2, 4, 5}, {4, 3, 2}, true, {{"strides", Ints{3}}, {"output_padding", Ints{2}}}}, 3);
  add({{1, 4, 3}, {4, 2, 3}, true, {{"strides", Ints{2}}, {"padding", Ints{1, 0}}, {"output_padding", Ints{1}}}}, 2);
  if (dtype != f32)
    return list;
  add({{b, 4, n, m}, {4, 3, 1, 2}, true, {{"strides", Ints{3, 2}}, {"output_padding", Ints{1, 0}}}, sizes}, 3);
  add({{b, 6, n, m},
       {6, 2, 4, 3},
       true,
       {{"strides", Ints{2, 3}}, {"groups", int64_t(3)}, {"padding", Ints{1, 0}}},
       sizes},
      6);
  add({{2, 3, 6, 5}, {3, 4, 5, 5}, false, {{"strides", Ints{2, 1}}, {"padding", Ints{3, 4, 2, 0}}}}, 4);
  add({{1, 3, 4, 4}, {3, 1, 4, 4}, true, {{"strides", Ints{2}}, {"groups", int64_t(3)}, {"padding", Ints{1}}}}, 3);
  add({{2, 4, 9}, {4, 3, 4}, true, {{"strides", Ints{3}}, {"dilations", Ints{2}}}}, 3);
  add({{1, 2, 3, 4, 5}, {2, 3, 2, 2, 3}, false, {{"strides", Ints{2}}}}, 3);
  add({{1, 6, 5, 5}, {6, 2, 3, 3}, true, {{"groups", int64_t(3)}, {"padding", Ints{2}}}}, 6);
  add({{1, 4, 6, 6}, {4, 3, 2, 2}, false, {{"strides", Ints{2}}, {"padding", Ints{1, 0, 0, 1}}}}, 3);
  return list;
}

} // namespace

const std::vector<Row> &contractionRows() {
  const Tolerance sums{.sumEpsilons = 16, .zeroSigns = false};
  // The bias is added with a rounding of its own.
  const Tolerance biased{.sumEpsilons = 16, .roundings = 1, .zeroSigns = false};
  static const std::vector<Row> rows{
      {"matmul", {f32, f64, f16, bf16, i8, u8, i16, i32, i64, f8e4m3fn, f8e5m2}, matmul, sums},
      {"dot_general", kNumbers, dotGeneral, sums},
      {"conv", kNumbers, convolution, biased},
      {"conv_transpose", kNumbers, transposedConvolution, biased},
  };
  return rows;
}

/// Without special values: tf32 rounds small denormals to 0, whose product with an infinity is NaN.
template <auto makeExamples> static std::vector<Example> plainExamples(const Row &row, DType dtype) {
  std::vector<Example> all = makeExamples(row, dtype);
  for (Example &example : all)
    for (Operand &operand : example.operands)
      operand.draw.specials = Specials::None;
  return all;
}

Row roundedToTf32(Row row) {
  constexpr double kTwoRoundings = 1 << 13; // 2^-10 in epsilons of f32
  row.examples = row.op == "matmul"        ? plainExamples<matmul>
                 : row.op == "dot_general" ? plainExamples<dotGeneral>
                 : row.op == "conv"        ? plainExamples<convolution>
                                           : plainExamples<transposedConvolution>;
  row.types = {f32};
  row.tolerance.sumEpsilons += 1.001 * kTwoRoundings;
  return row;
}

Row splitToBf16(Row row) {
  constexpr double kLost = 1 << 8; // 2^-15 in epsilons of f32
  // Subnormal terms lose up to 2^-134, which is multiplied by less than 2^32 in each of up to 2^11 products.
  constexpr double kSubnormal = 0x1p-91;
  row.types = {f32};
  row.tolerance.sumEpsilons += 1.001 * kLost;
  row.tolerance.absolute = kSubnormal;
  return row;
}

std::vector<Row> rowsByWarpgroups() {
  constexpr double kCut = 1 << 14; // 2^-9 in epsilons of f32
  std::vector<Row> rows;
  for (Row row : contractionRows()) {
    if (row.op == "matmul") {
      Row &narrow = rows.emplace_back(row);
      narrow.types = {f8e4m3fn, f8e5m2}, narrow.examples = plainExamples<matmul>;
      narrow.tolerance.sumEpsilons += kCut;
    }
    std::erase_if(row.types, [](DType type) { return type != f16 && type != bf16 && type != i8 && type != u8; });
    rows.push_back(row);
  }
  return rows;
}

std::string nameByWarpgroups(const Row &row) {
  return row.op + (isFloat8(row.types.at(0)) ? " of 8-bit floats on sm_90a" : " on sm_90a");
}

} // namespace burin::test
