// Ops that select by index, and ops that create tensors.
#include "test/ops/Row.h"

namespace burin::test {

namespace {

using Ints = std::vector<int64_t>;
using Sizes = std::map<std::string, int64_t>;

const Dim n("n"), m("m"), k("k");
const std::vector<Sizes> kSizes{{{"n", 5}, {"m", 17}, {"k", 4}},
                                {{"n", 33}, {"m", 3}, {"k", 50}},
                                {{"n", 1}, {"m", 1}, {"k", 1}},
                                {{"n", 3}, {"m", 40}, {"k", 0}}};

/// Indices from both ends: negative ones count from the end.
Operand indices(Shape shape, DType dtype = i64) { return {TensorSpec{dtype, std::move(shape)}, {-70, 70}, true}; }

std::vector<Example> take(const Row &row, DType dtype) {
  auto x = [&](Shape shape) { return Operand{TensorSpec{dtype, std::move(shape)}}; };
  std::vector<Example> list{
      {{x({n, m}), indices({k})}, {{"axis", int64_t(0)}}, kSizes},
      {{x({n, m}), indices({3, k}, i32)}, {{"axis", int64_t(1)}}, kSizes},
  };
  if (dtype != f32)
    return list;
  list.push_back({{x({5, 4, 3}), indices({2, 2}, i8)}, {{"axis", int64_t(-2)}}});
  list.push_back({{x({7}), indices({})}, {}});
  list.push_back({{x({300, 33}), indices({5}, u8)}, {}});
  list.push_back({{x({6}), indices({40}, i16)}, {}});
  list.push_back({{x({0, 3}), indices({0})}, {}});
  list.push_back({{x({3, 0}), indices({2})}, {}});
  return list;
}

std::vector<Example> gather(const Row &row, DType dtype) {
  auto x = [&](Shape shape) { return Operand{TensorSpec{dtype, std::move(shape)}}; };
  std::vector<Example> list{
      {{x({n, m}), indices({k, m})}, {{"axis", int64_t(0)}}, kSizes},
      {{x({n, m}), indices({n, k}, i32)}, {{"axis", int64_t(1)}}, kSizes},
  };
  if (dtype != f32)
    return list;
  list.push_back({{x({5, 4, 3}), indices({2, 9, 3}, i16)}, {{"axis", int64_t(-2)}}});
  list.push_back({{x({7}), indices({33}, i8)}, {}});
  list.push_back({{x({5, 40}), indices({3, 33})}, {}});
  return list;
}

std::vector<Example> scatter(const Row &row, DType dtype) {
  auto x = [&](Shape shape) { return Operand{TensorSpec{dtype, std::move(shape)}, row.draw}; };
  std::vector<Example> list;
  for (const char *reduction : {"set", "add", "mul", "min", "max"}) {
    std::string name(reduction);
    if (name != "set" && isBool(dtype))
      continue;
    list.push_back({{x({n, m}), indices({k, m}), x({k, m})}, {{"axis", int64_t(0)}, {"reduction", name}}, kSizes});
    list.push_back({{x({n, m}), indices({n, k}, i32), x({n, k})}, {{"axis", int64_t(1)}, {"reduction", name}}, kSizes});
    if (dtype != f32)
      continue;
    list.push_back(
        {{x({5, 4, 3}), indices({2, 9, 3}, i16), x({2, 9, 3})}, {{"axis", int64_t(-2)}, {"reduction", name}}});
    list.push_back({{x({7}), indices({33}, i8), x({33})}, {{"reduction", name}}});
    Operand anywhere = indices({33});
    anywhere.isIndex = false;
    list.push_back({{x({7}), anywhere, x({33})}, {{"reduction", name}, {"drop", true}}});
  }
  return list;
}

std::vector<Attrs> withTypes(const std::vector<DType> &types, std::vector<Attrs> all) {
  std::vector<Attrs> list;
  for (const Attrs &attrs : all)
    for (DType dtype : types) {
      list.push_back(attrs);
      list.back()["dtype"] = dtype;
    }
  return list;
}

/// Ops without operands, with each set of attributes.
std::vector<Example> created(const Row &row, DType) {
  std::vector<Example> list;
  for (const Attrs &attrs : row.attrs)
    list.push_back({{}, attrs});
  return list;
}

std::vector<Example> bernoulli(const Row &row, DType dtype) {
  std::vector<Example> list;
  for (int64_t seed : {int64_t(0), int64_t(-1), int64_t(1234567890123)})
    list.push_back({{{TensorSpec{dtype, {n, m}}, row.draw}}, {{"seed", seed}}, kSizes});
  list.push_back(
      {{{TensorSpec{dtype, {n, m}}, row.draw}, {TensorSpec{i64, {}}, {-1e18, 1e18}}}, {{"seed", int64_t(0)}}, kSizes});
  return list;
}

/// Ops with only a key as operand, with each set of attributes, with and without a key.
std::vector<Example> drawn(const Row &row, DType) {
  std::vector<Example> list = created(row, f32);
  for (const Attrs &attrs : row.attrs)
    list.push_back({{{TensorSpec{i64, {}}, {-1e18, 1e18}}}, attrs});
  return list;
}

std::vector<Example> generators(const Row &, DType) { return {{{{TensorSpec{i64, {2}}, {-1e18, 1e18}}}}}; }

std::vector<Attrs> randomAttrs(const char *first, const char *second) {
  return withTypes(kFloats, {{{"shape", Shape{50, 129}}, {"seed", int64_t(7)}},
                             {{"shape", Shape{33}}, {"seed", int64_t(-3)}, {first, -2.0}, {second, 3.0}},
                             {{"shape", Shape{}}, {"seed", INT64_MAX}},
                             {{"shape", Shape{3, 0}}, {"seed", int64_t(1)}},
                             {{"shape", Shape{2, 3, 5}}, {"seed", INT64_MIN}, {first, 0.5}, {second, 0.5}}});
}

} // namespace

const std::vector<Row> &indexRows() {
  static const std::vector<Row> rows{
      {"take", kStored, take},
      {"gather", kStored, gather},
      {"scatter", kAll, scatter, {.ulps = 64, .epsilons = 64, .zeroSigns = false}, {-1.5, 1.5, Specials::None}},
      {"iota",
       {f32},
       created,
       {},
       {},
       withTypes(kNumbers, {{{"shape", Shape{7, 33}}, {"axis", int64_t(1)}},
                            {{"shape", Shape{300}}},
                            {{"shape", Shape{50, 3}}, {"axis", int64_t(0)}},
                            {{"shape", Shape{0, 3}}, {"axis", int64_t(-1)}}})},
      {"full",
       {f32},
       created,
       {},
       {},
       withTypes(kStored, {{{"shape", Shape{33}}, {"value", 1.0}},
                           {{"shape", Shape{}}, {"value", -2.5}},
                           {{"shape", Shape{3, 5}}, {"value", double(NAN)}},
                           {{"shape", Shape{0}}, {"value", 1e300}},
                           {{"shape", Shape{2, 2}}, {"value", -0.0}}})},
      // Two roundings, the second of which may follow a cancellation.
      {"random_uniform", {f32}, drawn, {.ulps = 1, .epsilons = 4}, {}, randomAttrs("low", "high")},
      // Near 0 the absolute error of the cosine dominates.
      {"random_normal", {f32}, drawn, {.ulps = 8, .epsilons = 16}, {}, randomAttrs("mean", "stddev")},
      {"random_integers",
       {f32},
       drawn,
       {},
       {},
       withTypes(kIntegers,
                 {{{"shape", Shape{50, 129}}, {"seed", int64_t(7)}, {"low", int64_t(-3)}, {"high", int64_t(100)}},
                  {{"shape", Shape{33}}, {"seed", int64_t(-3)}, {"low", INT64_MIN}, {"high", INT64_MAX}},
                  {{"shape", Shape{}}, {"seed", INT64_MAX}, {"low", int64_t(5)}, {"high", int64_t(6)}},
                  {{"shape", Shape{3, 0}}, {"seed", int64_t(1)}, {"low", int64_t(0)}, {"high", int64_t(1)}},
                  {{"shape", Shape{5, 7}}, {"low", int64_t(0)}, {"high", int64_t(1) << 33}}})},
      {"random_key", {i64}, generators},
      {"bernoulli", kFloats, bernoulli, {}, {-0.2, 1.2}},
  };
  return rows;
}

} // namespace burin::test
