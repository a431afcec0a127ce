// ONNX files that nobody should have to open, and what burin must say about each.
#pragma once
#include "test/onnx/ModelWriter.h"
#include <functional>

namespace burin::test {

struct HostileModel {
  std::string name;
  Bytes file;
  int exitCode;                                                // 3: wrong, 4: burin does not have it
  std::string says;                                            // part of the message
  std::function<void(const std::string &folder)> prepare = {}; // what lies beside the model
};

/// Bytes that are no model, cut off or forged.
std::vector<HostileModel> hostileFiles();
/// Graphs that make no sense: names, cycles, types, functions, loops.
std::vector<HostileModel> hostileGraphs();
/// Weights with impossible shapes, or from where they must not come.
std::vector<HostileModel> hostileTensors();
/// Ops with impossible inputs and attributes, and those whose results no machine holds.
std::vector<HostileModel> hostileOps();

/// y = Relu(x), of two floats.
inline ModelText relu() {
  return {.nodes = {{"Relu", {"x"}, {"y"}, {}, "act"}},
          .inputs = {valueInfo("x", kFloat, {"2"})},
          .outputs = {valueInfo("y", kFloat, {"2"})}};
}
/// One node from x (f32[2, 3]) and initializers to y.
inline Bytes oneNode(NodeText node, std::vector<Bytes> initializers = {}, std::vector<Bytes> inputs = {},
                     OnnxType result = kFloat) {
  if (inputs.empty())
    inputs = {valueInfo("x", kFloat, {"2", "3"})};
  return ModelText{.nodes = {std::move(node)},
                   .inputs = std::move(inputs),
                   .outputs = {valueInfo("y", result, {})},
                   .initializers = std::move(initializers)}
      .model();
}

} // namespace burin::test
