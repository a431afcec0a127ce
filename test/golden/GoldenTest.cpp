// Files of earlier versions: graphs load and reproduce their stored results; artifacts are refused with advice.
#include "test/frontend/Check.h"
#include "test/golden/Models.h"

namespace {

const std::string folder = BURIN_GOLDEN_DIR;
const std::vector<std::string> models = {"mlp", "cnn", "recurrence", "attention", "lookup"};

void checkGraph(const std::string &path, const StateDict &tensors) {
  Graph graph = Graph::load(path + ".burin");
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    inputs.push_back(tensors.at("in" + std::to_string(i)));
  std::vector<Tensor> results = graph.run(inputs);
  REQUIRE(results.size() == graph.outputs().size());
  for (size_t i = 0; i < results.size(); ++i) {
    Tensor expected = tensors.at("out" + std::to_string(i));
    REQUIRE(results[i].spec() == expected.spec());
    CHECK(max(abs(results[i].to(f64) - expected.to(f64))).item() < 1e-5);
  }
}

} // namespace

TEST_CASE("graphs of format version 6 load and give the same results") {
  for (const std::string &name : models) {
    INFO(name);
    checkGraph(folder + "/v6/" + name, load_safetensors(folder + "/v6/" + name + ".safetensors"));
  }
}

TEST_CASE("artifacts of format version 6 are refused: they are compiled again") {
  for (const std::string &name : models) {
    INFO(name);
    std::string message = messageOf([&] { load(folder + "/v6/" + name + ".plate"); });
    CHECK_THAT(message, Catch::Matchers::Contains("version 6") && Catch::Matchers::Contains("compile it again"));
  }
}

TEST_CASE("the golden models still compile, and agree with their graphs") {
  for (const test::GoldenModel &model : test::goldenModels()) {
    INFO(model.name);
    std::vector<Tensor> results = compile(model.graph).run(model.inputs), expected = model.graph.run(model.inputs);
    for (size_t i = 0; i < results.size(); ++i)
      CHECK(all(results[i] == expected[i]).item() == 1);
  }
}
