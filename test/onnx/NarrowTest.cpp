// Integers of 4, 16, 32 and 64 bits that burin represents by wider ones. Expected values are ONNX Runtime's.
#include "test/onnx/Load.h"

using namespace burin::test;

namespace {

constexpr OnnxType kUint32 = OnnxType(12), kUint64 = OnnxType(13), kUint4 = OnnxType(21), kInt4 = OnnxType(22);

NodeText castTo(const Bytes &x, OnnxType type, const Bytes &y) {
  return {"Cast", {x}, {y}, {attribute("to", int64_t(type))}};
}
/// A tensor of 4-bit numbers, given as pairs.
Bytes pairs(const Bytes &name, OnnxType type, const std::vector<int64_t> &dims, const std::vector<uint8_t> &bytes) {
  return tensorProto(name, type, dims, bytes);
}
std::vector<int64_t> integers(const Tensor &x) { return x.to_vector<int64_t>(); }

} // namespace

TEST_CASE("Casts to unsigned integers of 16 and 32 bits keep the last bits") {
  for (auto [type, want] :
       {std::pair(kUint16, std::vector<int64_t>{65535, 1, 4464, 65535}), {kUint32, {4294967295, 1, 70000, 65535}}}) {
    Graph graph = loadModel({.nodes = {castTo("x", type, "u"), castTo("u", kInt64, "y")},
                             .inputs = {valueInfo("x", kInt64, {"n"})},
                             .outputs = {valueInfo("y", kInt64, {"n"})}})
                      .graph;
    CHECK(integers(graph.run({tensor({-1, (int64_t(1) << 32) + 1, 70000, 65535})})[0]) == want);
  }
}

TEST_CASE("Arithmetic of bits stays in the range of unsigned integers") {
  auto result = [](NodeText node, int64_t x) {
    Graph graph = loadModel({.nodes = {castTo("x", kUint32, "u"), std::move(node), castTo("v", kInt64, "y")},
                             .inputs = {valueInfo("x", kInt64, {})},
                             .outputs = {valueInfo("y", kInt64, {})},
                             .initializers = {tensorProto("twenty", kUint32, {}, std::vector<uint32_t>{20})}})
                      .graph;
    return graph.run({tensor(x)})[0].item<int64_t>();
  };
  CHECK(result({"BitShift", {"u", "twenty"}, {"v"}, {attribute("direction", "LEFT")}}, 77777) == 4245684224);
  CHECK(result({"BitShift", {"u", "twenty"}, {"v"}, {attribute("direction", "RIGHT")}}, 4244635648) == 4048);
  CHECK(result({"BitwiseNot", {"u"}, {"v"}}, 5) == 4294967290);
  CHECK(result({"Mod", {"u", "twenty"}, {"v"}}, 4294967290) == 10);
  CHECK(result({"Max", {"u", "twenty"}, {"v"}}, 4294967290) == 4294967290);
}

TEST_CASE("Weights of 64 unsigned bits are gathered") {
  Graph graph =
      loadModel({.nodes = {{"Gather", {"t", "i"}, {"g"}},
                           {"Concat", {"g", "g"}, {"c"}, {attribute("axis", int64_t(0))}},
                           castTo("c", kInt64, "y")},
                 .inputs = {valueInfo("i", kInt64, {"n"})},
                 .outputs = {valueInfo("y", kInt64, {"m"})},
                 .initializers = {tensorProto("t", kUint64, {3}, std::vector<uint64_t>{1, uint64_t(1) << 40, 7})}})
          .graph;
  CHECK(integers(graph.run({tensor({1, 2})})[0]) == std::vector<int64_t>{1ll << 40, 7, 1ll << 40, 7});
}

TEST_CASE("Quantisation to 16 and 4 bits saturates at the range of the type") {
  struct Case {
    Bytes zero;
    std::vector<float> want; // of -100, -0.26, 0, 0.5, 100 with the scale 0.5
  };
  for (const Case &c : {Case{tensorProto("z", kUint16, {}, std::vector<uint16_t>{100}), {-50, -0.5, 0, 0.5, 100}},
                        Case{pairs("z", kInt4, {}, {1}), {-4.5, -0.5, 0, 0.5, 3}},
                        Case{pairs("z", kUint4, {}, {8}), {-4, -0.5, 0, 0.5, 3.5}}}) {
    Graph graph =
        loadModel(graphOf({{"QuantizeLinear", {"x", "s", "z"}, {"q"}}, {"DequantizeLinear", {"q", "s", "z"}, {"y"}}},
                          {floatInput("x", {"n"})}, {floatTensor("s", {}, {0.5}), c.zero}))
            .graph;
    CHECK(floats(graph.run({tensor({-100, -0.26, 0, 0.5, 100}, f32)})[0]) == c.want);
  }
}

TEST_CASE("Weights of 4 bits are dequantised by blocks") {
  // -6 … 5 as [4, 3], the first of a pair in the low bits; scales of two rows each.
  Bytes weights = pairs("w", kInt4, {4, 3}, {0xba, 0xdc, 0xfe, 0x10, 0x32, 0x54});
  Graph graph =
      loadModel(graphOf({{"DequantizeLinear",
                          {"w", "s"},
                          {"d"},
                          {attribute("axis", int64_t(0)), attribute("block_size", int64_t(2))}},
                         {"MatMul", {"x", "d"}, {"y"}}},
                        {floatInput("x", {"n", "4"})}, {weights, floatTensor("s", {2, 3}, {1, 2, 3, 4, 5, 6})}))
          .graph;
  CHECK(floats(graph.run({tensor({{1, 0, 0, 0}, {0, 0, 0, 1}, {1, 1, 0, 0}}, f32)})[0]) ==
        std::vector<float>{-6, -10, -12, 12, 20, 30, -9, -14, -15});
}

TEST_CASE("Inputs and outputs of types that burin does not have take the wider one, with a warning") {
  ModelText model{.nodes = {{"Identity", {"x"}, {"y"}}},
                  .inputs = {valueInfo("x", kUint16, {"n"})},
                  .outputs = {valueInfo("y", kUint16, {"n"})}};
  Loaded loaded = loadModel(model);
  CHECK(str(loaded.graph.inputs()[0]) == "x: i32[n]");
  CHECK(integers(loaded.graph.run({tensor({65535, 7}, i32)})[0]) == std::vector<int64_t>{65535, 7});
  REQUIRE(loaded.warnings.size() == 1);
  CHECK(contains(loaded.warnings[0], "the input \"x\" is of type UINT16, and takes numbers of type i32"));
}
