#include "test/ops/RandomGraph.h"
#include "test/ops/GraphMaker.h"
#include <algorithm>

namespace burin::test {

using ir::RefTensor;

namespace {

class GraphTrial {
public:
  GraphTrial(uint64_t seed, size_t steps, Symbols symbols = Symbols::One)
      : random(seed), maker(graph, random, symbols) {
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

  std::string compareWithFixed() {
    const char *target = random() % 4 ? "native" : "x86-64-v3";
    std::unique_ptr<Compiled> symbolic;
    for (auto &sizes : maker.sizes) {
      Tensors inputs, want;
      for (Graph::Value v : graph.inputs())
        inputs.push_back(draw(graph.spec(v), sizes));
      try {
        want = graph.fixed(sizes).compile(target)->run(inputs);
      } catch (const std::exception &) {
        continue;
      }
      if (!symbolic)
        symbolic = graph.compile(target);
      Tensors got = symbolic->run(inputs);
      for (size_t i = 0; i < want.size(); ++i)
        if (std::string different = difference(got[i], want[i], Tolerance()); !different.empty())
          return name(sizes) + ": result " + std::to_string(i) + ", " + different;
    }
    return "";
  }

private:
  static std::string name(const std::map<std::string, int64_t> &sizes) {
    std::string result;
    for (auto &[symbol, size] : sizes)
      result += (result.empty() ? "" : ", ") + symbol + " = " + std::to_string(size);
    return result;
  }

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

std::string trySymbols(uint64_t seed, size_t steps) {
  std::string different, text;
  try {
    GraphTrial trial(seed, steps, Symbols::Many);
    text = trial.graph.text();
    different = trial.compareWithFixed();
  } catch (const std::exception &e) {
    different = e.what();
  }
  return different.empty() ? "" : "seed " + std::to_string(seed) + ": " + different + "\n" + text;
}

std::vector<std::byte> artifactOf(uint64_t seed, bool symbols) {
  return GraphTrial(seed, SIZE_MAX, symbols ? Symbols::Many : Symbols::One).graph.artifact({"native"});
}

std::string graphText(uint64_t seed, size_t steps, bool symbols) {
  return GraphTrial(seed, steps, symbols ? Symbols::Many : Symbols::One).graph.text();
}

} // namespace burin::test
