// golden-make FOLDER: writes the graphs, artifacts, inputs and results of Models.h. The files of a version are made
// once, by that version, and never again.
#include "test/golden/Models.h"
#include <iostream>

using namespace burin;

int main(int argc, char **argv) {
  if (argc != 2) {
    std::cerr << "usage: golden-make FOLDER\n";
    return 2;
  }
  std::string folder = argv[1];
  for (const test::GoldenModel &model : test::goldenModels()) {
    std::string path = folder + "/" + model.name;
    model.graph.save(path + ".burin");
    compile(model.graph, {.targets = {"x86-64-v3"}}).save(path + ".plate");
    StateDict tensors;
    for (size_t i = 0; i < model.inputs.size(); ++i)
      tensors.emplace_back("in" + std::to_string(i), model.inputs[i]);
    std::vector<Tensor> results = model.graph.run(model.inputs);
    for (size_t i = 0; i < results.size(); ++i)
      tensors.emplace_back("out" + std::to_string(i), results[i]);
    save_safetensors(path + ".safetensors", tensors);
  }
}
