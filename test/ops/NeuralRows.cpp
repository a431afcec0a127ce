// Pooling, softmax, normalisation, attention.
#include "test/ops/Row.h"

namespace burin::test {

namespace {

using Ints = std::vector<int64_t>;
using Sizes = std::map<std::string, int64_t>;

const Dim n("n"), m("m"), b("b");
const Draw kPlain{-4, 4, Specials::None};

Operand operand(DType dtype, Shape shape, Draw draw) { return {TensorSpec{dtype, std::move(shape)}, draw}; }

std::vector<Example> pool(const Row &row, DType dtype) {
  const std::vector<Sizes> sizes{{{"b", 2}, {"n", 9}, {"m", 17}},
                                 {{"b", 1}, {"n", 5}, {"m", 5}},
                                 {{"b", 0}, {"n", 6}, {"m", 7}},
                                 {{"b", 1}, {"n", 33}, {"m", 40}}};
  std::vector<Example> list;
  for (const Attrs &extra : row.attrs) {
    auto add = [&](Shape x, Attrs attrs, std::vector<Sizes> runs = {}) {
      attrs.insert(extra.begin(), extra.end());
      list.push_back({{operand(dtype, std::move(x), row.draw)}, std::move(attrs), std::move(runs)});
    };
    add({b, 3, n, m}, {{"kernel", Ints{3, 2}}, {"strides", Ints{2, 1}}, {"padding", Ints{1}}}, sizes);
    if (dtype != f32 && dtype != u8)
      continue;
    add({1, 2, 12, 40}, {{"kernel", Ints{2}}});
    add({2, 3, 20}, {{"kernel", Ints{4}}, {"strides", Ints{3}}, {"padding", Ints{1, 2}}, {"ceil_mode", true}});
    add({1, 2, 5, 6, 7}, {{"kernel", Ints{2, 3, 2}}, {"padding", Ints{1, 1, 0}}});
    add({1, 2, 15, 15}, {{"kernel", Ints{3}}, {"dilations", Ints{2}}, {"strides", Ints{2}}, {"padding", Ints{2}}});
    add({1, 2, 15, 14}, {{"kernel", Ints{3}}, {"dilations", Ints{2}}, {"strides", Ints{3}}, {"ceil_mode", true}});
    add({b, n, m, 20}, {{"kernel", Ints{2}}, {"padding", Ints{1, 0, 0, 1}}, {"layout", std::string("nhwc")}}, sizes);
    add({b, n, 19, 40},
        {{"kernel", Ints{3}}, {"strides", Ints{2}}, {"padding", Ints{1}}, {"layout", std::string("nhwc")}}, sizes);
    add({1, 14, 13, 21},
        {{"kernel", Ints{3}}, {"strides", Ints{2}}, {"ceil_mode", true}, {"layout", std::string("nhwc")}});
  }
  return list;
}

std::vector<Example> adaptivePool(const Row &row, DType dtype) {
  const std::vector<Sizes> sizes{
      {{"b", 2}, {"n", 9}, {"m", 17}}, {{"b", 1}, {"n", 3}, {"m", 1}}, {{"b", 0}, {"n", 6}, {"m", 7}}};
  std::vector<Example> list;
  auto add = [&](Shape x, Attrs attrs, std::vector<Sizes> runs = {}) {
    list.push_back({{operand(dtype, std::move(x), row.draw)}, std::move(attrs), std::move(runs)});
  };
  add({b, 3, n, m}, {{"output_size", Ints{4, 5}}}, sizes);
  add({2, 3, 7, 7}, {{"output_size", Ints{1}}});
  if (dtype != f32)
    return list;
  add({2, 3, 20}, {{"output_size", Ints{33}}});
  add({1, 2, 5, 6, 7}, {{"output_size", Ints{2, 3, 5}}});
  add({b, n, m, 18}, {{"output_size", Ints{3, 2}}, {"layout", std::string("nhwc")}}, sizes);
  return list;
}

const std::vector<Sizes> kMatrices{
    {{"n", 5}, {"m", 129}}, {{"n", 3}, {"m", 7}}, {{"n", 33}, {"m", 1}}, {{"n", 1}, {"m", 300}}, {{"n", 0}, {"m", 4}}};

std::vector<Example> rows(const Row &row, DType dtype) {
  std::vector<Example> list;
  auto add = [&](Shape x, int64_t axis, std::vector<Sizes> sizes = {}) {
    list.push_back({{operand(dtype, std::move(x), row.draw)}, {{"axis", axis}}, std::move(sizes)});
  };
  add({n, m}, -1, kMatrices);
  add({3, 50}, 0);
  if (dtype != f32)
    return list;
  add({n, m}, 0, kMatrices);
  add({2, 5, 33}, 1);
  add({1000}, 0);
  add({4, 0}, 1);
  return list;
}

/// layer_norm and rms_norm, with and without scale and shift.
std::vector<Example> norm(const Row &row, DType dtype) {
  bool hasBias = ir::findOp(row.op)->operands.size() == 3;
  std::vector<Example> list;
  auto add = [&](Shape x, int64_t axis, bool scaled, bool shifted, std::vector<Sizes> sizes = {}) {
    Shape inner(x.end() + axis, x.end());
    Example example{
        {operand(dtype, std::move(x), kPlain), Operand{}}, {{"axis", axis}, {"epsilon", 1e-3}}, std::move(sizes)};
    if (scaled)
      example.operands[1] = operand(dtype, inner, kPlain);
    if (hasBias)
      example.operands.push_back(shifted ? operand(dtype, inner, kPlain) : Operand{});
    list.push_back(std::move(example));
  };
  add({n, m}, -1, true, true, kMatrices);
  add({3, 50}, -1, false, false);
  if (dtype != f32)
    return list;
  add({2, 3, 5, 7}, -2, true, true);
  add({n, 3, m}, -3, true, false, kMatrices);
  add({4, 33}, -1, false, true);
  add({1000}, -1, true, true);
  return list;
}

std::vector<Example> batchNorm(const Row &row, DType dtype) {
  std::vector<Example> list;
  auto add = [&](Shape x, std::vector<Sizes> sizes = {}) {
    Dim channels = x[1];
    Operand perChannel = operand(dtype, {channels}, kPlain),
            variance = operand(dtype, {channels}, {0.1, 3, Specials::None});
    list.push_back({{operand(dtype, std::move(x), row.draw), perChannel, variance, perChannel, perChannel},
                    {{"epsilon", 1e-3}},
                    std::move(sizes)});
  };
  add({n, 3, m}, kMatrices);
  add({5, 33});
  add({2, 4, 3, 5});
  return list;
}

std::vector<Example> groupNorm(const Row &row, DType dtype) {
  bool instance = row.op == "instance_norm";
  std::vector<Example> list;
  auto add = [&](Shape x, int64_t groups, bool scaled, bool shifted, std::vector<Sizes> sizes = {}) {
    Dim channels = x[1];
    auto optional = [&](bool there) { return there ? operand(dtype, {channels}, kPlain) : Operand{}; };
    Attrs attrs{{"epsilon", 1e-3}};
    if (!instance)
      attrs["groups"] = groups;
    list.push_back(
        {{operand(dtype, std::move(x), kPlain), optional(scaled), optional(shifted)}, attrs, std::move(sizes)});
  };
  add({n, 6, m}, 3, true, true, kMatrices);
  add({2, 4, 3, 5}, 2, false, false);
  if (dtype != f32)
    return list;
  add({2, 4, 33}, 1, true, false);
  add({1, 4, 3, 3, 2}, 4, false, true);
  return list;
}

/// Of the normalisation of runs of `length` elements, `channelOf` being the element of the weight for each of them:
/// the mean is rounded, so the difference from it errs by roundings of the largest element. They weigh the more, the
/// less the elements of a run differ.
ir::RefTensor centeredScale(const Example &example, const std::vector<const ir::RefTensor *> &operands, int64_t length,
                            const std::function<size_t(size_t)> &channelOf) {
  ir::RefTensor scale = *operands[0];
  std::vector<double> &x = scale.reals();
  const double epsilon = std::get<double>(example.attrs.at("epsilon"));
  for (size_t start = 0; start < x.size(); start += size_t(length)) {
    std::span<double> run(x.data() + start, size_t(length));
    double sum = 0, squares = 0, largest = 0;
    for (double value : run)
      sum += value, largest = std::max(largest, std::fabs(value));
    for (double value : run)
      squares += (value - sum / double(length)) * (value - sum / double(length));
    const double size = largest / std::sqrt(squares / double(length) + epsilon);
    for (size_t i = 0; i < run.size(); ++i)
      run[i] = size * (operands[1] ? std::fabs(operands[1]->reals()[channelOf(start + i)]) : 1);
  }
  return scale;
}

ir::RefTensor groupNormScale(const Example &example, const std::vector<const ir::RefTensor *> &operands) {
  const std::vector<int64_t> &shape = operands[0]->shape;
  auto groups = example.attrs.find("groups");
  int64_t inner = 1, count = groups == example.attrs.end() ? shape[1] : std::get<int64_t>(groups->second);
  for (size_t d = 2; d < shape.size(); ++d)
    inner *= shape[d];
  return centeredScale(example, operands, shape[1] / count * inner,
                       [=](size_t i) { return i / size_t(inner) % size_t(shape[1]); });
}

ir::RefTensor layerNormScale(const Example &example, const std::vector<const ir::RefTensor *> &operands) {
  const std::vector<int64_t> &shape = operands[0]->shape;
  int64_t axis = std::get<int64_t>(example.attrs.at("axis")), length = 1;
  for (size_t d = size_t(axis < 0 ? axis + int64_t(shape.size()) : axis); d < shape.size(); ++d)
    length *= shape[d];
  return centeredScale(example, operands, length, [=](size_t i) { return i % size_t(length); });
}

std::vector<Example> attention(const Row &row, DType dtype) {
  const Dim e("e"), v("v");
  const std::vector<Sizes> sizes{{{"b", 2}, {"n", 7}, {"m", 17}},
                                 {{"b", 1}, {"n", 1}, {"m", 1}},
                                 {{"b", 3}, {"n", 33}, {"m", 5}},
                                 {{"b", 0}, {"n", 4}, {"m", 4}}};
  std::vector<Example> list;
  auto add = [&](Shape q, Shape key, Shape value, Operand mask, Attrs attrs, std::vector<Sizes> runs = {}) {
    list.push_back({{operand(dtype, std::move(q), kPlain), operand(dtype, std::move(key), kPlain),
                     operand(dtype, std::move(value), kPlain), std::move(mask)},
                    std::move(attrs),
                    std::move(runs)});
  };
  add({b, 2, n, 8}, {b, 2, m, 8}, {b, 2, m, 5}, {}, {}, sizes);
  add({2, 3, 7, 16}, {2, 3, 9, 16}, {2, 3, 9, 16}, operand(boolean, {7, 9}, {}), {});
  add({2, 1, 40}, {2, 70, 40}, {2, 70, 24}, operand(dtype, {1, 70}, kPlain), {}); // one row: keys are read in place
  add({b, 3, 19}, {b, m, 19}, {b, m, 5}, {}, {}, sizes);
  if (dtype == bf16) { // of tensor cores: several tiles, sizes beside and between theirs
    add({2, 70, 64}, {2, 130, 64}, {2, 130, 64}, {}, {{"is_causal", true}});
    add({b, n, 40}, {b, m, 40}, {b, m, 72}, operand(dtype, {n, m}, kPlain), {}, sizes);
    add({66, 19}, {70, 19}, {70, 21}, operand(boolean, {66, 70}, {}), {{"is_causal", true}});
  }
  if (dtype != f32)
    return list;
  add({b, n, 8}, {b, m, 8}, {b, m, 5}, {}, {{"is_causal", true}}, sizes);
  add({2, 70, 33}, {2, 130, 33}, {2, 130, 70}, {}, {{"is_causal", true}});
  add({b, n, 8}, {b, m, 8}, {b, m, 5}, operand(dtype, {n, m}, kPlain), {{"scale", 0.3}}, sizes);
  add({4, 8}, {6, 8}, {6, 3}, operand(dtype, {1, 6}, kPlain), {{"is_causal", true}});
  add({50, 33}, {70, 33}, {70, 40}, {}, {});
  return list;
}

/// Several tiles of rows and keys, sizes beside and between theirs; tiles of few keys where there are many columns.
std::vector<Example> attentionOfManyRows(const Row &, DType dtype) {
  std::vector<Example> list;
  auto add = [&](Shape q, Shape key, Shape value, Operand mask, Attrs attrs, std::vector<Sizes> runs = {}) {
    list.push_back({{operand(dtype, std::move(q), kPlain), operand(dtype, std::move(key), kPlain),
                     operand(dtype, std::move(value), kPlain), std::move(mask)},
                    std::move(attrs),
                    std::move(runs)});
  };
  const std::vector<Sizes> sizes{
      {{"b", 2}, {"n", 7}, {"m", 140}}, {{"b", 1}, {"n", 1}, {"m", 1}}, {{"b", 0}, {"n", 4}, {"m", 4}}};
  add({2, 130, 64}, {2, 260, 64}, {2, 260, 64}, {}, {{"is_causal", true}});
  add({b, n, 40}, {b, m, 40}, {b, m, 72}, operand(dtype, {n, m}, kPlain), {}, sizes);
  add({70, 136}, {130, 136}, {130, 200}, {}, {});
  if (dtype == f16)
    return list;
  add({140, 128}, {70, 128}, {70, 128}, operand(boolean, {140, 70}, {}), {{"is_causal", true}});
  add({66, 8}, {70, 8}, {70, 8}, {}, {{"scale", -0.3}});
  return list;
}

} // namespace

Row attentionByWarpgroups() {
  for (Row row : neuralRows())
    if (row.op == "scaled_dot_product_attention") {
      row.types = {f16, bf16}, row.examples = attentionOfManyRows;
      return row;
    }
  throw std::runtime_error("no row of attention");
}

const std::vector<Row> &neuralRows() {
  const Tolerance normed{.ulps = 4, .epsilons = 64, .zeroSigns = false};
  const Tolerance centered{.ulps = 4, .epsilons = 64, .sumEpsilons = 4, .zeroSigns = false};
  static const std::vector<Row> table{
      {"max_pool", kNumbers, pool, {.zeroSigns = false}},
      {"avg_pool",
       kFloats,
       pool,
       {.sumEpsilons = 16, .zeroSigns = false},
       kModest,
       {{{"count_include_pad", true}}, {{"count_include_pad", false}}}},
      {"adaptive_avg_pool", kFloats, adaptivePool, {.sumEpsilons = 16, .zeroSigns = false}, kModest},
      {"softmax", kFloats, rows, {.ulps = 16, .epsilons = 4}},
      {"log_softmax", kFloats, rows, {.ulps = 4, .epsilons = 16, .zeroSigns = false}},
      {"layer_norm", kFloats, norm, centered, {}, {{}}, layerNormScale},
      {"rms_norm", kFloats, norm, normed},
      {"batch_norm", kFloats, batchNorm, normed, kPlain},
      {"group_norm", kFloats, groupNorm, centered, {}, {{}}, groupNormScale},
      {"instance_norm", kFloats, groupNorm, centered, {}, {{}}, groupNormScale},
      {"scaled_dot_product_attention", kFloats, attention, {.ulps = 4, .epsilons = 128, .zeroSigns = false}},
  };
  return table;
}

} // namespace burin::test
