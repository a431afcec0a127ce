// Attention with many rows whose operands are views. By warpgroups: asynchronous copies if columns are adjacent and
// aligned, single elements otherwise.
#include "test/gpu/emulator/Emulate.h"
#include "test/gpu/emulator/Simt.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using Ints = std::vector<int64_t>;

namespace {

/// Compares with the interpreter; whether asynchronous copies have been used. `shapes` are those of the inputs.
bool copiesPieces(Graph &g, const std::vector<Ints> &shapes) {
  auto compiled =
      g.compile("cuda-sm_90a+ptx", [](burin::codegen::CompileOptions &options) { options.emulate = emulated; });
  Random random(3);
  Tensors inputs;
  for (const Ints &shape : shapes)
    inputs.push_back(randomTensor(bf16, shape, {-2, 2}, Mood::Plain, random));
  simt::Counters before = simt::counters();
  INFO(g.text());
  CHECK(difference(compiled->run(inputs)[0], g.interpret(inputs)[0],
                   {.ulps = 4, .epsilons = 128, .zeroSigns = false}) == "");
  for (const std::string &error : simt::takeErrors())
    FAIL_CHECK(error);
  CHECK(simt::counters().groupProducts > before.groupProducts);
  return simt::counters().copies > before.copies;
}

void attend(Graph &g, Graph::Value q, Graph::Value k, Graph::Value v) {
  g.output(g.apply("scaled_dot_product_attention", {q, k, v, Graph::none})[0]);
}

} // namespace

TEST_CASE("Attention by warpgroups reads heads that alternate in memory by asynchronous copies", "[gpu]") {
  Graph g;
  auto heads = [&](int64_t length) { // [length, heads, columns]
    return g.apply("transpose", {g.input({bf16, {length, 2, 24}})}, {{"perm", Ints{1, 0, 2}}})[0];
  };
  Graph::Value q = heads(70), k = heads(40), v = heads(40);
  attend(g, q, k, v);
  CHECK(copiesPieces(g, {{70, 2, 24}, {40, 2, 24}, {40, 2, 24}}));
}

TEST_CASE("Attention by warpgroups reads transposed keys from a copy", "[gpu]") {
  Graph g;
  Graph::Value q = g.input({bf16, {70, 24}}), k = g.input({bf16, {24, 140}}), v = g.input({bf16, {140, 40}});
  attend(g, q, g.apply("transpose", {k}, {{"perm", Ints{1, 0}}})[0], v);
  CHECK(copiesPieces(g, {{70, 24}, {24, 140}, {140, 40}}));
}

TEST_CASE("Attention by warpgroups reads rows that are not aligned one by one", "[gpu]") {
  Graph g;
  auto part = [&](int64_t length, int64_t columns) { // of rows with one more column
    return g.apply("slice", {g.input({bf16, {length, columns + 1}})},
                   {{"starts", Shape{0, 0}}, {"stops", Shape{length, columns}}, {"steps", Ints{1, 1}}})[0];
  };
  Graph::Value q = part(70, 24), k = part(140, 24), v = part(140, 40);
  attend(g, q, k, v);
  CHECK_FALSE(copiesPieces(g, {{70, 25}, {140, 25}, {140, 41}}));
}

TEST_CASE("Attention with many rows reads slices of a value in place", "[gpu]") {
  struct Case {
    const char *target;
    DType dtype;
    Dim rows;
    int64_t columns;
  };
  const Dim n("n");
  for (const auto &[target, dtype, rows, columns] :
       {Case{"cuda-sm_90a+ptx", bf16, 70, 24}, Case{"cuda-sm_90a+ptx", bf16, n, 24},
        Case{"cuda-sm_80+ptx", f16, 70, 24}, Case{"cuda-sm_80+ptx", f16, 70, 20}, Case{"cuda-sm_80+ptx", f32, n, 20}}) {
    constexpr int64_t kHeads = 3;
    const int64_t width = kHeads * columns;
    Graph g;
    Graph::Value all = g.input({dtype, {rows, 3 * width}}); // as of a product with three matrices of weights
    auto heads = [&](int64_t part) {                        // [heads, rows, columns]
      Graph::Value x = g.apply(
          "slice", {all},
          {{"starts", Shape{0, part * width}}, {"stops", Shape{rows, (part + 1) * width}}, {"steps", Ints{1, 1}}})[0];
      x = g.apply("reshape", {x}, {{"shape", Shape{rows, kHeads, columns}}})[0];
      return g.apply("transpose", {x}, {{"perm", Ints{1, 0, 2}}})[0];
    };
    attend(g, heads(0), heads(1), heads(2));
    size_t kernels = 0;
    auto compiled = g.compile(target, [&](burin::codegen::CompileOptions &options) {
      options.emulate = [&](llvm::Module &module, llvm::ArrayRef<std::string> symbols) {
        kernels = symbols.size();
        return emulated(module, symbols);
      };
    });
    INFO(target << "\n" << g.text());
    CHECK(kernels == 1);
    for (int64_t length : rows.isStatic() ? Ints{rows.value()} : Ints{70, 1}) {
      Random random(5);
      Tensors inputs{randomTensor(dtype, {length, 3 * width}, {-2, 2}, Mood::Plain, random)};
      INFO(length);
      CHECK(difference(compiled->run(inputs)[0], g.interpret(inputs)[0],
                       {.ulps = 4, .epsilons = 128, .zeroSigns = false}) == "");
      for (const std::string &error : simt::takeErrors())
        FAIL_CHECK(error);
    }
  }
}
