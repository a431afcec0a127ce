// Rules of the op definitions that differ from PyTorch's or go beyond them, and ops that PyTorch does not have.
#include "test/reference/Harness.h"
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

using namespace burin;
using namespace burin::test;
using ir::RefTensor;

namespace {

constexpr double kNan = NAN, inf = INFINITY;
using Ints = std::vector<int64_t>;

/// Returns the elements of the first result; fails the test if there is none.
Ints ints(const Outcome &outcome) {
  REQUIRE(outcome.error == "");
  return outcome->ints();
}
std::vector<double> elements(const Outcome &outcome) {
  REQUIRE(outcome.error == "");
  return outcome->reals();
}

/// Attributes of a `contract` that is a matrix product.
Attrs productAttrs(int64_t batch, int64_t columns) {
  return {
      {"batch", batch}, {"columns", Shape{columns}}, {"kernel", Ints{1}}, {"strides", Ints{1}}, {"dilations", Ints{1}}};
}

} // namespace

TEST_CASE("an integer divided by 0 gives 0, the smallest by -1 wraps") {
  const int64_t low = INT64_MIN;
  RefTensor x = integers({7, -7, 0, low, low}), y = integers({0, 0, 0, -1, 0});
  CHECK(ints(evaluateOp("floor_divide", {x, y})) == Ints{0, 0, 0, low, 0});
  CHECK(ints(evaluateOp("remainder", {x, y})) == Ints{0, 0, 0, 0, 0});
  CHECK(ints(evaluateOp("fmod", {x, y})) == Ints{0, 0, 0, 0, 0});
  CHECK(ints(evaluateOp("floor_divide", {integers({-128}, {}, i8), integers({-1}, {}, i8)})) == Ints{-128});
}

TEST_CASE("integer arithmetic wraps in its own width") {
  CHECK(ints(evaluateOp("add", {integers({INT64_MAX}), integers({1})})) == Ints{INT64_MIN});
  CHECK(ints(evaluateOp("mul", {integers({INT64_MAX}), integers({3})})) == Ints{INT64_MAX - 2});
  CHECK(ints(evaluateOp("neg", {integers({INT64_MIN})})) == Ints{INT64_MIN});
  CHECK(ints(evaluateOp("abs", {integers({-32768}, {}, i16)})) == Ints{-32768});
  CHECK(ints(evaluateOp("add", {integers({200, 3}, {}, u8), integers({100, 4}, {}, u8)})) == Ints{44, 7});
}

TEST_CASE("rounding ops leave large integers alone") {
  RefTensor x = integers({(int64_t(1) << 53) + 1, INT64_MAX, -(int64_t(1) << 60) - 1});
  for (const char *op : {"floor", "ceil", "round", "trunc"})
    CHECK(ints(evaluateOp(op, {x})) == x.ints());
}

TEST_CASE("integer powers wrap, a negative exponent gives 0, except of 1 and -1") {
  RefTensor x = integers({2, 1, -1, -1, 0, 3, 2, -3}), y = integers({-1, -5, -3, -4, -2, 41, 64, 3});
  uint64_t cube = 1;
  for (int i = 0; i < 41; ++i)
    cube *= 3;
  CHECK(ints(evaluateOp("pow", {x, y})) == Ints{0, 1, -1, 1, 0, int64_t(cube), 0, -27});
}

TEST_CASE("shifts by a negative amount or the whole width leave zeros or the sign") {
  RefTensor x = integers({1, 1, -2, -2, 5}, {}, i8), y = integers({8, -1, 7, 100, -3}, {}, i8);
  CHECK(ints(evaluateOp("shift_left", {x, y})) == Ints{0, 0, 0, 0, 0});
  CHECK(ints(evaluateOp("shift_right", {x, y})) == Ints{0, 0, -1, -1, 0});
  CHECK(ints(evaluateOp("shift_right", {integers({200}, {}, u8), integers({9}, {}, u8)})) == Ints{0});
}

TEST_CASE("NaN and infinities in single elements") {
  CHECK(elements(evaluateOp("gelu", {reals({-inf})})) == std::vector<double>{0});
  CHECK(elements(evaluateOp("gelu", {reals({-inf})}, {{"approximate", std::string("tanh")}})) ==
        std::vector<double>{0});
  CHECK(std::isnan(elements(evaluateOp("sign", {reals({kNan})}))[0]));
  CHECK(elements(evaluateOp("sign", {reals({inf, -inf, 0})})) == std::vector<double>{1, -1, 0});
  CHECK(elements(evaluateOp("clamp", {reals({5}), reals({3}), reals({1})})) == std::vector<double>{1});
  CHECK_FALSE(std::signbit(elements(evaluateOp("abs", {reals({-0.0})}))[0]));
}

TEST_CASE("casts saturate, wrap and test for zero") {
  RefTensor x = reals({kNan, inf, -inf, 300, -1.9, 0.5});
  auto to = [](DType t) { return Attrs{{"dtype", t}}; };
  CHECK(ints(evaluateOp("cast", {x}, to(u8))) == Ints{0, 255, 0, 255, 0, 0});
  CHECK(ints(evaluateOp("cast", {x}, to(i8))) == Ints{0, 127, -128, 127, -1, 0});
  CHECK(ints(evaluateOp("cast", {x}, to(boolean))) == Ints{1, 1, 1, 1, 1, 1});
  CHECK(ints(evaluateOp("cast", {integers({256, 0, -2})}, to(boolean))) == Ints{1, 0, 1});
  CHECK(elements(evaluateOp("cast", {reals({0.1, 1e300}, {}, f64)}, to(f32))) == std::vector<double>{0.1f, inf});
  // Rounded once, not through f64: 2^54 + 2^30 + 1 is just above halfway between two f32 neighbours.
  CHECK(elements(evaluateOp("cast", {integers({(int64_t(1) << 54) + (int64_t(1) << 30) + 1})}, to(f32)))[0] ==
        0x1p54 + 0x1p31);
}

TEST_CASE("narrow results are rounded after each op, f32 on request") {
  CHECK(elements(evaluateOp("add", {reals({2048}, {}, f16), reals({1}, {}, f16)}))[0] == 2048);
  CHECK(std::isinf(elements(evaluateOp("mul", {reals({300}, {}, f16), reals({300}, {}, f16)}))[0]));
  CHECK(elements(evaluateOp("add", {reals({256}, {}, bf16), reals({1}, {}, bf16)}))[0] == 256);
  RefTensor big = reals({16777216}), one = reals({1});
  CHECK(elements(evaluateOp("add", {big, one}))[0] == 16777217);
  ir::RefOptions rounded;
  rounded.roundF32 = true;
  CHECK(elements(evaluateOp("add", {big, one}, {}, rounded))[0] == 16777216);
}

TEST_CASE("indices count from the end and must be in range, unless scatter drops those outside") {
  RefTensor x = integers({10, 11, 12}), indices = integers({-1, -3, -4, 3, 99});
  for (const char *op : {"take", "gather"}) {
    CHECK(ints(evaluateOp(op, {x, integers({-1, -3, 2, 0})})) == Ints{12, 10, 12, 10});
    CHECK_THAT(evaluateOp(op, {x, indices}).error,
               Catch::Contains("index -4 (element 2) is out of range for a size of 3"));
  }
  RefTensor updates = integers({1, 2, 3, 4, 5});
  CHECK(ints(evaluateOp("scatter", {x, indices, updates}, {{"drop", true}})) == Ints{2, 11, 1});
  CHECK_THAT(evaluateOp("scatter", {x, indices, updates}).error,
             Catch::Contains("index -4 (element 2) is out of range"));
  CHECK(ints(evaluateOp("scatter", {x, integers({1, 1, 1}), integers({1, 2, 3})})) == Ints{10, 3, 12});
  CHECK(ints(evaluateOp("scatter", {x, integers({1, 1, 7}), integers({1, 2, 3})},
                        {{"reduction", std::string("add")}, {"drop", true}})) == Ints{10, 14, 12});
}

TEST_CASE("padding puts elements between neighbours, and negative amounts crop") {
  RefTensor x = integers({1, 2, 3}, {}, i32);
  auto pad = [&](int64_t low, int64_t high, int64_t interior, double value = 9) {
    return ints(evaluateOp("pad", {x},
                           {{"low", Ints{low}}, {"high", Ints{high}}, {"interior", Ints{interior}}, {"value", value}}));
  };
  CHECK(pad(1, 2, 1) == Ints{9, 1, 9, 2, 9, 3, 9, 9});
  CHECK(pad(-1, 0, 1) == Ints{9, 2, 9, 3});
  CHECK(pad(-2, -1, 2) == Ints{9, 2, 9, 9});
  CHECK(pad(-3, 2, 0) == Ints{9, 9});
  auto border = [&](const char *mode, int64_t low, int64_t high) {
    return ints(evaluateOp("pad", {x}, {{"low", Ints{low}}, {"high", Ints{high}}, {"mode", std::string(mode)}}));
  };
  CHECK(border("edge", 2, -1) == Ints{1, 1, 1, 2});
  CHECK(border("reflect", 2, 1) == Ints{3, 2, 1, 2, 3, 2});
}

TEST_CASE("created tensors") {
  CHECK(elements(evaluateOp("iota", {}, {{"shape", Shape{2, 3}}, {"dtype", f32}, {"axis", int64_t(1)}})) ==
        std::vector<double>{0, 1, 2, 0, 1, 2});
  CHECK(ints(evaluateOp("iota", {}, {{"shape", Shape{300}}, {"dtype", u8}}))[299] == 43);
  CHECK(ints(evaluateOp("full", {}, {{"shape", Shape{2}}, {"value", -1.5}, {"dtype", i32}})) == Ints{-1, -1});
  CHECK(elements(evaluateOp("full", {}, {{"shape", Shape{}}, {"value", 0.1}, {"dtype", f16}}))[0] ==
        double(_Float16(0.1)));
}

TEST_CASE("empty reductions give the neutral element") {
  RefTensor none = RefTensor::zeros(f32, {2, 0}), noInts = RefTensor::zeros(u8, {2, 0});
  Attrs last{{"axes", Ints{1}}};
  CHECK(elements(evaluateOp("reduce_max", {none}, last)) == std::vector<double>{-inf, -inf});
  CHECK(elements(evaluateOp("reduce_min", {none}, last)) == std::vector<double>{inf, inf});
  CHECK(ints(evaluateOp("reduce_max", {noInts}, last)) == Ints{0, 0});
  CHECK(ints(evaluateOp("reduce_min", {noInts}, last)) == Ints{255, 255});
  CHECK(ints(evaluateOp("reduce_all", {none}, last)) == Ints{1, 1});
  CHECK(ints(evaluateOp("reduce_any", {none}, last)) == Ints{0, 0});
  CHECK(std::isinf(elements(evaluateOp("logsumexp", {none}, last))[0]));
  CHECK(std::isnan(elements(evaluateOp("reduce_var", {reals({1}, {1, 1})}, last))[0]));
  CHECK(elements(evaluateOp("reduce_average", {reals({1, 2, 6}, {1, 3})},
                            {{"axes", Ints{1}}, {"correction", int64_t(1)}})) == std::vector<double>{4.5});
  CHECK(elements(evaluateOp("reduce_average", {reals({1, 2, 4}, {1, 3})}, {{"axes", Ints{1}}, {"squared", true}})) ==
        std::vector<double>{7});
  double nan = std::nan("");
  CHECK(elements(evaluateOp("reduce_max_num", {reals({nan, 2, -1, nan, nan, nan}, {2, 3})}, {{"axes", Ints{1}}})) ==
        std::vector<double>{2, -inf});
}

TEST_CASE("attention rows that see nothing give zeros") {
  RefTensor q = reals({1, 2}, {1, 2}), k = reals({1, 1, 2, 2}, {2, 2}), v = reals({3, 4}, {2, 1});
  RefTensor nothing = integers({0, 0}, {1, 2}, boolean), second = integers({0, 1}, {1, 2}, boolean);
  CHECK(elements(evaluateOp("scaled_dot_product_attention", {q, k, v, nothing})) == std::vector<double>{0});
  CHECK(elements(evaluateOp("scaled_dot_product_attention", {q, k, v, second})) == std::vector<double>{4});
}

// PyTorch's gradients of scaled_dot_product_attention in f64, those of queries and keys divided by the scale.
TEST_CASE("attention_gradient gives PyTorch's gradients") {
  RefTensor q = reals({1, -2, 0.5, 1}, {2, 2}), k = reals({1, 0, -1, 0.5, 2, 1}, {3, 2}),
            v = reals({0, 1, 3, -1, 1, 1}, {3, 2}), g = reals({1, 2, -1, 0.5}, {2, 2}),
            mask = reals({0, -0.5, 1, 0.25, 0, 0}, {2, 3});
  const std::vector<double> plain{0.420356732,  0.232768748,  1.151638167, -0.128510486, -0.002981042, 0.775042519,
                                  -0.331064925, -0.361989074, 0.334045967, -0.413053445, 0.05199222,   0.871974154,
                                  -0.137712899, 0.19038351,   0.085720679, 1.437642336},
      causal{0,
             0,
             1.880029698,
             -0.470007424,
             0.470007424,
             0.940014849,
             -0.470007424,
             -0.940014849,
             0,
             0,
             0.377540669,
             2.311229666,
             -0.377540669,
             0.188770334,
             0,
             0};
  for (bool isCausal : {false, true}) {
    auto got =
        elements(evaluateOp("attention_gradient", {q, k, v, g, mask}, {{"is_causal", isCausal}, {"scale", 0.5}}));
    const auto &wanted = isCausal ? causal : plain;
    REQUIRE(got.size() == wanted.size());
    for (size_t i = 0; i < got.size(); ++i)
      CHECK(std::abs(got[i] - wanted[i]) < 1e-8);
  }
}

TEST_CASE("packed panels end with zeros, and contract reads them back") {
  std::vector<double> weights;
  for (int i = 0; i < 2 * 3 * 5; ++i)
    weights.push_back(i + 1);
  RefTensor w = reals(weights, {2, 3, 5});
  Outcome packed = evaluateOp("pack", {w}, {{"width", int64_t(4)}});
  REQUIRE(packed.error == "");
  CHECK(packed->shape == Ints{2, 2, 3, 4});
  CHECK(std::vector<double>(packed->reals().begin(), packed->reals().begin() + 16) ==
        std::vector<double>{1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14, 5, 0, 0, 0});

  RefTensor x = reals({1, -2, 3, 0.5, 5, 6, 7, 8, -9, 10, 11, 12}, {2, 2, 3});
  Outcome expected = evaluateOp("matmul", {x, w});
  Outcome got = evaluateOp("contract", {x, *packed}, productAttrs(1, 5));
  REQUIRE(got.error == "");
  CHECK(difference(*got, *expected) == "");
}

TEST_CASE("contract over windows is a channels-last convolution") {
  std::vector<double> xs, ws;
  for (int i = 0; i < 2 * 7 * 6 * 3; ++i)
    xs.push_back((i * 37 % 19) - 9);
  for (int i = 0; i < 3 * 2 * 3 * 5; ++i)
    ws.push_back((i * 53 % 23) - 11);
  RefTensor x = reals(xs, {2, 7, 6, 3}), w = reals(ws, {3, 2, 3, 5}), flat = reals(ws, {18, 5});
  Outcome conv =
      evaluateOp("conv", {x, w}, {{"strides", Ints{2, 1}}, {"dilations", Ints{1, 3}}, {"layout", std::string("nhwc")}});
  Outcome packed = evaluateOp("pack", {flat}, {{"width", int64_t(8)}});
  REQUIRE(conv.error + packed.error == "");
  Outcome got = evaluateOp("contract", {x, *packed},
                           {{"batch", int64_t(0)},
                            {"columns", Shape{5}},
                            {"kernel", Ints{1, 3, 2}},
                            {"strides", Ints{1, 2, 1}},
                            {"dilations", Ints{1, 1, 3}}});
  REQUIRE(got.error == "");
  CHECK(difference(*got, *conv) == "");

  // Negative padding at an end: as if the last rows and columns were not there.
  Outcome part = evaluateOp("slice", {x}, {{"starts", Shape{0, 0, 0, 0}}, {"stops", Shape{2, 5, 5, 3}}});
  REQUIRE(part.error == "");
  conv = evaluateOp("conv", {*part, w},
                    {{"strides", Ints{2, 1}},
                     {"dilations", Ints{1, 3}},
                     {"padding", Ints{1, 2, 0, 0}},
                     {"layout", std::string("nhwc")}});
  got = evaluateOp("contract", {x, *packed},
                   {{"batch", int64_t(0)},
                    {"columns", Shape{5}},
                    {"kernel", Ints{1, 3, 2}},
                    {"strides", Ints{1, 2, 1}},
                    {"dilations", Ints{1, 1, 3}},
                    {"padding", Ints{0, 1, 2, 0, -2, -1}}});
  REQUIRE(got.error + conv.error == "");
  CHECK(difference(*got, *conv) == "");
}

TEST_CASE("bf16_terms add up to the matrix, and contract takes those of the right side") {
  std::vector<double> xs, ws;
  for (int i = 0; i < 3 * 35; ++i)
    xs.push_back(double(float(std::sin(i) * std::exp(i % 7))));
  for (int i = 0; i < 35 * 33; ++i)
    ws.push_back(double(float(std::cos(i))));
  xs[2 * 35 + 4] = 1e-20; // has no bf16 terms
  RefTensor x = reals(xs, {3, 35}), w = reals(ws, {35, 33});
  Outcome terms = evaluateOp("bf16_terms", {x});
  REQUIRE(terms.error == "");
  REQUIRE(terms->shape == Ints{2, 2, 3, 16, 32});
  auto term = [&](int64_t row, int64_t k, int64_t number) {
    return terms->reals()[size_t(((k / 32 * 3 + number) * 16 + row) * 32 + k % 16 * 2 + k % 32 / 16)];
  };
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t k = 0; k < 35; ++k) {
      double whole = xs[size_t(row * 35 + k)], sum = term(row, k, 0) + term(row, k, 1) + term(row, k, 2);
      CHECK((row == 2 && k == 4 ? std::isnan(sum) : sum == whole));
      CHECK((row == 2 && k == 4) | (std::fabs(term(row, k, 0) - whole) <= std::fabs(whole) / 256));
    }
  CHECK(term(0, 1, 0) != 0);
  CHECK(terms->reals()[size_t((3 * 16 + 1) * 32 + 6)] == 0); // beyond step 35

  // The right operand, packed into panels by hand.
  RefTensor right = RefTensor::zeros(bf16, {2, 2, 3, 2, 16, 32});
  Outcome columns = evaluateOp("transpose", {w}, {{"perm", Ints{1, 0}}});
  Outcome turned = evaluateOp("bf16_terms", {*columns}); // one row per column
  REQUIRE(turned->shape == Ints{4, 2, 3, 16, 32});
  for (int64_t n = 0; n < 33; ++n)
    for (int64_t k = 0; k < 35; ++k)
      for (int64_t number = 0; number < 3; ++number) {
        size_t from = size_t((((n / 16 * 2 + k / 32) * 3 + number) * 16 + n % 16) * 32 + k % 16 * 2 + k % 32 / 16);
        size_t to = size_t(((((n / 32 * 2 + k / 32) * 3 + number) * 2 + n % 32 / 16) * 16 + k % 16) * 32 + n % 16 * 2 +
                           k % 32 / 16);
        right.reals()[to] = turned->reals()[from];
      }
  Outcome got = evaluateOp("contract", {&x, &right, nullptr, &*terms}, productAttrs(0, 33));
  REQUIRE(got.error == "");
  CHECK(difference(*got, *evaluateOp("matmul", {x, w})) == "");
}

TEST_CASE("contract takes pairs of bf16 rows") {
  for (int64_t depth : {6, 7}) {
    std::vector<double> xs, ws;
    for (int64_t i = 0; i < 3 * depth; ++i)
      xs.push_back(ir::roundTo(bf16, std::sin(double(i))));
    for (int64_t i = 0; i < depth * 5; ++i)
      ws.push_back(ir::roundTo(bf16, std::cos(double(i)) * 3));
    RefTensor x = RefTensor::zeros(bf16, {3, depth}), w = RefTensor::zeros(bf16, {depth, 5});
    x.reals() = xs;
    w.reals() = ws;
    Outcome pairs = evaluateOp("bf16_pairs", {w}, {{"axis", int64_t(2)}});
    REQUIRE(pairs.error == "");
    REQUIRE(pairs->shape == Ints{(depth + 1) / 2, 5});
    CHECK(uint32_t(pairs->ints()[5]) ==
          (std::bit_cast<uint32_t>(float(ws[10])) >> 16 | std::bit_cast<uint32_t>(float(ws[15]))));
    Outcome turned = evaluateOp("transpose", {w}, {{"perm", Ints{1, 0}}});
    Outcome inRows = evaluateOp("bf16_pairs", {*turned}, {{"axis", int64_t(1)}});
    REQUIRE(inRows.error == "");
    CHECK(difference(*evaluateOp("transpose", {*inRows}, {{"perm", Ints{1, 0}}}), *pairs) == "");
    Outcome panels = evaluateOp("pack", {*pairs}, {{"width", int64_t(4)}});
    Outcome got = evaluateOp("contract", {&x, &*panels, nullptr, nullptr}, productAttrs(0, 5));
    REQUIRE(got.error == "");
    CHECK(difference(*got, *evaluateOp("matmul", {x, w})) == "");
  }
}

TEST_CASE("windows: NaN wins, padding never does, integers work") {
  RefTensor x = integers({-5, -7, -3, -9}, {1, 1, 4}, i8);
  CHECK(ints(evaluateOp("max_pool", {x}, {{"kernel", Ints{3}}, {"strides", Ints{2}}, {"padding", Ints{1}}})) ==
        Ints{-5, -3});
}

TEST_CASE("empty tensors pass through every kind of op") {
  RefTensor none = RefTensor::zeros(f32, {0, 3});
  for (const char *op : {"exp", "softmax", "transpose", "reduce_sum", "relu", "argmax"}) {
    INFO(op);
    CHECK(evaluateOp(op, {none}).error == "");
  }
  CHECK(evaluateOp("layer_norm", {&none, nullptr, nullptr}).error == "");
  CHECK(evaluateOp("matmul", {none, RefTensor::zeros(f32, {3, 2})})->shape == Ints{0, 2});
}
