#include "test/ops/Row.h"
#include "test/Features.h"
#include <cmath>

namespace burin::test {

using ir::RefTensor;

namespace {

constexpr size_t kRuns = 3; // at least; the second run draws special values

std::string str(const ir::Attr &attr) {
  struct Text {
    std::string operator()(bool b) { return b ? "true" : "false"; }
    std::string operator()(int64_t n) { return std::to_string(n); }
    std::string operator()(double x) { return std::to_string(x); }
    std::string operator()(const std::string &s) { return '"' + s + '"'; }
    std::string operator()(const std::vector<int64_t> &list) { return test::str(list); }
    std::string operator()(DType t) { return std::string(name(t)); }
    std::string operator()(const Shape &s) { return burin::str(s); }
  };
  return std::visit(Text(), attr);
}

/// "x f32[n, 33], axes = [1]"
std::string describe(const Example &example) {
  std::string text;
  auto add = [&](const std::string &part) { text += (text.empty() ? "" : ", ") + part; };
  for (const Operand &operand : example.operands)
    add(operand.spec ? burin::str(*operand.spec) : "none");
  for (auto &[name, value] : example.attrs)
    add(name + " = " + str(value));
  return text;
}

using Sizes = std::map<std::string, int64_t>;

/// An example as part of a graph with several.
struct Placed {
  Example example;
  std::string suffix; // makes the names of its symbols unique
  size_t results;

  Shape renamed(const Shape &shape) const {
    Shape result;
    for (const Dim &d : shape)
      result.push_back(d.substitute([&](std::string_view symbol) { return Dim(std::string(symbol) + suffix); }));
    return result;
  }
  Sizes sizesOf(size_t run) const {
    return example.sizes.empty() ? Sizes() : example.sizes[run % example.sizes.size()];
  }
  void addTo(Graph &graph, const std::string &op) {
    std::vector<Graph::Value> operands;
    for (const Operand &operand : example.operands)
      operands.push_back(operand.spec ? graph.input({operand.spec->dtype, renamed(operand.spec->shape)}) : Graph::none);
    Attrs attrs = example.attrs;
    for (auto &[name, value] : attrs)
      if (auto *shape = std::get_if<Shape>(&value))
        *shape = renamed(*shape);
    std::vector<Graph::Value> values = graph.apply(op, operands, attrs);
    results = values.size();
    for (Graph::Value v : values)
      graph.output(v);
  }
  /// Limits indices to the range of `axis` in a tensor of this shape; they may count from the end.
  void bringIntoRange(RefTensor &indices, const std::vector<int64_t> &shape) const {
    auto axis = example.attrs.find("axis");
    int64_t at = axis == example.attrs.end() ? 0 : std::get<int64_t>(axis->second);
    int64_t size = shape[size_t(at < 0 ? at + int64_t(shape.size()) : at)];
    for (int64_t &index : indices.ints())
      index = size ? index % size : 0;
  }
  void draw(size_t run, Random &random, Tensors &inputs) const {
    Sizes sizes = sizesOf(run);
    const size_t first = inputs.size();
    for (const Operand &operand : example.operands) {
      if (!operand.spec)
        continue;
      std::vector<int64_t> shape;
      for (const Dim &d : operand.spec->shape)
        shape.push_back(*d.evaluate([&](std::string_view symbol) { return sizes.at(std::string(symbol)); }));
      inputs.push_back(
          randomTensor(operand.spec->dtype, shape, operand.draw, run == 1 ? Mood::Special : Mood::Plain, random));
      if (operand.isIndex)
        bringIntoRange(inputs.back(), inputs[first].shape);
    }
  }
};

Tensors absolute(Tensors tensors) {
  for (RefTensor &t : tensors)
    if (isFloat(t.dtype))
      for (double &x : t.reals())
        x = std::fabs(x);
  return tensors;
}

} // namespace

namespace {

class Trial {
public:
  Trial(const Row &row, const std::string &how, uint64_t seed, const std::function<Runner(Graph &)> &prepare,
        Share share)
      : row(row), how(how), seed(seed) {
    for (size_t type = 0; type < row.types.size(); ++type) {
      std::vector<Example> examples = row.examples(row, row.types[type]);
      size_t number = examples.size() < share.parts ? 0 : type + share.parts - share.first;
      for (Example &example : examples) {
        if (!isSampled(number++, share.parts))
          continue;
        runs = std::max(runs, example.sizes.size());
        placed.push_back({std::move(example), std::to_string(placed.size()), 0});
      }
    }
    for (Placed &p : placed)
      p.addTo(graph, row.op);
    runner = prepare(graph);
  }

  std::string report() {
    for (size_t run = 0; run < runs && found.size() < kMostFound; ++run)
      this->run(run);
    std::string text;
    for (const std::string &line : found)
      text += line + "\n";
    return text;
  }

private:
  static constexpr size_t kMostFound = 8;

  void run(size_t run) {
    Random random(seed + run);
    Tensors inputs;
    for (const Placed &p : placed)
      p.draw(run, random, inputs);
    Tensors want = graph.interpret(inputs), got = runner(inputs), scale;
    if (row.errorScale)
      scale = errorScales(inputs);
    else if (row.isLinear())
      scale = graph.interpret(absolute(inputs));
    size_t i = 0;
    for (const Placed &p : placed)
      for (size_t r = 0; r < p.results; ++r, ++i) {
        std::string different = difference(got[i], want[i], row.tolerance, scale.empty() ? nullptr : &scale[i]);
        if (!different.empty())
          found.push_back(where(p, run) + "result " + std::to_string(r) + ", " + different);
      }
  }

  /// For ops with one result.
  Tensors errorScales(const Tensors &inputs) const {
    Tensors scales;
    size_t next = 0;
    for (const Placed &p : placed) {
      std::vector<const RefTensor *> operands;
      for (const Operand &operand : p.example.operands)
        operands.push_back(operand.spec ? &inputs[next++] : nullptr);
      scales.push_back(row.errorScale(p.example, operands));
    }
    return scales;
  }

  std::string where(const Placed &p, size_t run) {
    std::string text = row.op + "(" + describe(p.example) + ")";
    for (auto &[symbol, value] : p.sizesOf(run))
      text += ", " + symbol + " = " + std::to_string(value);
    return text + ", " + how + ", seed " + std::to_string(seed) + ", run " + std::to_string(run) + ": ";
  }

  const Row &row;
  const std::string how;
  const uint64_t seed;
  std::vector<Placed> placed;
  size_t runs = kRuns;
  Graph graph;
  Runner runner;
  std::vector<std::string> found;
};

} // namespace

std::vector<const Row *> allRows() {
  std::vector<const Row *> all;
  for (auto *rows : {&elementwiseRows(), &reductionRows(), &shapeRows(), &indexRows(), &orderRows(), &contractionRows(),
                     &neuralRows()})
    for (const Row &row : *rows)
      all.push_back(&row);
  return all;
}

Sample sampleOf(const std::string &op, Example example, uint64_t seed) {
  Sample sample{describe(example), std::make_unique<Graph>(), {}};
  Placed placed{std::move(example), "", 0};
  placed.addTo(*sample.graph, op);
  Random random(seed);
  placed.draw(/*run=*/0, random, sample.inputs);
  return sample;
}

bool isOfContraction(const Row &row) {
  return std::ranges::any_of(contractionRows(), [&](const Row &other) { return other.op == row.op; });
}

std::string tryRow(const Row &row, const std::string &how, uint64_t seed, const std::function<Runner(Graph &)> &prepare,
                   Share share) try {
  return Trial(row, how, seed, prepare, share).report();
} catch (const std::exception &e) {
  return row.op + ", " + how + ", seed " + std::to_string(seed) + ": " + e.what();
}

} // namespace burin::test
