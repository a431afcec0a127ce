// Loads models that tests have written.
#pragma once
#include "test/frontend/Check.h"
#include "test/onnx/Folder.h"
#include "test/onnx/ModelWriter.h"

namespace burin::test {

struct Loaded {
  Graph graph;
  std::vector<std::string> warnings;
};
inline Loaded loadModel(const ModelText &model, std::vector<OnnxOptions::Size> sizes = {}) {
  Folder folder;
  std::vector<std::string> warnings;
  OnnxOptions options{
      .fixed = {}, .sizes = std::move(sizes), .warn = [&](const std::string &text) { warnings.push_back(text); }};
  Graph graph = load_onnx(model.write(folder / "model.onnx"), options);
  return {std::move(graph), std::move(warnings)};
}

inline Bytes floatInput(const Bytes &name, const std::vector<Bytes> &sizes) { return valueInfo(name, kFloat, sizes); }

/// A model whose output is the floats "y".
inline ModelText graphOf(std::vector<NodeText> nodes, std::vector<Bytes> inputs, std::vector<Bytes> initializers = {}) {
  return {.nodes = std::move(nodes),
          .inputs = std::move(inputs),
          .outputs = {valueInfo("y", kFloat, {})},
          .initializers = std::move(initializers)};
}

inline Bytes ints(const Bytes &name, const std::vector<int64_t> &values) {
  return intTensor(name, {int64_t(values.size())}, values);
}
inline Bytes scalar(const Bytes &name, int64_t value) { return intTensor(name, {}, {value}); }

/// Returns the error of a run, or an empty string.
inline std::string problemOf(const Graph &graph, const std::vector<Tensor> &inputs) {
  return messageOf([&] {
    for (const Tensor &result : graph.run(inputs))
      result.to_vector<float>();
  });
}

} // namespace burin::test
