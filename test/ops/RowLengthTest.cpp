// Kernels that walk along rows of a symbolic length give the interpreter's results for every length around those of
// vectors, and access nothing beyond the rows: operands and results lie before inaccessible pages.
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using Ints = std::vector<int64_t>;

namespace {

constexpr int64_t kLongest = 50;

/// Compares f(x [2, 3, 6, n]) with the interpreter for n = 1, 2, …
void compareLengths(const char *what, DType type, const std::function<Graph::Value(Graph &, Graph::Value x)> &f) {
  for (const std::string &target : cpuTargets()) {
    Graph graph;
    graph.output(f(graph, graph.input({type, {2, 3, 6, Dim("n", 1, 2 * kLongest)}})));
    std::unique_ptr<Compiled> compiled = graph.compile(target);
    Random random(3);
    for (int64_t n = 1; n <= kLongest; ++n) {
      INFO(what << " of " << n << " columns for " << target);
      Tensors inputs{randomTensor(type, {2, 3, 6, n}, {-2, 2}, Mood::Plain, random)};
      CHECK(difference(compiled->run(inputs)[0], graph.interpret(inputs)[0], {.ulps = 2, .absolute = 1e-6}) == "");
    }
  }
}

Graph::Value apply(Graph &graph, const char *op, Graph::Value x, const Attrs &attrs) {
  return graph.apply(op, {x}, attrs)[0];
}

} // namespace

TEST_CASE("Rows of any length: elementwise ops and movement", "[rows]") {
  for (DType type : {DType::f32, DType::u8}) {
    compareLengths("tile", type, [](Graph &graph, Graph::Value x) {
      return apply(graph, "tile", x, {{"repeats", Ints{1, 1, 2, 1}}});
    });
    compareLengths("pad", type, [](Graph &graph, Graph::Value x) {
      return apply(graph, "pad", x, {{"low", Ints{0, 0, 1, 3}}, {"high", Ints{0, 0, 1, 2}}, {"value", 1.0}});
    });
    compareLengths("concat", type, [](Graph &graph, Graph::Value x) {
      return graph.apply("concat", {x, x, x}, {{"axis", int64_t(3)}})[0];
    });
  }
}

TEST_CASE("Rows of any length: pools", "[rows]") {
  for (DType type : {DType::f32, DType::i32})
    compareLengths("max_pool", type, [](Graph &graph, Graph::Value x) {
      return apply(graph, "max_pool", x, {{"kernel", Ints{5}}, {"strides", Ints{1}}, {"padding", Ints{2}}});
    });
  for (Ints strides : {Ints{1}, Ints{2}})
    compareLengths("avg_pool", DType::f32, [&](Graph &graph, Graph::Value x) {
      return apply(graph, "avg_pool", x, {{"kernel", Ints{3}}, {"strides", strides}, {"padding", Ints{1}}});
    });
}

TEST_CASE("Rows of any length: columns at computed positions", "[rows]") {
  compareLengths("take", DType::f32, [](Graph &graph, Graph::Value x) {
    Graph::Value twice = graph.apply(
        "iota", {}, {{"shape", Shape{Dim("n", 1, 2 * kLongest) * 2}}, {"axis", int64_t(0)}, {"dtype", DType::i64}})[0];
    Graph::Value two = graph.constant(ir::RefTensor{DType::i64, {}, std::vector<int64_t>{2}});
    two = graph.apply("broadcast_to", {two}, {{"shape", Shape{Dim("n", 1, 2 * kLongest) * 2}}})[0];
    Graph::Value half = graph.apply("floor_divide", {twice, two})[0];
    return graph.apply("take", {x, half}, {{"axis", int64_t(3)}})[0];
  });
}
