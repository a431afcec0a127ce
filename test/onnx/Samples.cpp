// Writes the models of the command line tests into a folder.
#include "test/onnx/ModelWriter.h"

using namespace burin::test;

/// A float value that does not say how many dimensions it has.
static Bytes withoutShape(const Bytes &name) {
  return Message().add(1, name).add(2, Message().add(1, Message().add(1, int64_t(kFloat))));
}

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  std::string folder = std::string(argv[1]) + "/";
  ModelText{.nodes = {{"Gemm", {"x", "w"}, {"h"}, {}, "fc1"}, {"Relu", {"h"}, {"probs"}, {}, "act"}},
            .inputs = {valueInfo("x", kFloat, {"batch", "2"})},
            .outputs = {valueInfo("probs", kFloat, {"batch", "3"})},
            .initializers = {floatTensor("w", {2, 3}, {1, 2, 3, -4, -5, 6})}}
      .write(folder + "mlp.onnx");
  ModelText{.nodes = {{"Reshape", {"x", "shape"}, {"y"}, {}, "flat"}},
            .inputs = {valueInfo("x", kFloat, {"2", "3"}), valueInfo("shape", kInt64, {"2"})},
            .outputs = {valueInfo("y", kFloat, {"", ""})}}
      .write(folder + "reshape.onnx");
  ModelText{.nodes = {{"Gemm", {"x", "w"}, {"h"}, {}, "fc"}, {"Add", {"h", "b"}, {"y"}, {}, "sum"}},
            .inputs = {withoutShape("x"), withoutShape("b")},
            .outputs = {withoutShape("y")},
            .initializers = {floatTensor("w", {2, 3}, {1, 2, 3, -4, -5, 6})}}
      .write(folder + "shapeless.onnx");
  ModelText{.nodes = {{"ReduceSum", {"x", "axes"}, {"y"}, {}, "sum"}},
            .inputs = {valueInfo("x", kFloat, {"2", "3"}), valueInfo("axes", kInt64, {"1"})},
            .outputs = {valueInfo("y", kFloat, {"", ""})}}
      .write(folder + "axes.onnx");
  ModelText{.nodes = {{"ImageDecoder", {"x"}, {"a"}}, {"ImageDecoder", {"x"}, {"y"}}},
            .inputs = {valueInfo("x", kFloat, {"2"})},
            .outputs = {valueInfo("y", kInt64, {"1", ""})}}
      .write(folder + "unknown.onnx");
  ModelText{.nodes = {{"MatMul", {"x", "x"}, {"y"}, {}, "attn/scores"}},
            .inputs = {valueInfo("x", kFloat, {"2", "3"})},
            .outputs = {valueInfo("y", kFloat, {"2", "3"})}}
      .write(folder + "wrong.onnx");
  ModelText{.nodes = {{"ImageDecoder", {"x"}, {"a"}},
                      {"MatMul", {"x", "x"}, {"b"}, {}, "scores"},
                      {"ImageDecoder", {"x"}, {"c"}},
                      {"Squeeze", {"x", "axis"}, {"d"}, {}, "flat"},
                      {"Add", {"a", "b"}, {"e"}, {}, "behind"},
                      {"Relu", {"x"}, {"y"}}},
            .inputs = {valueInfo("x", kFloat, {"2", "3"})},
            .outputs = {valueInfo("y", kFloat, {"2", "3"})},
            .initializers = {intTensor("axis", {1}, {1})}}
      .write(folder + "several.onnx");
  std::ofstream(folder + "shape.pb", std::ios::binary) << intTensor("shape", {2}, {3, -1});
  std::ofstream(folder + "x.pb", std::ios::binary) << floatTensor("x", {2, 2}, {1, 1, 2, 0});
  std::ofstream(folder + "probs.pb", std::ios::binary) << floatTensor("probs", {2, 3}, {0, 0, 9, 2, 4, 6});
}
