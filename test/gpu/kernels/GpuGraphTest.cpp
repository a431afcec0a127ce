// Random graphs on a GPU's kernels, what fusion makes of many ops, and kernels that move elements, at sizes that end
// between tiles, vectors and words.
#include "test/gpu/emulator/Emulate.h"
#include "test/gpu/emulator/Simt.h"
#include "test/ops/RandomGraph.h"
#include "test/ops/Values.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using Ints = std::vector<int64_t>;

static void trySeeds(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::string different = tryGraph(seed, SIZE_MAX, [](Graph &graph) {
      return graph.compile("cuda-sm_80+ptx",
                           [](burin::codegen::CompileOptions &options) { options.emulate = emulated; });
    });
    for (const std::string &error : simt::takeErrors())
      different += "seed " + std::to_string(seed) + ": " + error + "\n";
    INFO(different);
    CHECK(different.empty());
  }
}

TEST_CASE("Random graphs on a GPU's kernels 1", "[gpu]") { trySeeds(1, 60); }
TEST_CASE("Random graphs on a GPU's kernels 2", "[gpu]") { trySeeds(1001, 60); }

namespace {

/// Runs a graph on the emulator and as the reference interpreter does, for each of the shapes of its first input; the
/// sizes of the others are static. Its kernel must use shared memory if `isTiled`.
void check(Graph &g, const std::vector<Ints> &shapes, bool isTiled = true, const Tolerance &tolerance = {}) {
  auto compiled =
      g.compile("cuda-sm_80+ptx", [](burin::codegen::CompileOptions &options) { options.emulate = emulated; });
  Random random(3);
  INFO(g.text());
  for (const Ints &shape : shapes) {
    INFO(str(shape));
    Tensors inputs;
    for (Graph::Value v : g.inputs()) {
      Ints sizes = shape;
      if (!inputs.empty())
        llvm::transform(g.spec(v).shape, sizes.begin(), [](const Dim &d) { return d.value(); });
      inputs.push_back(randomTensor(g.spec(v).dtype, sizes, {-90, 90}, Mood::Plain, random));
    }
    const simt::Counters before = simt::counters();
    CHECK(difference(compiled->run(inputs)[0], g.interpret(inputs)[0], tolerance) == "");
    for (const std::string &error : simt::takeErrors())
      FAIL_CHECK(error);
    const bool isEmpty = llvm::is_contained(shape, 0);
    CHECK((isEmpty || !isTiled) == (simt::counters().sharedAccesses == before.sharedAccesses));
  }
}

Graph::Value transposed(Graph &g, Graph::Value x, const Ints &order) {
  return g.apply("transpose", {x}, {{"perm", order}})[0];
}

} // namespace

TEST_CASE("Transposes in tiles", "[gpu]") {
  for (DType type : {i8, boolean, bf16, f16, f32, i32, f64})
    for (const Ints &shape : {Ints{70, 130}, Ints{256, 132}, Ints{33, 41}, Ints{64, 64}}) {
      Graph g;
      g.output(transposed(g, g.input({type, {shape[0], shape[1]}}), {1, 0}));
      check(g, {shape});
    }
  for (DType type : {u8, f16, f32}) {
    Graph g; // channels last
    g.output(transposed(g, g.input({type, {Dim("n"), 40, Dim("h"), 9}}), {0, 2, 3, 1}));
    check(g, {{2, 40, 8, 9}, {1, 40, 3, 9}, {0, 40, 8, 9}, {2, 40, 0, 9}, {3, 40, 16, 9}});
  }
}

TEST_CASE("Transposes of a long and a short dimension", "[gpu]") {
  for (DType type : {u8, f16, f32, f64})
    for (int64_t few : {2, 3, 7, 16}) {
      Graph toLast, toFirst;
      toLast.output(transposed(toLast, toLast.input({type, {Dim("n"), few, 32, 40}}), {0, 2, 3, 1}));
      check(toLast, {{2, few, 32, 40}, {0, few, 32, 40}});
      toFirst.output(transposed(toFirst, toFirst.input({type, {2, Dim("h"), few}}), {0, 2, 1}));
      check(toFirst, {{2, 1037, few}, {2, 2500, few}, {2, 0, few}, {2, 8, few}});
    }
}

TEST_CASE("Elementwise kernels with transposed operands", "[gpu]") {
  for (DType type : {u8, bf16, f32, f64})
    for (const Ints &shape : {Ints{70, 130}, Ints{64, 128}, Ints{33, 41}}) {
      Graph g;
      Graph::Value x = g.input({type, {shape[0], shape[1]}}), y = g.input({type, {shape[0], shape[1]}});
      Graph::Value sum = g.apply("add", {transposed(g, x, {1, 0}), transposed(g, y, {1, 0})})[0];
      g.output(g.apply("maximum", {sum, transposed(g, g.apply("neg", {x})[0], {1, 0})})[0]);
      check(g, {shape});
    }
  Graph g; // a chain in front of channels last, symbolic sizes
  Graph::Value x = g.input({f32, {Dim("n"), 40, Dim("h"), 33}});
  Graph::Value y = g.apply("abs", {transposed(g, g.apply("cast", {x}, {{"dtype", f16}})[0], {0, 2, 3, 1})})[0];
  g.output(g.apply("neg", {y})[0]);
  check(g, {{2, 40, 3, 33}, {1, 40, 1, 33}, {0, 40, 8, 33}});
}

TEST_CASE("Runs of windows", "[gpu]") {
  auto pool = [](DType type, const Shape &shape, Ints kernel, Ints strides, Ints dilations, const char *layout) {
    auto g = std::make_unique<Graph>();
    g->output(g->apply("max_pool", {g->input({type, shape})},
                       {{"kernel", kernel},
                        {"strides", strides},
                        {"dilations", dilations},
                        {"padding", Ints{1, 0, 1, 1}},
                        {"layout", std::string(layout)}})[0]);
    return g;
  };
  for (DType type : {i8, bf16, f32, f64}) {
    check(*pool(type, {2, 3, 13, 19}, {3, 3}, {2, 2}, {1, 1}, "nchw"), {{2, 3, 13, 19}}, false);
    check(*pool(type, {Dim("n"), 3, Dim("h"), 20}, {3, 2}, {1, 2}, {2, 1}, "nchw"),
          {{2, 3, 13, 20}, {1, 3, 6, 20}, {0, 3, 8, 20}, {2, 3, 2, 20}}, false);
    for (int64_t channels : {16, 6}) {
      check(*pool(type, {2, 13, 19, channels}, {3, 3}, {2, 2}, {1, 1}, "nhwc"), {{2, 13, 19, channels}}, false);
      check(*pool(type, {2, Dim("h"), Dim("w"), channels}, {2, 3}, {1, 1}, {2, 3}, "nhwc"),
            {{2, 9, 8, channels}, {2, 4, 17, channels}, {2, 0, 9, channels}}, false);
    }
  }
  for (DType type : {i32, f16, f32})
    for (int64_t channels : {8, 5})
      for (int64_t stride : {1, 2}) {
        Graph g;
        Graph::Value x = g.input({type, {Dim("n"), 11, 14, channels}}), w = g.input({type, {3, 5, 1, channels}});
        Graph::Value y = g.apply("conv", {x, w},
                                 {{"strides", Ints{stride, 1}},
                                  {"padding", Ints{1, 1, 2, 1}},
                                  {"dilations", Ints{1, 2}},
                                  {"groups", channels},
                                  {"layout", std::string("nhwc")}})[0];
        g.output(g.apply("relu", {y})[0]);
        check(g, {{2, 11, 14, channels}, {0, 11, 14, channels}}, false, {.ulps = 4, .epsilons = 15 * 90 * 90});
      }
}

TEST_CASE("Convolutions of 16-bit images pad their channels to pieces of 16 bytes", "[gpu]") {
  for (int64_t channels : {1, 3, 11}) {
    INFO("channels " << channels);
    Graph g;
    Graph::Value x = g.input({bf16, {Dim("images"), channels, Dim("height"), 13}});
    Graph::Value w = g.input({bf16, {24, channels, 3, 3}});
    g.output(g.apply("conv", {x, w, Graph::none}, {{"strides", Ints{2, 1}}, {"padding", Ints{1, 1, 1, 1}}})[0]);
    check(g, {{2, channels, 9, 13}, {1, channels, 1, 13}, {0, channels, 9, 13}}, true,
          {.ulps = 4, .epsilons = double(channels * 9 * 90 * 90), .zeroSigns = false});
  }
}

TEST_CASE("Windows of the size of the image are summed in parts", "[gpu]") {
  struct Case {
    int64_t height, padding, stride, dilation;
  };
  // Parts of three of twelve rows that see fewer rows than their step, as many, and up to two steps more.
  for (const Case &c : {Case{12, 0, 1, 1}, {12, 1, 1, 1}, {12, 2, 1, 1}, {12, 2, 2, 1}, {24, 0, 1, 2}, {23, 1, 1, 2}}) {
    INFO("height " << c.height << ", padding " << c.padding << ", stride " << c.stride << ", dilation " << c.dilation);
    Graph g;
    Graph::Value x = g.input({f32, {5, c.height, 13, 4}}), w = g.input({f32, {12, 13, 4, 8}});
    Graph::Value y = g.apply("conv", {x, w, Graph::none},
                             {{"strides", Ints{c.stride, 1}},
                              {"padding", Ints{c.padding, 1, c.padding, 0}},
                              {"dilations", Ints{c.dilation, 1}},
                              {"layout", std::string("nhwc")}})[0];
    g.output(y);
    const uint64_t before = simt::counters().launches;
    check(g, {{5, c.height, 13, 4}}, true, {.ulps = 4, .epsilons = 156 * 4 * 90 * 90, .zeroSigns = false});
    CHECK(simt::counters().launches >= before + 3); // rows of the parts, their sums, the sum of these
  }
}

TEST_CASE("Small products of one value with constant matrices are one product", "[gpu]") {
  for (bool haveBias : {false, true}) {
    INFO("bias " << haveBias);
    Graph g;
    Random random(5);
    auto constant = [&](Ints shape) {
      return g.constant(randomTensor(f32, std::move(shape), {-9, 9}, Mood::Plain, random));
    };
    Graph::Value x = g.input({f32, {3, 7, 20}});
    const Ints columns{24, 4, 40};
    for (size_t i = 0; i < columns.size(); ++i) {
      const Shape shape{3, 7, columns[i]};
      Graph::Value w = g.apply("broadcast_to", {constant({20, columns[i]})}, {{"shape", Shape{3, 20, columns[i]}}})[0];
      Graph::Value y = g.apply("matmul", {x, w})[0];
      if (haveBias) { // on either side
        Graph::Value bias = g.apply("broadcast_to", {constant({columns[i]})}, {{"shape", shape}})[0];
        y = g.apply("add", i ? std::vector{bias, y} : std::vector{y, bias})[0];
      }
      g.output(g.apply(i ? "neg" : "relu", {y})[0]);
    }
    check(g, {{3, 7, 20}}, true, {.ulps = 4, .epsilons = 20 * 90 * 9, .zeroSigns = false});
  }
}

TEST_CASE("Products of f32 with many results by tiles of 128 by 128", "[gpu]") {
  const Tolerance tolerance{.ulps = 4, .epsilons = 40 * 90 * 90, .zeroSigns = false};
  auto product = [](const Shape &x, const Shape &w, bool isShifted) {
    auto g = std::make_unique<Graph>();
    Graph::Value left = g->input({f32, x});
    Graph::Value y = g->apply("matmul", {left, g->input({f32, w})})[0];
    if (isShifted) // an epilogue that reads a value of the result's shape
      y = g->apply("add", {g->apply("relu", {y})[0], y})[0];
    g->output(y);
    return g;
  };
  SECTION("pieces of 16 bytes, and rows and columns that end within tiles") {
    check(*product({24, Dim("rows"), 36}, {24, 36, 132}, true), {{24, 130, 36}, {24, 1, 36}, {24, 0, 36}}, true,
          tolerance);
  }
  SECTION("elements one by one") {
    check(*product({97, 33, 37}, {97, 37, 41}, false), {{97, 33, 37}}, true, tolerance);
  }
  SECTION("fewer slices than stages") {
    check(*product({96, 40, 4}, {96, 4, 44}, false), {{96, 40, 4}}, true, tolerance);
  }
  SECTION("windows") {
    Graph g;
    Graph::Value x = g.input({f32, {Dim("images"), 19, 23, 4}}), w = g.input({f32, {3, 2, 4, 20}});
    g.output(g.apply("conv", {x, w, Graph::none}, {{"strides", Ints{2, 1}}, {"layout", std::string("nhwc")}})[0]);
    check(g, {{3, 19, 23, 4}, {0, 19, 23, 4}}, true, tolerance);
  }
}
