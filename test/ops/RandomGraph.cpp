#include "test/ops/RandomGraph.h"
#include "test/ops/GraphMaker.h"
#include <algorithm>

namespace burin::test {

using ir::RefTensor;

namespace {

class GraphTrial {
public:
  GraphTrial(uint64_t seed, size_t steps) : random(seed), maker(graph, random) {
    size_t length = 3 + random() % 18;
    for (size_t i = 0; i < std::min(length, steps); ++i)
      maker.step();
    maker.finish();
  }

  Graph graph;

  std::string report(const std::function<std::unique_ptr<Compiled>(Graph &)> &compile) {
    const char *target = random() % 4 ? "native" : "x86-64-v3";
    std::unique_ptr<Compiled> compiled = compile ? compile(graph) : graph.compile(target);
    for (auto &sizes : maker.sizes) {
      Tensors inputs;
      for (Graph::Value v : graph.inputs())
        inputs.push_back(draw(graph.spec(v), sizes));
      Tensors want = graph.interpret(inputs), got = compiled->run(inputs);
      for (size_t i = 0; i < want.size(); ++i) {
        std::string different =
            difference(got[i], want[i], {.ulps = 4, .zeroSigns = false, .absolute = maker.errors[i]});
        if (!different.empty())
          return "n = " + std::to_string(sizes.at("n")) + ": result " + std::to_string(i) + ", " + different;
      }
    }
    return "";
  }

private:
  RefTensor draw(const TensorSpec &spec, const std::map<std::string, int64_t> &sizes) {
    std::vector<int64_t> shape;
    for (const Dim &d : spec.shape)
      shape.push_back(*d.evaluate([&](std::string_view symbol) { return sizes.at(std::string(symbol)); }));
    return randomTensor(spec.dtype, shape, {-2, 2}, Mood::Plain, random);
  }

  Random random;
  GraphMaker maker;
};

} // namespace

std::string tryGraph(uint64_t seed, size_t steps, const std::function<std::unique_ptr<Compiled>(Graph &)> &compile) {
  std::string different, text;
  try {
    GraphTrial trial(seed, steps);
    text = trial.graph.text();
    different = trial.report(compile);
  } catch (const std::exception &e) {
    different = e.what();
  }
  return different.empty() ? "" : "seed " + std::to_string(seed) + ": " + different + "\n" + text;
}

std::string graphText(uint64_t seed, size_t steps) { return GraphTrial(seed, steps).graph.text(); }

} // namespace burin::test
