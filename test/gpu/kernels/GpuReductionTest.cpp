// Reductions on a GPU's kernels whose lines are cut into parts, by rows and by columns, and lines that stay in
// registers: lengths around the sizes of a vector, a warp, a block and a part, static and symbolic, with NaN and
// infinities, fused with other work.
#include "test/gpu/emulator/Emulate.h"
#include "test/gpu/emulator/Simt.h"
#include "test/gpu/ptx/Ptx.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

using namespace burin;
using namespace burin::test;
using Ints = std::vector<int64_t>;

namespace {

using Build = std::function<void(Graph &, Graph::Value x)>;

Attrs along(Ints axes, bool keepdims = false) { return {{"axes", std::move(axes)}, {"keepdims", keepdims}}; }

Build reduction(const std::string &op, Ints axes) {
  return [=](Graph &g, Graph::Value x) { g.output(g.apply(op, {x}, along(axes))[0]); };
}
Build positionOf(const std::string &op, int64_t axis) {
  return [=](Graph &g, Graph::Value x) { g.output(g.apply(op, {x}, {{"axis", axis}, {"keepdims", false}})[0]); };
}
/// Mean and variance along the axes, and what is left when they are taken away: two dependent levels, results of the
/// size of x.
Build normalization(Ints axes) {
  return [=](Graph &g, Graph::Value x) {
    Graph::Value mean = g.apply("reduce_mean", {x}, along(axes, true))[0];
    Graph::Value all = g.apply("broadcast_to", {mean}, {{"shape", g.spec(x).shape}})[0];
    Graph::Value centred = g.apply("sub", {x, all})[0];
    Graph::Value squares = g.apply("mul", {centred, centred})[0];
    Graph::Value variance = g.apply("reduce_mean", {squares}, along(axes, true))[0];
    Graph::Value spread = g.apply("broadcast_to", {variance}, {{"shape", g.spec(x).shape}})[0];
    g.output(g.apply("div", {centred, spread})[0]);
    g.output(mean);
    g.output(variance);
  };
}

/// The backward pass of batch norm behind a relu and a padded convolution: two sums of columns, results of full size,
/// and vectors that are updated.
void backwardNorm(Graph &g, Graph::Value gradient) {
  auto apply = [&](const char *op, Graph::Values v, Attrs attrs = {}) { return g.apply(op, v, attrs)[0]; };
  const Shape outer = g.spec(gradient).shape, inner{outer[0], outer[1] - 2, outer[2] - 2, outer[3]};
  auto spread = [&](Graph::Value v) { return apply("broadcast_to", {v}, {{"shape", inner}}); };
  Graph::Value mask = g.input({boolean, inner}), x = g.input({f32, inner});
  Graph::Value scale = g.input({f32, {outer[3]}}), momentum = g.input({f32, {outer[3]}});
  const Ints edge{0, -1, -1, 0};
  Graph::Value inside = apply("pad", {gradient}, {{"low", edge}, {"high", edge}, {"interior", Ints{0, 0, 0, 0}}});
  Graph::Value passed = apply("mul", {apply("cast", {mask}, {{"dtype", f32}}), inside});
  Graph::Value sum = apply("reduce_sum", {passed}, along({0, 1, 2}));
  Graph::Value product = apply("reduce_sum", {apply("mul", {passed, x})}, along({0, 1, 2}));
  Graph::Value scaled = apply("mul", {sum, scale});
  g.output(apply("add", {apply("mul", {passed, spread(scale)}), apply("mul", {x, spread(scaled)})}));
  g.output(apply("add", {momentum, product}));
  g.output(scaled);
}

/// Sums per channel, with channels first: lines of several dimensions, of an operand whose rows are not aligned.
void sumsOfChannels(Graph &g, Graph::Value gradient) {
  const Shape outer = g.spec(gradient).shape, inner{outer[0], outer[1], outer[2], outer[3] - 2};
  const Ints edge{0, 0, 0, -1};
  Graph::Value inside = g.apply("pad", {gradient}, {{"low", edge}, {"high", edge}, {"interior", Ints{0, 0, 0, 0}}})[0];
  Graph::Value x = g.input({f32, inner});
  Graph::Value sum = g.apply("reduce_sum", {g.apply("mul", {inside, x})[0]}, along({0, 2, 3}, true))[0];
  Graph::Value spread = g.apply("broadcast_to", {sum}, {{"shape", inner}})[0];
  g.output(g.apply("add", {inside, g.apply("mul", {x, spread})[0]})[0]);
}

/// Columns whose sums scale each row, and which a product reads.
void scaledBySums(Graph &g, Graph::Value x) {
  auto apply = [&](const char *op, Graph::Values v, Attrs attrs = {}) { return g.apply(op, v, attrs)[0]; };
  const Shape shape = g.spec(x).shape, row{shape[1]}, line{1, shape[1]};
  Graph::Value v = apply("matmul", {g.input({f32, {1, 8}}), g.input({f32, {8, shape[1]}})});
  v = apply("reshape", {v}, {{"shape", row}});
  auto spread = [&](Graph::Value y) { return apply("broadcast_to", {y}, {{"shape", shape}}); };
  Graph::Value sum = apply("mul", {apply("reduce_sum", {x}, along({0})), v});
  g.output(apply("add", {apply("mul", {x, spread(sum)}), spread(v)}));
  g.output(apply("matmul", {apply("reshape", {sum}, {{"shape", line}}), g.input({f32, {shape[1], 3}})}));
}

/// Sums of many powers along an axis, and those of a second level: more than fit in shared memory with all threads.
Build manySums(int64_t axis) {
  return [=](Graph &g, Graph::Value x) {
    Graph::Value power = x, total = x;
    for (int i = 0; i < 30; ++i) {
      power = g.apply("mul", {power, x})[0];
      Graph::Value sum = g.apply("reduce_mean", {power}, along({axis}, true))[0];
      total = g.apply("add", {total, g.apply("broadcast_to", {sum}, {{"shape", g.spec(x).shape}})[0]})[0];
    }
    g.output(g.apply("reduce_mean", {total}, along({axis}))[0]);
  };
}

struct Reduced {
  DType type;
  Shape shape;
  Build build;

  /// Runs with these shapes; with NaN and infinities, too, if results must be exact.
  void check(const std::vector<Ints> &shapes, Tolerance tolerance = {}) const {
    const bool isExact = tolerance.ulps == 0 && tolerance.absolute == 0;
    Graph g;
    build(g, g.input({type, shape}));
    auto compiled = g.compile("cuda-sm_80+ptx", [](burin::codegen::CompileOptions &options) {
      options.emulate = [](llvm::Module &kernels, llvm::ArrayRef<std::string> symbols) {
        checkedPtx(kernels, "cuda-sm_80+ptx");
        return emulated(kernels, symbols);
      };
    });
    Random random(7);
    for (const Ints &sizes : shapes)
      for (Mood mood : {Mood::Plain, Mood::Special}) {
        if (!isExact && mood != Mood::Plain)
          continue;
        Tensors inputs{randomTensor(type, sizes, isExact ? Draw{} : Draw{1, 2}, mood, random)};
        for (Graph::Value v : llvm::ArrayRef(g.inputs()).drop_front())
          inputs.push_back(randomTensor(g.spec(v).dtype, sizesOf(g.spec(v).shape, sizes), {1, 2}, Mood::Plain, random));
        std::string text = std::string(name(type));
        for (int64_t size : sizes)
          text += " " + std::to_string(size);
        INFO(text);
        Tensors results = compiled->run(inputs), expected = g.interpret(inputs);
        for (size_t i = 0; i < results.size(); ++i)
          CHECK(difference(results[i], expected[i], tolerance) == "");
        for (const std::string &error : simt::takeErrors())
          FAIL_CHECK(error);
      }
  }

private:
  /// Sizes of another input; its symbols are those of the first one.
  Ints sizesOf(const Shape &other, const Ints &sizes) const {
    Ints known;
    for (const Dim &d : other)
      known.push_back(d.isStatic() ? d.value() : sizes[size_t(llvm::find(shape, d) - shape.begin())]);
    return known;
  }
};

} // namespace

static const Tolerance kSum{.ulps = 100}, kNorm{.absolute = 2e-3};

TEST_CASE("Long lines are cut into parts", "[gpu]") {
  const Dim n("n"), m("m");
  Reduced{f32, {70001}, reduction("reduce_sum", {0})}.check({{70001}}, kSum);
  Reduced{f32, {65536}, reduction("reduce_sum", {0})}.check({{65536}}, kSum);
  Reduced{bf16, {3, 20008}, reduction("reduce_mean", {1})}.check({{3, 20008}}, kSum);
  Reduced{f64, {2, 9, 5000}, reduction("reduce_sum", {0, 2})}.check({{2, 9, 5000}}, kSum);
  Reduced{f32, {n}, reduction("reduce_sum", {0})}.check({{0}, {1}, {8192}, {8193}, {30000}}, kSum);
  Reduced{f32, {n, 40000}, reduction("reduce_max", {1})}.check({{0, 40000}, {3, 40000}});
  Reduced{i32, {m, n}, reduction("reduce_sum", {1})}.check({{2, 0}, {3, 20000}, {5, 3}});
  Reduced{boolean, {50000}, reduction("reduce_any", {0})}.check({{50000}});
  Reduced{f16, {3, 30000}, positionOf("argmax", 1)}.check({{3, 30000}});
  Reduced{f32, {n}, positionOf("argmin", 0)}.check({{1}, {20000}});
  Reduced{i8, {20000}, positionOf("argmax", 0)}.check({{20000}}); // the first of equals
}

TEST_CASE("Long columns are cut into parts", "[gpu]") {
  const Dim n("n"), m("m");
  Reduced{f32, {3000, 64}, reduction("reduce_sum", {0})}.check({{3000, 64}}, kSum);
  Reduced{bf16, {2, 700, 136}, reduction("reduce_sum", {0, 1})}.check({{2, 700, 136}}, kSum);
  Reduced{f32, {5000, 3}, reduction("reduce_mean", {0})}.check({{5000, 3}}, kSum);
  Reduced{f32, {3, 900, 5}, reduction("reduce_max", {1})}.check({{3, 900, 5}});
  Reduced{i8, {4000, 48}, reduction("reduce_min", {0})}.check({{4000, 48}});
  Reduced{boolean, {2000, 40}, reduction("reduce_all", {0})}.check({{2000, 40}});
  Reduced{f32, {2000, 12}, positionOf("argmax", 0)}.check({{2000, 12}});
  Reduced{i8, {2000, 16}, positionOf("argmin", 0)}.check({{2000, 16}});
  Reduced{f32, {n, 64}, reduction("reduce_sum", {0})}.check({{0, 64}, {1, 64}, {511, 64}, {2000, 64}}, kSum);
  Reduced{f16, {n, m}, reduction("reduce_sum", {0})}.check({{0, 3}, {700, 0}, {700, 50}, {5, 40}}, kSum);
}

TEST_CASE("Dependent reductions of lines and columns that are cut", "[gpu]") {
  const Dim n("n"), m("m");
  Reduced{f32, {2, 20004}, normalization({1})}.check({{2, 20004}}, kNorm);
  Reduced{f32, {n}, normalization({0})}.check({{1}, {8000}, {20001}}, kNorm);
  Reduced{f32, {2500, 68}, normalization({0})}.check({{2500, 68}}, kNorm);
  Reduced{f32, {n, 6}, normalization({0})}.check({{1, 6}, {255, 6}, {1500, 6}}, kNorm);
  Reduced{f32, {n, m}, normalization({0})}.check({{0, 6}, {10, 6}, {1500, 6}}, kNorm);
}

TEST_CASE("Lines stay in registers between levels", "[gpu]") {
  for (int64_t size : {1, 4, 31, 32, 128, 132, 1000, 1024, 1028, 2052, 8192, 8196, 9001})
    for (int64_t lines : {1, 7})
      Reduced{f32, {lines, size}, normalization({1})}.check({{lines, size}}, kNorm);
  Reduced{f32, {1030, 40}, normalization({1})}.check({{1030, 40}}, kNorm);
  Reduced{bf16, {9, 1032}, reduction("reduce_max", {1})}.check({{9, 1032}});
  Reduced{f32, {Dim("n"), 1000}, normalization({1})}.check({{0, 1000}, {6, 1000}}, kNorm);
  for (int64_t size : {500, 512, 520, 2052, 4096, 8192}) // many lines: one to eight vectors per thread
    Reduced{f32, {Dim("n"), size}, normalization({1})}.check({{5, size}}, kNorm);
  for (int64_t size : {768, 1024})
    Reduced{bf16, {Dim("n"), size}, normalization({1})}.check({{3, size}}, {.absolute = 0.1});
}

TEST_CASE("Columns of many parts are combined once for all blocks", "[gpu]") {
  const Dim n("n");
  Reduced{f32, {8500, 64}, normalization({0})}.check({{8500, 64}}, kNorm);
  Reduced{f32, {n, 64}, normalization({0})}.check({{0, 64}, {1, 64}, {511, 64}, {512, 64}, {2600, 64}}, kNorm);
  Reduced{bf16, {n, 40}, normalization({0})}.check({{1, 40}, {1500, 40}}, {.absolute = 0.1});
}

TEST_CASE("Reductions fused with other work", "[gpu]") {
  const Tolerance tolerance{.ulps = 500};
  Reduced{f32, {2, 27, 19, 24}, backwardNorm}.check({{2, 27, 19, 24}}, tolerance);
  Reduced{f32, {3, 30, 22, 7}, backwardNorm}.check({{3, 30, 22, 7}}, tolerance);
  Reduced{f32, {2, 2, 9, 8}, backwardNorm}.check({{2, 2, 9, 8}}, tolerance);
  Reduced{f32, {6, 3, 50, 38}, sumsOfChannels}.check({{6, 3, 50, 38}}, tolerance);
  Reduced{f32, {2, 3, 5, 34}, sumsOfChannels}.check({{2, 3, 5, 34}}, tolerance);
  Reduced{f32, {700, 64}, scaledBySums}.check({{700, 64}}, tolerance);
  Reduced{f32, {Dim("n"), 12}, scaledBySums}.check({{0, 12}, {1, 12}, {2000, 12}}, tolerance);
}

TEST_CASE("Reductions with many accumulators", "[gpu]") {
  const Tolerance tolerance{.ulps = 1000};
  Reduced{f64, {600, 5}, manySums(0)}.check({{600, 5}}, tolerance);
  Reduced{f64, {3, 2100}, manySums(1)}.check({{3, 2100}}, tolerance);
}

// The exponential of the distance to the largest element of a row has fewer instructions than others, and the same
// bits: for numbers of all magnitudes, results that are denormal or 0, NaN and infinities.
TEST_CASE("Exponentials of distances to the largest element have the bits of exp", "[gpu]") {
  constexpr int64_t lines = 64, length = 1024;
  Tensors inputs{ir::RefTensor::zeros(f32, {lines, length})};
  std::vector<double> &x = inputs[0].reals();
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = i % length ? -std::bit_cast<float>(uint32_t(i * 0x8003 % 0x7fc00000)) : 0;
  x[5] = NAN, x[6] = -INFINITY, x[7] = -0.0;
  auto run = [&](bool isDistance) {
    Graph g;
    Graph::Value v = g.input({f32, {lines, length}});
    if (isDistance) {
      Graph::Value largest = g.apply("reduce_max_num", {v}, along({1}, true))[0];
      v = g.apply("sub", {v, g.apply("broadcast_to", {largest}, {{"shape", Shape{lines, length}}})[0]})[0];
    }
    g.output(g.apply("exp", {v})[0]);
    auto compiled = g.compile("cuda-sm_80+ptx", [](auto &options) { options.emulate = emulated; });
    return compiled->run(inputs)[0];
  };
  CHECK(run(true).toBytes() == run(false).toBytes());
}
