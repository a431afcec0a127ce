// Sums with symbolic sizes have the bits of the same sums with fixed sizes, also where a size is 1, which changes the
// innermost dimension of a kernel.
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using Ints = std::vector<int64_t>;
using Sizes = std::map<std::string, int64_t>;

namespace {

/// Builds a graph for symbolic sizes; compares it with fixed ones, for each assignment of these sizes to the symbols.
void compare(const std::function<void(Graph &)> &build, const std::vector<std::string> &symbols, const Ints &values,
             const std::string &target) {
  Graph symbolic;
  build(symbolic);
  std::unique_ptr<Compiled> compiled = symbolic.compile(target);
  Random random(7);
  size_t runs = 1;
  for (size_t i = 0; i < symbols.size(); ++i)
    runs *= values.size();
  for (size_t run = 0; run < runs; ++run) {
    Sizes sizes;
    std::string text;
    for (size_t i = 0, rest = run; i < symbols.size(); ++i, rest /= values.size()) {
      sizes[symbols[i]] = values[rest % values.size()];
      text += symbols[i] + " = " + std::to_string(sizes[symbols[i]]) + " ";
    }
    Tensors inputs;
    for (Graph::Value v : symbolic.inputs()) {
      Ints shape;
      for (const Dim &d : symbolic.spec(v).shape)
        shape.push_back(*d.evaluate([&](std::string_view symbol) { return sizes.at(std::string(symbol)); }));
      inputs.push_back(randomTensor(symbolic.spec(v).dtype, shape, {-2, 2}, Mood::Plain, random));
    }
    Tensors want = symbolic.fixed(sizes).compile(target)->run(inputs), got = compiled->run(inputs);
    INFO(text);
    for (size_t i = 0; i < want.size(); ++i)
      CHECK(difference(got[i], want[i], {}) == "");
  }
}

/// Reductions of a tensor of this shape over the axes, alone and fused with what follows.
void compareSums(const Shape &shape, const Ints &axes, const std::vector<std::string> &symbols, const Ints &values,
                 DType type = DType::f32) {
  for (const std::string &target : cpuTargets()) {
    INFO("f(" << str(shape) << ") over " << test::str(axes) << " for " << target);
    auto build = [&](Graph &graph) {
      Graph::Value x = graph.input({type, shape});
      for (const char *op : {"reduce_sum", "reduce_mean"})
        graph.output(graph.apply(op, {x}, {{"axes", axes}, {"keepdims", false}})[0]);
      Graph::Value mean = graph.apply("reduce_mean", {x}, {{"axes", axes}, {"keepdims", true}})[0];
      Graph::Value repeated = graph.apply("broadcast_to", {mean}, {{"shape", shape}})[0];
      graph.output(graph.apply("sub", {x, repeated})[0]);
    };
    compare(build, symbols, values, target);
  }
}

} // namespace

TEST_CASE("A sum over columns has the bits of fixed sizes when there is one column", "[sums]") {
  const Dim n("n");
  compareSums({300, n}, {0}, {"n"}, {1, 17});
  compareSums({n, Dim("m")}, {0}, {"n", "m"}, {1, 150});
  compareSums({5, 70, n - 2}, {1}, {"n"}, {3, 4});
  compareSums({5, 70, n}, {1}, {"n"}, {1}, DType::f64);
  compareSums({5, 70, n}, {1}, {"n"}, {1}, DType::bf16);
}

TEST_CASE("Sums over the rows of a wide matrix add row by row", "[sums]") {
  const int64_t columns = GENERATE(257, 512, 1010), rows = GENERATE(0, 1, 63, 65, 128, 200);
  Graph graph;
  Graph::Value x = graph.input({DType::f32, {Dim("m"), Dim("n")}});
  const Attrs attrs{{"axes", Ints{0}}, {"keepdims", false}};
  graph.output(graph.apply("reduce_sum", {x}, attrs)[0]);
  graph.output(graph.apply("relu", graph.apply("reduce_sum", graph.apply("neg", {x}), attrs))[0]);
  Random random(3);
  ir::RefTensor values = randomTensor(DType::f32, {rows, columns}, {-2, 2}, Mood::Plain, random);
  std::vector<float> sums(size_t(columns), 0);
  for (int64_t i = 0; i < rows * columns; ++i)
    sums[size_t(i % columns)] += float(values.reals()[size_t(i)]);
  Graph fixed = graph.fixed({{"m", rows}, {"n", columns}});
  for (const std::string &target : cpuTargets())
    for (Graph *form : {&graph, &fixed}) {
      INFO(rows << " rows of " << columns << " for " << target << "\n" << form->text());
      Tensors got = form->compile(target)->run({values});
      for (size_t i = 0; i < sums.size(); ++i) {
        REQUIRE(float(got[0].reals()[i]) == sums[i]);
        REQUIRE(float(got[1].reals()[i]) == std::max(-sums[i], 0.0f));
      }
    }
}

TEST_CASE("Sums over several dimensions have the bits of fixed sizes when others are 1", "[sums]") {
  const Dim n("n"), m("m");
  compareSums({7, n, 41, m}, {0, 2}, {"n", "m"}, {1, 2});
  compareSums({n, m, Dim("k")}, {0, 2}, {"n", "m", "k"}, {1, 70});
}

TEST_CASE("Sums of transposed values have the bits of fixed sizes when a size is 1", "[sums]") {
  for (const std::string &target : cpuTargets()) {
    auto build = [](Graph &graph) {
      const Dim n("n"), m("m");
      Graph::Value x = graph.input({DType::f32, {n, m}}), y = graph.input({DType::f32, {m, n}});
      Graph::Value turned = graph.apply("transpose", {x}, {{"perm", Ints{1, 0}}})[0];
      Graph::Value sum = graph.apply("add", {turned, y})[0];
      graph.output(graph.apply("reduce_sum", {sum}, {{"axes", Ints{0, 1}}})[0]);
    };
    compare(build, {"n", "m"}, {1, 100}, target);
  }
}

TEST_CASE("Sums of a slice have the bits of fixed sizes if it is all of its operand", "[sums]") {
  for (const std::string &target : cpuTargets()) {
    auto build = [](Graph &graph) {
      const Dim n("n"), m("m"), k("k");
      Graph::Value x = graph.input({DType::f32, {n, k, m}});
      Graph::Value half = graph.apply(
          "slice", {x},
          {{"starts", Shape{Dim(0), floordiv(k, 2), Dim(0)}}, {"stops", Shape{n, k, m}}, {"steps", Ints{1, 1, 1}}})[0];
      Graph::Value upper = graph.apply("triu", {x}, {{"diagonal", int64_t(1)}})[0];
      for (const Ints &axes : {Ints{0, 1, 2}, Ints{0, 1}, Ints{1, 2}})
        for (Graph::Value v : {half, upper})
          graph.output(graph.apply("reduce_sum", {v}, {{"axes", axes}})[0]);
      graph.output(
          graph.apply("layer_norm", {half, Graph::none, Graph::none}, {{"axis", int64_t(1)}, {"epsilon", 0.25}})[0]);
    };
    compare(build, {"n", "m", "k"}, {1, 3, 17}, target);
  }
}

TEST_CASE("Softmax and norms along columns have the bits of fixed sizes when there is one column", "[sums]") {
  for (const std::string &target : cpuTargets()) {
    auto build = [](Graph &graph) {
      const Dim n("n");
      Graph::Value x = graph.input({DType::f32, {3, 90, n}});
      graph.output(graph.apply("softmax", {x}, {{"axis", int64_t(1)}})[0]);
      graph.output(graph.apply("logsumexp", {x}, {{"axes", Ints{1}}})[0]);
      graph.output(graph.apply("reduce_var", {x}, {{"axes", Ints{1}}})[0]);
      graph.output(
          graph.apply("layer_norm", {x, Graph::none, Graph::none}, {{"axis", int64_t(1)}, {"epsilon", 0.25}})[0]);
    };
    compare(build, {"n"}, {1, 2}, target);
  }
}

// Where sizes are fixed, a transposed left side whose rows are multiples of 512 bytes is packed for CPUs without
// AVX-512.
TEST_CASE("Products of transposed matrices have the bits of fixed sizes, which may be packed", "[sums]") {
  for (const std::string &target : cpuTargets())
    for (const DType type : {DType::f32, DType::f64}) {
      auto build = [&](Graph &graph) {
        const Dim m("m"), k("k");
        Graph::Value x = graph.input({type, {k, m}}), y = graph.input({type, {k, 130}});
        Graph::Value turned = graph.apply("transpose", {x}, {{"perm", Ints{1, 0}}})[0];
        Graph::Value product = graph.apply("matmul", {turned, y})[0];
        graph.output(graph.apply("relu", {product})[0]);
        graph.output(graph.apply("transpose", {product}, {{"perm", Ints{1, 0}}})[0]);
      };
      compare(build, {"m", "k"}, {256, 384, 70}, target);
    }
}

TEST_CASE("Gradients of weights of convolutions have the bits of fixed channels, which may be packed", "[sums]") {
  struct Window {
    Ints padding;
    int64_t size, strides, outputs;
  };
  for (const std::string &target : cpuTargets())
    for (const Window &window :
         {Window{{1, 1, 1, 1}, 9, 1, 130}, Window{{0, 0, 0, 0}, 8, 1, 130}, Window{{0, 0, 0, 0}, 7, 1, 128},
          Window{{0, 0, 0, 0}, 9, 1, 130}, Window{{1, 0, 1, 0}, 5, 2, 128}}) {
      auto build = [&](Graph &graph) {
        const Dim channels("c"), images("n");
        Graph::Value x = graph.input({DType::f32, {images, 9, 9, channels}}),
                     y = graph.input({DType::f32, {images, window.size, window.size, window.outputs}});
        Graph::Value left = graph.apply("transpose", {x}, {{"perm", Ints{3, 1, 2, 0}}})[0],
                     right = graph.apply("transpose", {y}, {{"perm", Ints{1, 2, 0, 3}}})[0];
        graph.output(graph.apply("conv", {left, right, Graph::none},
                                 {{"layout", std::string("nhwc")},
                                  {"padding", window.padding},
                                  {"dilations", Ints{window.strides, window.strides}}})[0]);
      };
      compare(build, {"c", "n"}, {16, 48, 10}, target);
    }
}

// Where sizes are fixed, the operands trade places, so that no result is transposed.
TEST_CASE("Transposed products of transposed matrices have the bits of fixed sizes", "[sums]") {
  for (const std::string &target : cpuTargets())
    for (const DType type : {DType::f32, DType::f64, DType::bf16})
      for (const int64_t columns : {10, 130}) {
        auto build = [&](Graph &graph) {
          const Dim m("m"), k("k");
          Graph::Value x = graph.input({type, {k, m}}), y = graph.input({type, {k, columns}});
          Graph::Value turned = graph.apply("transpose", {x}, {{"perm", Ints{1, 0}}})[0];
          Graph::Value product = graph.apply("matmul", {turned, y})[0];
          Graph::Value result = graph.apply("transpose", {product}, {{"perm", Ints{1, 0}}})[0];
          graph.output(graph.apply("mul", {result, result})[0]);
        };
        compare(build, {"m", "k"}, {256, 1, 70}, target);
      }
}
