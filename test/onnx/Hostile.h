// Malformed and malicious ONNX files, with the message that burin must give for each.
#pragma once
#include "test/onnx/ModelWriter.h"
#include <functional>

namespace burin::test {

struct HostileModel {
  std::string name;
  Bytes file;
  int exitCode;                                                // 3: invalid, 4: not supported
  std::string says;                                            // part of the message
  std::function<void(const std::string &folder)> prepare = {}; // writes other files, or a large model
};

/// Truncated or forged bytes.
std::vector<HostileModel> hostileFiles();
/// Invalid graphs: names, cycles, types, functions, loops.
std::vector<HostileModel> hostileGraphs();
/// Weights with impossible shapes, or in files that must not be read.
std::vector<HostileModel> hostileTensors();
/// Ops with impossible inputs and attributes, or with results that exceed any memory.
std::vector<HostileModel> hostileOps();

/// y = Relu(x) on two floats.
inline ModelText relu() {
  return {.nodes = {{"Relu", {"x"}, {"y"}, {}, "act"}},
          .inputs = {valueInfo("x", kFloat, {"2"})},
          .outputs = {valueInfo("y", kFloat, {"2"})}};
}
/// A model with one node from x (f32[2, 3]) and initializers to y.
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
