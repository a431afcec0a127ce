#include "test/reference/Harness.h"
#include <catch2/catch.hpp>
#include <cstring>

using namespace burin;
using namespace burin::test;
using ir::RefTensor;
using Ints = std::vector<int64_t>;

namespace {

/// Returns distinct elements, all of them representable in the type.
RefTensor sample(DType dtype, Ints shape) {
  RefTensor t = RefTensor::zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i)
    if (isFloat(dtype))
      t.reals()[size_t(i)] = double(i % 200) / 4 - 20;
    else
      t.ints()[size_t(i)] = ir::wrapTo(dtype, isBool(dtype) ? i % 3 : i * 7);
  return t;
}

struct Move {
  const char *op;
  Attrs attrs;
};

/// Every way to move the elements of x [2, 9, 7].
std::vector<Move> moves() {
  auto text = [](const char *s) { return std::string(s); };
  return {{"reshape", {{"shape", Shape{14, 9}}}},
          {"transpose", {{"perm", Ints{2, 0, 1}}}},
          {"transpose", {{"perm", Ints{1, 0, 2}}}},
          {"transpose", {{"perm", Ints{0, 2, 1}}}},
          {"broadcast_to", {{"shape", Shape{3, 2, 9, 7}}}},
          {"unsqueeze", {{"axes", Ints{1}}}},
          {"slice", {{"starts", Shape{0, 1, 2}}, {"stops", Shape{2, 9, 7}}, {"steps", Ints{1, 3, 2}}}},
          {"flip", {{"axes", Ints{0, 2}}}},
          {"split", {{"sizes", Ints{4, 5}}, {"axis", int64_t(1)}}},
          {"tile", {{"repeats", Ints{1, 2, 3}}}},
          {"pad", {{"low", Ints{1, 0, -2}}, {"high", Ints{0, 2, 1}}, {"interior", Ints{1, 0, 0}}, {"value", 1.5}}},
          {"pad", {{"low", Ints{0, 3, 1}}, {"high", Ints{0, 4, 2}}, {"mode", text("reflect")}}},
          {"pad", {{"low", Ints{0, 3, 1}}, {"high", Ints{0, -1, 2}}, {"mode", text("edge")}}},
          {"pack", {{"width", int64_t(4)}}},
          {"pack", {{"width", int64_t(16)}}},
          {"dropout", {}}};
}

} // namespace

TEST_CASE("moves of elements of every width fold to what evaluation gives") {
  for (DType dtype : {f32, f16, bf16, i8, u8, i16, i64, boolean}) {
    RefTensor x = sample(dtype, {2, 9, 7});
    for (const Move &move : moves()) {
      INFO(move.op << " of " << name(dtype));
      Outcome outcome = evaluateOp(move.op, {x}, move.attrs);
      REQUIRE(outcome.error == "");
      std::vector<std::vector<char>> expected;
      for (const RefTensor &result : outcome.results)
        expected.push_back(result.toBytes());
      CHECK(foldedBytes(move.op, {&x}, move.attrs) == expected);
    }
    for (const char *op : {"concat", "stack"}) {
      RefTensor y = sample(dtype, {2, 9, 7});
      CHECK(foldedBytes(op, {&x, &y}, {{"axis", int64_t(1)}}).at(0) ==
            evaluateOp(op, {x, y}, {{"axis", int64_t(1)}})->toBytes());
    }
  }
}

TEST_CASE("moves keep every bit, also those of NaNs") {
  std::vector<char> bits(3 * 5 * 4);
  for (size_t i = 0; i < 15; ++i) {
    uint32_t pattern = 0x7fa00000 + uint32_t(i); // a signalling NaN with its own payload
    std::memcpy(bits.data() + 4 * i, &pattern, 4);
  }
  RefTensor x = RefTensor::zeros(f32, {3, 5});
  std::vector<char> folded = foldedBytes("transpose", {&x}, {}, {bits}).at(0);
  for (size_t row = 0; row < 5; ++row)
    for (size_t column = 0; column < 3; ++column)
      CHECK(std::memcmp(folded.data() + 4 * (row * 3 + column), bits.data() + 4 * (column * 5 + row), 4) == 0);
}

TEST_CASE("long casts fold piece by piece without a seam") {
  RefTensor x = sample(f32, {40001});
  for (DType to : {f16, bf16, f64, i8, boolean})
    CHECK(foldedBytes("cast", {&x}, {{"dtype", to}}).at(0) == evaluateOp("cast", {x}, {{"dtype", to}})->toBytes());
}

TEST_CASE("constants that repeat one element fold like others") {
  RefTensor x = RefTensor::zeros(f32, {2, 3}); // becomes a splat
  CHECK(foldedBytes("add", {&x, &x}).at(0) == std::vector<char>(24, 0));
  CHECK(foldedBytes("transpose", {&x}).at(0) == std::vector<char>(24, 0));
}

TEST_CASE("what must not fold does not") {
  RefTensor x = RefTensor::zeros(f32, {1});
  CHECK(foldedBytes("broadcast_to", {&x}, {{"shape", Shape{1 << 20, 1 << 20}}}).empty());
  CHECK(foldedBytes("broadcast_to", {&x}, {{"shape", Shape{Dim("n")}}}).empty());
  CHECK(foldedBytes("full", {}, {{"shape", Shape{2, Dim("n")}}, {"value", 1.0}, {"dtype", f32}}).empty());
}
