// FLOAT8E4M3FN and FLOAT8E5M2 in models: Cast saturates unless it is told not to; QuantizeLinear and DequantizeLinear.
#include "test/onnx/Load.h"
#include <cmath>
#include <fstream>
#include <sstream>

using namespace burin::test;

namespace {

constexpr OnnxType kTypes[] = {kFloat8E4M3FN, kFloat8E5M2};

/// A model with the input x and the output y.
ModelText modelOf(std::vector<NodeText> nodes, Bytes x, Bytes y, std::vector<Bytes> initializers = {}) {
  return {.nodes = std::move(nodes),
          .inputs = {std::move(x)},
          .outputs = {std::move(y)},
          .initializers = std::move(initializers)};
}
Bytes float8Tensor(const Bytes &name, OnnxType type, const std::vector<uint8_t> &bytes) {
  return tensorProto(name, type, {int64_t(bytes.size())}, bytes);
}

} // namespace

TEST_CASE("Cast to 8-bit floats saturates unless it is told not to") {
  Tensor x = tensor({1.0, 1e6, -1e6, INFINITY, -INFINITY, 0.3, 464.0, 470.0});
  for (OnnxType type : kTypes)
    for (int64_t saturate : {1, 0}) {
      INFO(int(type) << ", saturate " << saturate);
      NodeText cast{"Cast", {"x"}, {"y"}, {attribute("to", int64_t(type)), attribute("saturate", saturate)}};
      Graph graph = loadModel(modelOf({cast}, floatInput("x", {"n"}), valueInfo("y", type, {}))).graph;
      Tensor y = graph.run({x})[0];
      CHECK(y.dtype() == (type == kFloat8E4M3FN ? f8e4m3fn : f8e5m2));
      std::vector<float> values = floats(y);
      const float most = type == kFloat8E4M3FN ? 448 : 57344;
      CHECK(values[0] == 1);
      CHECK(values[5] == 0.3125f);
      CHECK(values[6] == 448);
      for (size_t i = 1; i < 5; ++i) {
        const float sign = i % 2 ? 1.0f : -1.0f;
        if (saturate)
          CHECK(values[i] == sign * most);
        else
          CHECK((type == kFloat8E4M3FN ? std::isnan(values[i]) : values[i] == sign * INFINITY));
      }
      CHECK((saturate || type == kFloat8E5M2 ? values[7] == 448 : std::isnan(values[7])));
      CHECK(std::isnan(floats(graph.run({tensor({double(NAN)})})[0])[0]));
    }
}

TEST_CASE("CastLike takes the type of its second input, and saturates by default") {
  ModelText model = modelOf({{"CastLike", {"x", "like"}, {"y"}}}, floatInput("x", {"2"}),
                            valueInfo("y", kFloat8E5M2, {}), {float8Tensor("like", kFloat8E5M2, {0})});
  CHECK(floats(loadModel(model).graph.run({tensor({1e9, 0.3})})[0]) == std::vector<float>{57344, 0.3125f});
}

TEST_CASE("QuantizeLinear and DequantizeLinear with 8-bit floats") {
  for (OnnxType type : kTypes) {
    ModelText down =
        modelOf({{"QuantizeLinear", {"x", "scale", "zero"}, {"y"}}}, floatInput("x", {"4"}), valueInfo("y", type, {}),
                {floatTensor("scale", {1}, {2}), float8Tensor("zero", type, {0})});
    const float most = type == kFloat8E4M3FN ? 448 : 57344;
    CHECK(floats(loadModel(down).graph.run({tensor({0.6, -3.0, 1e6, 1.0})})[0]) ==
          std::vector<float>{0.3125f, -1.5f, most, 0.5f}); // 0.3 is not rounded to an integer
    // 1, 1.5, -2: the bits of both types
    std::vector<uint8_t> bytes =
        type == kFloat8E4M3FN ? std::vector<uint8_t>{0x38, 0x3c, 0xc0} : std::vector<uint8_t>{0x3c, 0x3e, 0xc0};
    ModelText up =
        modelOf({{"DequantizeLinear", {"w", "scale"}, {"d"}}, {"Add", {"d", "x"}, {"y"}}}, floatInput("x", {"3"}),
                floatInput("y", {}), {floatTensor("scale", {}, {0.25f}), float8Tensor("w", type, bytes)});
    CHECK(floats(loadModel(up).graph.run({zeros({3})})[0]) == std::vector<float>{0.25f, 0.375f, -0.5f});
  }
}

TEST_CASE("8-bit floats that burin does not have are refused by name") {
  ModelText model = modelOf({{"Cast", {"x"}, {"y"}, {attribute("to", int64_t(kFloat8E4M3FNUZ))}}},
                            floatInput("x", {"2"}), valueInfo("y", kFloat8E4M3FNUZ, {}));
  CHECK(contains(messageOf([&] { loadModel(model); }), "FLOAT8E4M3FNUZ, which burin does not have"));
}

TEST_CASE("Exported conversions to 8-bit floats do not saturate") {
  Folder folder;
  auto f = [](const Tensor &x) { return concat({x.to(f8e4m3fn), x.to(f8e4m3fn)}).to(f32); };
  trace(f, {TensorSpec{f32, {3}}}, {"x"}, {"y"}).save(folder / "x.onnx");
  std::vector<float> y = floats(Graph::load(folder / "x.onnx").run({tensor({1.0, 0.3, 1e6})})[0]);
  CHECK(std::vector<float>(y.begin(), y.begin() + 2) == std::vector<float>{1, 0.3125f});
  CHECK(std::isnan(y[2]));
}
