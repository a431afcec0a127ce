// Imports every op with inputs of every rank: each is either imported or refused with a message.
#include "burin/onnx.h"
#include "frontend/onnx/import/Node.h"
#include "test/onnx/Folder.h"
#include "test/onnx/ModelWriter.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;

namespace {

std::vector<onnx::OpEntry> allOps() {
  std::vector<onnx::OpEntry> all;
  for (auto family :
       {onnx::attentionOps, onnx::controlOps, onnx::einsumOps, onnx::elementwiseOps, onnx::indexOps, onnx::loopOps,
        onnx::neuralOps, onnx::quantizedOps, onnx::recurrentOps, onnx::reductionOps, onnx::samplingOps,
        onnx::selectionOps, onnx::sequenceOps, onnx::shapeOps, onnx::signalOps, onnx::trainingOps})
    all.insert(all.end(), family().begin(), family().end());
  return all;
}

/// Imports one node with inputs of these ranks. Returns the error.
std::string import(const std::string &path, std::string_view op, const std::vector<int> &ranks) {
  ModelText model{.nodes = {{Bytes(op), {}, {"y"}, {attribute("kernel_shape", {2, 2})}, "n"}},
                  .inputs = {},
                  .outputs = {valueInfo("y", kFloat, {})}};
  for (size_t i = 0; i < ranks.size(); ++i) {
    std::string name = "x" + std::to_string(i);
    model.nodes[0].inputs.push_back(name);
    model.inputs.push_back(valueInfo(name, kFloat, std::vector<Bytes>(size_t(ranks[i]), "2")));
  }
  try {
    load_onnx(model.write(path));
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST_CASE("no op takes the rank of an input for granted") {
  Folder folder;
  const std::string path = folder / "model.onnx";
  std::vector<std::vector<int>> signatures{{4, 4, 4, 1}, {4, 4, 4, 0, 4, 4}, {4, 4, 3},
                                           {4, 1, 4},    {1, 4, 4},          {0, 4, 4}};
  for (size_t count : {2, 3, 8})
    for (int rank = 0; rank < 5; ++rank)
      signatures.emplace_back(count, rank);
  size_t imported = 0;
  for (const onnx::OpEntry &op : allOps())
    for (const std::vector<int> &ranks : signatures) {
      if (!op.domain.empty())
        continue;
      std::string problem = import(path, op.name, ranks);
      INFO(op.name << " of " << ranks.size() << " inputs, the first of rank " << ranks[0] << ": " << problem);
      CHECK(problem.find("internal error") == problem.npos);
      imported += problem.empty();
    }
  CHECK(imported > 100);
}

TEST_CASE("an input with too few dimensions is named") {
  Folder folder;
  std::string problem = import(folder / "model.onnx", "LRN", {1});
  CHECK(problem.find("LRN") != problem.npos);
  CHECK(problem.find("its input \"x0\" has the shape [2], but must have 2 dimensions or more") != problem.npos);
}
