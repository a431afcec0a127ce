// Compares the gradient rules of all ops with central differences, computed in f64 by the reference interpreter.
#include "frontend/autodiff/gradients/Rules.h"
#include "frontend/trace/GraphData.h"
#include "ir/reference/Reference.h"
#include "test/gradients/Rows.h"
#include <catch2/catch.hpp>
#include <random>
#include <set>

using namespace burin;
using burin::test::GradientRow;

namespace {

using Tensors = std::vector<ir::RefTensor>;
using Sizes = std::map<std::string, int64_t>;
const std::vector<Sizes> kSizes{{{"n", 2}, {"m", 3}}, {{"n", 1}, {"m", 5}}, {{"n", 5}, {"m", 1}}, {{"n", 0}, {"m", 2}}};

Shape withSizes(const Shape &shape, const Sizes &sizes) {
  Shape result;
  for (const Dim &d : shape)
    result.push_back(d.substitute([&](std::string_view symbol) { return Dim(sizes.at(std::string(symbol))); }));
  return result;
}

ir::RefTensor randomTensor(const Shape &shape, double low, double high, std::mt19937_64 &random) {
  ir::RefTensor tensor{f64, {}, std::vector<double>()};
  for (const Dim &size : shape)
    tensor.shape.push_back(size.value());
  tensor.reals().resize(size_t(tensor.size()));
  for (double &x : tensor.reals())
    x = std::uniform_real_distribution<double>(low, high)(random);
  return tensor;
}

/// The traced call, and a second graph of its gradients. Both take the operands; the second also takes weights of the
/// results.
struct Traced {
  Graph forward, backward;

  static std::vector<TensorSpec> specsOf(const std::vector<Shape> &shapes) {
    std::vector<TensorSpec> specs;
    for (const Shape &shape : shapes)
      specs.push_back({f64, shape});
    return specs;
  }
  Traced(const GradientRow &row, std::vector<Shape> operands)
      : forward(trace([&](const std::vector<Tensor> &xs) { return row.call(xs); }, specsOf(operands))), backward([&] {
          operands.push_back(forward.outputs()[0].spec.shape);
          return trace(
              [&](const std::vector<Tensor> &inputs) {
                std::vector<Tensor> xs(inputs.begin(), inputs.end() - 1);
                return grad(row.call(xs), xs, inputs.back());
              },
              specsOf(operands));
        }()) {}
};

Tensors interpret(const Graph &graph, const Tensors &inputs) {
  auto results = ir::interpret(*graph.shared()->module, inputs);
  if (mlir::failed(results))
    throw std::runtime_error(graph.shared()->takeDiagnostics() + "\n" + graph.str());
  return *results;
}

double weighted(const Graph &graph, const Tensors &inputs, const ir::RefTensor &weights) {
  double sum = 0;
  ir::RefTensor result = interpret(graph, inputs)[0];
  for (size_t i = 0; i < result.reals().size(); ++i)
    sum += result.reals()[i] * weights.reals()[i];
  return sum;
}

/// The operands of a row, and the weights of its result.
Tensors inputsFor(const Traced &traced, const GradientRow &row, const Sizes &sizes) {
  std::mt19937_64 random(std::hash<std::string>()(row.name));
  Tensors inputs;
  for (const Shape &shape : row.operands)
    inputs.push_back(randomTensor(withSizes(shape, sizes), row.low, row.high, random));
  std::vector<int64_t> shape = interpret(traced.forward, inputs)[0].shape;
  inputs.push_back(randomTensor(Shape(shape.begin(), shape.end()), -1, 1, random));
  return inputs;
}

void compareWithDifferences(const Traced &traced, const GradientRow &row, const Sizes &sizes) {
  Tensors inputs = inputsFor(traced, row, sizes), gradients = interpret(traced.backward, inputs);
  ir::RefTensor weights = inputs.back();
  inputs.pop_back();
  REQUIRE(gradients.size() == inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    CAPTURE(i);
    REQUIRE(gradients[i].shape == inputs[i].shape);
    for (size_t k = 0; k < inputs[i].reals().size(); ++k) {
      constexpr double kStep = 1e-6;
      auto at = [&](double shift) {
        Tensors moved = inputs;
        moved[i].reals()[k] += shift;
        return weighted(traced.forward, moved, weights);
      };
      double wanted = (at(kStep) - at(-kStep)) / (2 * kStep);
      CAPTURE(k);
      CHECK(gradients[i].reals()[k] == Approx(wanted).epsilon(1e-6).margin(1e-7));
    }
  }
}

void compareCompiled(const Traced &traced, const GradientRow &row, const Sizes &sizes) {
  Tensors inputs = inputsFor(traced, row, sizes), wanted = interpret(traced.backward, inputs);
  std::vector<Tensor> operands;
  for (const ir::RefTensor &input : inputs)
    operands.push_back(from_vector(input.reals(), Shape(input.shape.begin(), input.shape.end())));
  std::vector<Tensor> got = traced.backward.run(operands);
  for (size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    std::vector<double> values = got[i].to_vector<double>();
    REQUIRE(values.size() == wanted[i].reals().size());
    for (size_t k = 0; k < values.size(); ++k)
      CHECK(values[k] == Approx(wanted[i].reals()[k]).epsilon(1e-9).margin(1e-11));
  }
}

/// Traces each row with symbols, and compares for each choice of sizes.
template <class Compare> void forEachRow(Compare compare) {
  for (const GradientRow &row : test::gradientRows()) {
    CAPTURE(row.name);
    try {
      Traced symbolic(row, row.operands);
      for (const Sizes &sizes : kSizes) {
        CAPTURE(sizes.at("n"), sizes.at("m"));
        compare(symbolic, row, sizes);
      }
    } catch (const std::exception &error) {
      FAIL_CHECK(error.what());
    }
  }
}

std::set<std::string> opsOf(const Graph &graph) {
  std::set<std::string> names;
  graph.shared()->module->walk([&](mlir::Operation *op) { names.insert(op->getName().stripDialect().str()); });
  return names;
}

} // namespace

TEST_CASE("gradients are what finite differences say, for known sizes and for symbols") {
  forEachRow([](const Traced &symbolic, const GradientRow &row, const Sizes &sizes) {
    std::vector<Shape> known;
    for (const Shape &shape : row.operands)
      known.push_back(withSizes(shape, sizes));
    compareWithDifferences(Traced(row, known), row, sizes);
    compareWithDifferences(symbolic, row, sizes);
  });
}

TEST_CASE("compiled gradients are those of the interpreter") { forEachRow(compareCompiled); }

TEST_CASE("every op that floats flow through has a gradient and a row") {
  std::set<std::string> tried;
  for (const GradientRow &row : test::gradientRows())
    tried.merge(opsOf(Traced(row, row.operands).forward));
  for (const ir::OpInfo &info : ir::opTable()) {
    CAPTURE(info.name);
    const std::set<std::string> discrete{"argmax", "argmin", "reduce_any", "reduce_all", "argsort", "nonzero",
                                         "non_max_suppression",
                                         // The operand is a key.
                                         "random_uniform", "random_normal", "random_integers", "random_key"};
    bool isDiscrete = info.boolResult || info.domain == ir::Domain::Integer || discrete.contains(info.name);
    if (info.internal || info.operands.empty() || isDiscrete) {
      // `barrier` has a rule but no row here: RematTest tests it.
      CHECK(bool(gradients::ruleOf(info)) == (std::string(info.name) == "barrier"));
      continue;
    }
    CHECK(gradients::ruleOf(info));
    CHECK(tried.contains(info.name));
  }
}
