// Inferred sizes of convolutions and pooling.
#include "test/ir/Harness.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using Catch::Matchers::Contains;

static const Dim b("b"), h("h");

TEST_CASE("convolution sizes") {
  auto conv = [](Shape x, Shape weight, Attrs attrs = {}) {
    return typeOf("conv", {t(x), t(weight), std::nullopt}, attrs);
  };
  CHECK(conv({1, 3, 32, 32}, {8, 3, 3, 3}) == "f32[1, 8, 30, 30]");
  CHECK(conv({b, 3, 32, 32}, {8, 3, 3, 3}, {{"padding", ints({1})}, {"strides", ints({2})}}) == "f32[b, 8, 16, 16]");
  CHECK(conv({1, 3, 8, 9}, {8, 3, 3, 3}, {{"padding", ints({0, 1, 2, 3})}}) == "f32[1, 8, 8, 11]");
  CHECK(conv({1, 3, 8, 9}, {8, 3, 3, 3}, {{"dilations", ints({2, 3})}}) == "f32[1, 8, 4, 3]");
  CHECK(conv({1, 8, 5}, {8, 1, 3}, {{"groups", integer(8)}}) == "f32[1, 8, 3]");
  CHECK(conv({1, 3, h, h}, {8, 3, 3, 3}, {{"padding", ints({1})}, {"strides", ints({2})}}) ==
        "f32[1, 8, floordiv(h + 1, 2), floordiv(h + 1, 2)]");
  CHECK(conv({1, 4, 4, 4, 3}, {2, 2, 2, 3, 5}, {{"layout", string("nhwc")}}) == "f32[1, 3, 3, 3, 5]");
  CHECK(conv({0, 3, 8, 8}, {8, 3, 3, 3}) == "f32[0, 8, 6, 6]");
  CHECK_THAT(conv({1, 3, 2, 2}, {8, 3, 3, 3}), Contains("a window of 3 does not fit spatial dimension 0"));
  CHECK_THAT(conv({1, 4, 8, 8}, {8, 3, 3, 3}), Contains("has 4 channels but weight [8, 3, 3, 3] takes 3"));
  CHECK_THAT(conv({1, 4, 8, 8}, {9, 2, 3, 3}, {{"groups", integer(2)}}),
             Contains("2 groups do not divide the 9 output channels"));
  CHECK_THAT(conv({3, 8, 8}, {8, 3, 3, 3}), Contains("as many dimensions"));
  CHECK_THAT(conv({8, 8}, {3, 3}), Contains("unsqueeze a batch dimension"));
  CHECK_THAT(conv({1, 3, 8, 8}, {8, 3, h, 3}), Contains("kernel of fixed size"));
  CHECK_THAT(conv({1, 3, 8, 8}, {8, 3, 3, 3}, {{"strides", ints({0})}}), Contains("must not go below 1"));
  CHECK_THAT(conv({1, 3, 8, 8}, {8, 3, 3, 3}, {{"padding", ints({1, 2, 3})}}),
             Contains("4: all starts, then all ends"));
  CHECK_THAT(typeOf("conv", {t({1, 3, 8, 8}), t({8, 3, 3, 3}), t({3})}), Contains("bias f32[3] must be [8]"));
}

TEST_CASE("transposed convolution sizes") {
  auto conv = [](Shape x, Shape weight, Attrs attrs = {}) {
    return typeOf("conv_transpose", {t(x), t(weight), std::nullopt}, attrs);
  };
  CHECK(conv({1, 8, 4, 4}, {8, 3, 3, 3}) == "f32[1, 3, 6, 6]");
  CHECK(conv({1, 8, 4, h}, {8, 3, 3, 3},
             {{"strides", ints({2})}, {"padding", ints({1})}, {"output_padding", ints({1})}}) == "f32[1, 3, 8, h*2]");
  CHECK(conv({1, 8, 4}, {8, 3, 3}, {{"groups", integer(4)}, {"dilations", ints({2})}}) == "f32[1, 12, 8]");
  CHECK_THAT(conv({1, 8, 4}, {6, 3, 3}), Contains("has 8 channels but weight [6, 3, 3] takes 6"));
  CHECK_THAT(conv({1, 8, 4}, {8, 3, 3}, {{"output_padding", ints({1})}}),
             Contains("output_padding 1 must be below the stride 1"));
  CHECK_THAT(conv({1, 8, 1}, {8, 3, 3}, {{"padding", ints({2})}}), Contains("would have the size -1"));
}

TEST_CASE("pooling sizes") {
  auto pool = [](Shape x, Attrs attrs) { return typeOf("max_pool", {t(x)}, attrs); };
  CHECK(pool({1, 3, 8, 8}, {{"kernel", ints({2, 2})}}) == "f32[1, 3, 4, 4]");
  CHECK(pool({1, 3, 7, 7}, {{"kernel", ints({2})}}) == "f32[1, 3, 3, 3]");
  CHECK(pool({1, 3, 7, 7}, {{"kernel", ints({2})}, {"ceil_mode", true}}) == "f32[1, 3, 4, 4]");
  // The last window would start in the padding at the end.
  CHECK(pool({1, 1, 4}, {{"kernel", ints({1})}, {"strides", ints({3})}, {"ceil_mode", true}}) == "f32[1, 1, 2]");
  CHECK(pool({1, 1, 3}, {{"kernel", ints({2})}, {"strides", ints({4})}, {"padding", ints({1})}, {"ceil_mode", true}}) ==
        "f32[1, 1, 1]");
  CHECK(pool({b, 3, h, 8}, {{"kernel", ints({3})}, {"strides", ints({2})}, {"padding", ints({1})}}) ==
        "f32[b, 3, floordiv(h + 1, 2), 4]");
  CHECK_THAT(pool({1, 3, 8, 8}, {{"kernel", ints({2})}, {"padding", ints({2})}}), Contains("padding only"));
  CHECK_THAT(typeOf("avg_pool", {t({1, 3, 8}, i32)}, {{"kernel", ints({2})}}), Contains("cast it to f32"));
  CHECK(typeOf("adaptive_avg_pool", {t({b, 3, h, 7})}, {{"output_size", ints({2, 3})}}) == "f32[b, 3, 2, 3]");
  CHECK_THAT(typeOf("adaptive_avg_pool", {t({1, 3, 0})}, {{"output_size", ints({2})}}), Contains("no elements"));
}
