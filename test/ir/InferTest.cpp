// Inferred result types: elementwise, reductions, shapes, indexing, products, normalisation. Expected values are
// PyTorch's.
#include "test/ir/Harness.h"
#include <catch2/catch.hpp>
#include <climits>

using namespace burin;
using namespace burin::test;
using Catch::Matchers::Contains;

static const Dim b("b"), n("n");

TEST_CASE("elementwise ops broadcast and promote") {
  CHECK(typeOf("add", {t({2, 3}), t({3})}) == "f32[2, 3]");
  CHECK(typeOf("add", {t({b, 1}), t({1, n})}) == "f32[b, n]");
  CHECK(typeOf("add", {t({2}, i32), t({2}, f16)}) == "f16[2]");
  CHECK(typeOf("div", {t({2}, i32), t({2}, i64)}) == "f32[2]");
  CHECK(typeOf("eq", {t({2}, i32), t({2})}) == "bool[2]");
  CHECK(typeOf("sin", {t({2}, i64)}) == "f32[2]");
  CHECK(typeOf("logical_not", {t({2})}) == "bool[2]");
  CHECK(typeOf("where", {t({2, 1}, boolean), t({3}), t({}, f64)}) == "f64[2, 3]");
  CHECK(typeOf("clamp", {t({4}, i32), t({}, i32), t({}, i64)}) == "i64[4]");
  CHECK(typeOf("cast", {t({b}, i32)}, {{"dtype", bf16}}) == "bf16[b]");
  CHECK_THAT(typeOf("add", {t({2, 3}), t({2})}), Contains("x f32[2, 3] and y f32[2] do not broadcast"));
  CHECK_THAT(typeOf("add", {t({b}), t({n})}), Contains("do not broadcast"));
  CHECK_THAT(typeOf("add", {t({b}), t({4})}), Contains("do not broadcast"));
  CHECK_THAT(typeOf("add", {t({2}, boolean), t({2}, boolean)}), Contains("cast bool"));
  CHECK_THAT(typeOf("bitwise_and", {t({2}), t({2}, i32)}), Contains("cast to an integer type"));
  CHECK_THAT(typeOf("where", {t({2}), t({2}), t({2})}), Contains("must be bool"));
}

TEST_CASE("strict calls take only what the frontend records") {
  auto strict = [](const char *op, std::vector<std::optional<TensorSpec>> operands, const Attrs &attrs = {}) {
    return infer(op, std::move(operands), attrs, true).str();
  };
  CHECK_THAT(strict("add", {t({2, 3}), t({3})}), Contains("use broadcast_to"));
  CHECK_THAT(strict("add", {t({2}), t({2}, f16)}), Contains("must both be f32; cast them"));
  CHECK_THAT(strict("sin", {t({2}, i32)}), Contains("cast it to f32"));
  CHECK_THAT(strict("softmax", {t({2, 3})}), Contains("axis = 1"));
  CHECK_THAT(strict("reduce_sum", {t({2, 3})}), Contains("axes = [0, 1]"));
  CHECK_THAT(strict("reduce_sum", {t({2, 3})}, {{"axes", ints({1, 0})}}), Contains("axes = [0, 1]"));
  CHECK_THAT(strict("transpose", {t({2, 3})}), Contains("perm = [1, 0]"));
  CHECK_THAT(strict("reshape", {t({6})}, {{"shape", shape({-1, 2})}}), Contains("negative"));
  CHECK_THAT(strict("matmul", {t({2, 3}), t({5, 3, 4})}), Contains("broadcast_to"));
  CHECK_THAT(strict("slice", {t({4})}, {{"starts", shape({-1})}, {"stops", shape({4})}, {"steps", ints({1})}}),
             Contains("0 <= start <= stop <= 4"));
  CHECK_THAT(strict("slice", {t({b})}, {{"starts", shape({0})}, {"stops", shape({b + 1})}, {"steps", ints({1})}}),
             Contains("0 <= start <= stop <= b"));
}

TEST_CASE("reductions") {
  CHECK(typeOf("reduce_sum", {t({2, 3, 4})}) == "f32[]");
  CHECK(typeOf("reduce_sum", {t({2, b, 4})}, {{"axes", ints({-1, 0})}}) == "f32[b]");
  CHECK(typeOf("reduce_sum", {t({2, 3})}, {{"axes", ints({1})}, {"keepdims", true}}) == "f32[2, 1]");
  CHECK(typeOf("reduce_sum", {t({2}, i8)}) == "i64[]");
  CHECK(typeOf("reduce_prod", {t({2}, boolean)}) == "i64[]");
  CHECK(typeOf("reduce_max", {t({2}, i8)}) == "i8[]");
  CHECK(typeOf("reduce_mean", {t({2}, i8)}) == "f32[]");
  CHECK(typeOf("reduce_any", {t({2, 2})}, {{"axes", ints({0})}}) == "bool[2]");
  CHECK(typeOf("reduce_sum", {t({})}) == "f32[]");
  CHECK(typeOf("argmax", {t({2, b})}) == "i64[2]");
  CHECK(typeOf("argmin", {t({2, 5})}, {{"axis", integer(0)}, {"keepdims", true}}) == "i64[1, 5]");
  CHECK(typeOf("cumsum", {t({2, 5}, i32)}, {{"axis", integer(-1)}}) == "i64[2, 5]");
  CHECK_THAT(typeOf("reduce_sum", {t({2})}, {{"axes", ints({1})}}), Contains("axes 1 is out of range"));
  CHECK_THAT(typeOf("reduce_sum", {t({2, 3})}, {{"axes", ints({1, -1})}}), Contains("twice"));
  CHECK_THAT(typeOf("argmax", {t({2, 0})}), Contains("no elements along axis 1"));
  CHECK_THAT(typeOf("argmax", {t({})}), Contains("no dimensions"));
}

TEST_CASE("reshape, squeeze, unsqueeze") {
  auto reshaped = [](Shape from, Shape to) { return typeOf("reshape", {t(from)}, {{"shape", shape(to)}}); };
  CHECK(reshaped({2, 6}, {3, -1}) == "f32[3, 4]");
  CHECK(reshaped({b, 4, 2}, {-1, 8}) == "f32[b, 8]");
  CHECK(reshaped({b, 4}, {2, -1}) == "f32[2, b*2]");
  CHECK(reshaped({b, n}, {n * b}) == "f32[b*n]");
  CHECK(reshaped({}, {1, -1}) == "f32[1, 1]");
  CHECK(reshaped({0, 3}, {3, 0}) == "f32[3, 0]");
  CHECK_THAT(reshaped({2, 3}, {4}), Contains("has 6 elements, which do not fill the shape [4]"));
  CHECK_THAT(reshaped({b, 3}, {2, -1}), Contains("do not fill"));
  CHECK_THAT(reshaped({2, 3}, {-1, -1}), Contains("more than one -1"));
  CHECK_THAT(reshaped({0}, {0, -1}), Contains("could be anything"));
  CHECK(typeOf("squeeze", {t({1, b, 1})}) == "f32[b]");
  CHECK(typeOf("squeeze", {t({1, 3, 1})}, {{"axes", ints({-1})}}) == "f32[1, 3]");
  CHECK_THAT(typeOf("squeeze", {t({b})}, {{"axes", ints({0})}}), Contains("its size is b, not 1"));
  CHECK(typeOf("unsqueeze", {t({2, 3})}, {{"axes", ints({-1, 0})}}) == "f32[1, 2, 3, 1]");
  CHECK_THAT(typeOf("unsqueeze", {t({2})}, {{"axes", ints({5})}}), Contains("out of range"));
}

TEST_CASE("transpose, broadcast_to, flip, tile") {
  CHECK(typeOf("transpose", {t({2, b, 4})}) == "f32[4, b, 2]");
  CHECK(typeOf("transpose", {t({2, 3, 4})}, {{"perm", ints({0, -1, 1})}}) == "f32[2, 4, 3]");
  CHECK_THAT(typeOf("transpose", {t({2, 3})}, {{"perm", ints({0, 0})}}), Contains("twice"));
  CHECK_THAT(typeOf("transpose", {t({2, 3})}, {{"perm", ints({0})}}), Contains("each of the 2 dimensions"));
  CHECK(typeOf("broadcast_to", {t({3, 1})}, {{"shape", shape({b, -1, 4})}}) == "f32[b, 3, 4]");
  CHECK_THAT(typeOf("broadcast_to", {t({3})}, {{"shape", shape({b})}}), Contains("does not broadcast to [b]"));
  CHECK_THAT(typeOf("broadcast_to", {t({3})}, {{"shape", shape({})}}), Contains("does not broadcast"));
  CHECK(typeOf("flip", {t({2, 3})}, {{"axes", ints({-1})}}) == "f32[2, 3]");
  CHECK(typeOf("tile", {t({b, 3})}, {{"repeats", ints({2})}}) == "f32[b, 6]");
  CHECK_THAT(typeOf("tile", {t({3})}, {{"repeats", ints({2, 2})}}), Contains("unsqueeze"));
}

TEST_CASE("slices follow Python") {
  auto sliced = [](Shape from, Shape starts, Shape stops, std::vector<int64_t> steps) {
    return typeOf("slice", {t(from)}, {{"starts", shape(starts)}, {"stops", shape(stops)}, {"steps", ints(steps)}});
  };
  CHECK(sliced({10}, {2}, {8}, {3}) == "f32[2]");
  CHECK(sliced({10}, {-3}, {INT64_MAX}, {1}) == "f32[3]");
  CHECK(sliced({10}, {-100}, {-1}, {1}) == "f32[9]");
  CHECK(sliced({10}, {7}, {3}, {1}) == "f32[0]");
  CHECK(sliced({b, 4}, {1}, {INT64_MAX}, {1}) == "f32[b - min(1, b), 4]");
  CHECK(sliced({b}, {0}, {b}, {2}) == "f32[floordiv(b + 1, 2)]");
  CHECK(sliced({b}, {0}, {10}, {1}) == "f32[min(10, b)]");
  CHECK(sliced({b + 3}, {-3}, {INT64_MAX}, {1}) == "f32[3]");
  CHECK(sliced({b * 2}, {b}, {b * 2}, {1}) == "f32[b]");
  CHECK(sliced({b - 2}, {1}, {INT64_MAX}, {1}) == "f32[b - min(1, b - 2) - 2]");
  CHECK(sliced({INT64_MAX}, {INT64_MIN}, {INT64_MIN}, {1}) == "f32[0]");
  CHECK_THAT(sliced({10}, {0}, {5}, {0}), Contains("must be positive"));
  CHECK_THAT(sliced({10}, {0, 0}, {5, 5}, {1, 1}), Contains("one entry for each dimension"));
}

TEST_CASE("concat, stack, split, pad") {
  CHECK(typeOf("concat", {t({b, 2}), t({3, 2}), t({0, 2})}) == "f32[b + 3, 2]");
  CHECK(typeOf("concat", {t({2, 2}, i32), t({2, 1})}, {{"axis", integer(-1)}}) == "f32[2, 3]");
  CHECK_THAT(typeOf("concat", {t({2, 2}), t({2, 3}), t({3, 2})}),
             Contains("xs[0] f32[2, 2] and xs[1] f32[2, 3] must agree"));
  CHECK_THAT(typeOf("concat", {}), Contains("at least one"));
  CHECK(typeOf("stack", {t({b}), t({b})}, {{"axis", integer(-1)}}) == "f32[b, 2]");
  CHECK_THAT(typeOf("stack", {t({2}), t({3})}), Contains("one shape"));
  CHECK(typeOf("split", {t({7, b})}, {{"sizes", ints({2, -1, 1})}}) == "f32[2, b], f32[4, b], f32[1, b]");
  CHECK_THAT(typeOf("split", {t({7})}, {{"sizes", ints({2, 2})}}), Contains("must add up to 7"));
  CHECK_THAT(typeOf("split", {t({b})}, {{"sizes", ints({-1})}}), Contains("must add up to b"));
  CHECK(typeOf("pad", {t({b, 4})}, {{"low", ints({1, -2})}, {"high", ints({0, 3})}}) == "f32[b + 1, 5]");
  CHECK(typeOf("pad", {t({4})}, {{"low", ints({0})}, {"high", ints({0})}, {"interior", ints({2})}}) == "f32[10]");
  CHECK_THAT(typeOf("pad", {t({4})}, {{"low", ints({-3})}, {"high", ints({-3})}}), Contains("crops more"));
  CHECK_THAT(typeOf("pad", {t({3})}, {{"low", ints({3})}, {"high", ints({0})}, {"mode", string("reflect")}}),
             Contains("too small"));
  CHECK_THAT(typeOf("pad", {t({3})}, {{"low", ints({3})}, {"high", ints({0})}, {"mode", string("wrap")}}),
             Contains("\"reflect\""));
}

TEST_CASE("indexing and creation") {
  CHECK(typeOf("take", {t({10, 4}), t({b, 2}, i64)}) == "f32[b, 2, 4]");
  CHECK(typeOf("take", {t({10, 4}), t({}, u8)}, {{"axis", integer(-1)}}) == "f32[10]");
  CHECK_THAT(typeOf("take", {t({10}), t({2})}), Contains("must be integers"));
  CHECK_THAT(typeOf("take", {t({0, 2}), t({1}, i32)}), Contains("no elements along axis 0"));
  CHECK(typeOf("gather", {t({5, 4}), t({7, 3}, i64)}) == "f32[7, 3]");
  CHECK_THAT(typeOf("gather", {t({5, 4}), t({7, 5}, i64)}), Contains("must not be larger"));
  CHECK(typeOf("scatter", {t({5, b}), t({2, b}, i64), t({2, b}, i32)}) == "f32[5, b]");
  CHECK_THAT(typeOf("scatter", {t({5}, i32), t({2}, i64), t({2})}), Contains("does not fit into"));
  CHECK_THAT(typeOf("scatter", {t({5}), t({2}, i64), t({3})}), Contains("one shape"));
  CHECK(typeOf("iota", {}, {{"shape", shape({b, 3})}, {"dtype", i32}, {"axis", integer(-1)}}) == "i32[b, 3]");
  CHECK(typeOf("full", {}, {{"shape", shape({2})}, {"value", 1.5}, {"dtype", f16}}) == "f16[2]");
  CHECK_THAT(typeOf("full", {}, {{"shape", shape({-2})}}), Contains("negative size"));
  CHECK(typeOf("random_normal", {}, {{"shape", shape({2})}, {"seed", integer(1)}, {"dtype", f64}}) == "f64[2]");
  CHECK_THAT(typeOf("random_uniform", {}, {{"shape", shape({2})}, {"dtype", i32}}), Contains("floats, not i32"));
  CHECK_THAT(typeOf("random_uniform", {t({1}, i64)}, {{"shape", shape({2})}}), Contains("must be a single key, i64[]"));
  Attrs range = {{"shape", shape({2})}, {"low", integer(3)}, {"high", integer(5)}, {"dtype", u8}};
  CHECK(typeOf("random_integers", {t({}, i64)}, range) == "u8[2]");
  range[2].second = integer(3);
  CHECK_THAT(typeOf("random_integers", {}, range), Contains("no integer in [3, 3)"));
  CHECK(typeOf("random_key", {t({2}, i64)}) == "i64[]");
  CHECK_THAT(typeOf("random_key", {t({2}, i32)}), Contains("the state of a generator, i64[2]"));
  CHECK_THAT(typeOf("bernoulli", {t({2}), t({})}), Contains("must be a single key"));
}

TEST_CASE("products") {
  CHECK(typeOf("matmul", {t({2, 3}), t({3, 4})}) == "f32[2, 4]");
  CHECK(typeOf("matmul", {t({3}), t({3})}) == "f32[]");
  CHECK(typeOf("matmul", {t({3}), t({b, 3, 4})}) == "f32[b, 4]");
  CHECK(typeOf("matmul", {t({b, 2, 3}), t({3})}) == "f32[b, 2]");
  CHECK(typeOf("matmul", {t({5, 1, 2, 3}), t({b, 3, 4})}) == "f32[5, b, 2, 4]");
  CHECK(typeOf("matmul", {t({2, 3}, f16), t({3, 4})}) == "f32[2, 4]");
  CHECK_THAT(typeOf("matmul", {t({4, 8}), t({16, 8})}),
             Contains("lhs f32[4, 8] and rhs f32[16, 8]") &&
                 Contains("lhs has 8 columns but rhs has 16 rows; transpose rhs"));
  CHECK_THAT(typeOf("matmul", {t({}), t({3})}), Contains("at least 1 dimensions"));
  CHECK_THAT(typeOf("matmul", {t({2, 2, 3}), t({5, 3, 4})}), Contains("leading dimensions"));
  Attrs dot = {
      {"lhs_batch", ints({0})}, {"rhs_batch", ints({1})}, {"lhs_contract", ints({2})}, {"rhs_contract", ints({0})}};
  CHECK(typeOf("dot_general", {t({b, 5, 3}), t({3, b, 7})}, dot) == "f32[b, 5, 7]");
  CHECK_THAT(typeOf("dot_general", {t({b, 5, 4}), t({3, b, 7})}, dot),
             Contains("differ in the paired dimensions 2 and 0"));
  CHECK(typeOf("pack", {t({2, 5, 33})}, {{"width", integer(16)}}) == "f32[2, 3, 5, 16]");
  CHECK(typeOf("bf16_pairs", {t({2, 33, 65}, bf16)}, {{"axis", integer(2)}}) == "i32[2, 17, 65]");
  CHECK(typeOf("bf16_pairs", {t({2, 33, 65}, bf16)}, {{"axis", integer(1)}}) == "i32[2, 33, 33]");
  CHECK(typeOf("bf16_terms", {t({33, 65})}) == "bf16[4, 3, 3, 16, 32]");
  Attrs contract = {{"batch", integer(1)},
                    {"columns", shape({33})},
                    {"kernel", ints({3})},
                    {"strides", ints({2})},
                    {"dilations", ints({1})}};
  CHECK(typeOf("contract", {t({2, b, 5}), t({2, 3, 15, 16})}, contract) == "f32[2, floordiv(b + 1, 2) - 1, 33]");
  CHECK_THAT(typeOf("contract", {t({2, 9, 5}), t({2, 3, 14, 16})}, contract), Contains("must be packed from [15, 33]"));
  Attrs product = {{"batch", integer(0)},
                   {"columns", shape({33})},
                   {"kernel", ints({1})},
                   {"strides", ints({1})},
                   {"dilations", ints({1})}};
  TensorSpec panels = t({2, 3, 3, 2, 16, 32}, bf16), terms = t({2, 3, 3, 16, 32}, bf16);
  CHECK(typeOf("contract", {t({3, 65}), panels, std::nullopt, terms}, product) == "f32[3, 33]");
  CHECK(typeOf("contract", {t({2, 16, 65}), panels, std::nullopt, terms}, product) == "f32[2, 16, 33]");
  CHECK_THAT(typeOf("contract", {t({33, 65}), panels, std::nullopt, terms}, product),
             Contains("must be [4, 3, 3, 16, 32] and [2, 3, 3, 2, 16, 32]"));
  CHECK_THAT(typeOf("contract", {t({3, 65}), t({2, 65, 32}), std::nullopt, terms}, product),
             Contains("a matrix of f32 and terms of bf16"));
}

TEST_CASE("normalisation and attention") {
  CHECK(typeOf("softmax", {t({2, b})}) == "f32[2, b]");
  CHECK(typeOf("softmax", {t({2}, i32)}) == "f32[2]");
  CHECK(typeOf("layer_norm", {t({2, b, 8}), t({8}), std::nullopt}) == "f32[2, b, 8]");
  CHECK(typeOf("layer_norm", {t({2, 4, 8}, f16), t({4, 8}), t({4, 8})}, {{"axis", integer(1)}}) == "f32[2, 4, 8]");
  CHECK_THAT(typeOf("layer_norm", {t({2, 8}), t({2}), std::nullopt}), Contains("weight f32[2] must be [8]"));
  CHECK_THAT(typeOf("rms_norm", {t({2, 8}, i32), std::nullopt}), Contains("floating point"));
  CHECK(typeOf("batch_norm", {t({b, 3, 4}), t({3}), t({3}), t({3}), t({3})}) == "f32[b, 3, 4]");
  CHECK_THAT(typeOf("batch_norm", {t({b, 3, 4}), t({3}), t({3}), t({4}), t({3})}), Contains("one number per channel"));
  CHECK(typeOf("group_norm", {t({b, 6, 4}), t({6}), t({6})}, {{"groups", integer(3)}}) == "f32[b, 6, 4]");
  CHECK_THAT(typeOf("group_norm", {t({b, 6, 4})}, {{"groups", integer(4)}}),
             Contains("4 groups do not divide the 6 channels"));
  CHECK(typeOf("instance_norm", {t({b, 6, 4})}) == "f32[b, 6, 4]");
  const char *attention = "scaled_dot_product_attention";
  CHECK(typeOf(attention, {t({b, 8, n, 64}), t({b, 8, 10, 64}), t({b, 8, 10, 32})}) == "f32[b, 8, n, 32]");
  CHECK(typeOf(attention, {t({b, 8, n, 64}), t({1, 10, 64}), t({10, 32}), t({n, 10}, boolean)}) == "f32[b, 8, n, 32]");
  CHECK_THAT(typeOf(attention, {t({4, 8}), t({5, 9}), t({5, 8})}), Contains("agree in the last dimension"));
  CHECK_THAT(typeOf(attention, {t({4, 8}), t({5, 8}), t({5, 8}), t({4, 6})}),
             Contains("[4, 5], the shape of the scores"));
  CHECK_THAT(typeOf(attention, {t({4, 8}), t({5, 8}), t({5, 8}), t({4, 5}, i32)}), Contains("must be bool or f32"));
  const char *gradient = "attention_gradient";
  CHECK(typeOf(gradient, {t({b, n, 8}), t({b, 5, 8}), t({b, 5, 8}), t({b, n, 8}), t({n, 5}, boolean)}) ==
        "f32[b, n + 10, 8]");
  CHECK_THAT(typeOf(gradient, {t({b, n, 8}), t({b, 5, 8}), t({b, 5, 9}), t({b, n, 9})}),
             Contains("value f32[b, 5, 9]"));
}
