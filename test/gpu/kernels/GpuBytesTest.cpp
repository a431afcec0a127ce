// Products of bytes less zero points, as in quantised models, on tensor cores: the bits of the products of i32 that the
// graph has.
#include "test/gpu/emulator/Emulate.h"
#include "test/gpu/emulator/Simt.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using Ints = std::vector<int64_t>;

namespace {

enum class Zero { None, Constant, Computed };

/// A tensor of bytes less its zero point, as i32.
Graph::Value centered(Graph &g, const TensorSpec &spec, Zero zero, int64_t number) {
  auto wide = [&](Graph::Value v) { return g.apply("cast", {v}, {{"dtype", i32}})[0]; };
  Graph::Value x = wide(g.input(spec));
  if (zero == Zero::None)
    return x;
  ir::RefTensor constant = ir::RefTensor::zeros(i32, {});
  constant.ints()[0] = number;
  Graph::Value point = zero == Zero::Constant ? g.constant(constant) : wide(g.input({spec.dtype, {}}));
  return g.apply("sub", {x, g.apply("broadcast_to", {point}, {{"shape", spec.shape}})[0]})[0];
}

/// A weight whose elements are constants from `low` to `low` + 255.
Graph::Value weight(Graph &g, const Ints &shape, int64_t low) {
  ir::RefTensor w = ir::RefTensor::zeros(i32, shape);
  for (size_t i = 0; i < w.ints().size(); ++i)
    w.ints()[i] = low + int64_t(i * 37 % 256);
  return g.constant(w);
}

/// Compares the bits with the interpreter's; whether tensor cores have multiplied.
bool usesTensorCores(Graph &g, int64_t size = 70) {
  auto compiled =
      g.compile("cuda-sm_80+ptx", [](burin::codegen::CompileOptions &options) { options.emulate = emulated; });
  Random random(3);
  Tensors inputs;
  for (Graph::Value v : g.inputs()) {
    Ints shape;
    for (const Dim &d : g.spec(v).shape)
      shape.push_back(d.isStatic() ? d.value() : size);
    inputs.push_back(randomTensor(g.spec(v).dtype, shape, {-128, 255}, Mood::Plain, random));
  }
  simt::Counters before = simt::counters();
  INFO(g.text());
  CHECK(difference(compiled->run(inputs)[0], g.interpret(inputs)[0], {}) == "");
  for (const std::string &error : simt::takeErrors())
    FAIL_CHECK(error);
  return simt::counters().products > before.products;
}

Graph::Value matmul(Graph &g, Graph::Value x, Graph::Value w) { return g.apply("matmul", {x, w})[0]; }

} // namespace

TEST_CASE("Products of bytes with zero points run on tensor cores", "[gpu]") {
  const Zero kZeros[] = {Zero::None, Zero::Constant, Zero::Computed};
  int n = 0;
  for (DType left : {i8, u8})
    for (DType right : {i8, u8}) {
      Graph g;
      Zero zero = kZeros[n % 3], other = kZeros[(n + n / 3 + 1) % 3];
      Graph::Value x = centered(g, {left, {70, 136}}, zero, 3), w = centered(g, {right, {136, 72}}, other, 130);
      g.output(matmul(g, x, w));
      CHECK(usesTensorCores(g));
      ++n;
    }
}

TEST_CASE("Products of bytes with symbolic sizes, few rows and batches", "[gpu]") {
  for (int64_t rows : {1, 17, 150}) {
    Graph g;
    g.output(matmul(g, centered(g, {u8, {Dim("rows"), 64}}, Zero::Computed, 0), weight(g, {64, 40}, -128)));
    CHECK(usesTensorCores(g, rows));
  }
  Graph g;
  Graph::Value x = centered(g, {u8, {3, 20, 33}}, Zero::Constant, 200);
  Graph::Value w = centered(g, {i8, {3, 33, 18}}, Zero::Computed, 0);
  g.output(matmul(g, x, w));
  CHECK(usesTensorCores(g));
}

TEST_CASE("Constants of nine bits are bytes and a number, if they span 256 numbers", "[gpu]") {
  for (int64_t low : {-255, -128, -7, 0}) {
    Graph g;
    g.output(matmul(g, centered(g, {u8, {5, 48}}, Zero::Constant, 9), weight(g, {48, 32}, low)));
    CHECK(usesTensorCores(g));
  }
  Graph g;
  Graph::Value w = weight(g, {48, 32}, -255);
  g.output(matmul(g, centered(g, {u8, {5, 48}}, Zero::None, 0), g.apply("mul", {w, w})[0]));
  CHECK_FALSE(usesTensorCores(g));
}

TEST_CASE("Convolutions of bytes with padding run on tensor cores if the zero point is constant", "[gpu]") {
  for (Zero zero : {Zero::None, Zero::Constant, Zero::Computed}) {
    Graph g;
    Graph::Value x = centered(g, {u8, {2, 16, 9, 8}}, zero, 7);
    g.output(g.apply("conv", {x, weight(g, {32, 16, 3, 3}, -128), Graph::none},
                     {{"padding", Ints{1}}, {"strides", Ints{2}}})[0]);
    CHECK(usesTensorCores(g) == (zero != Zero::Computed));
  }
  Graph g; // in groups, without padding
  Graph::Value x = centered(g, {i8, {2, 8, 9, 8}}, Zero::Computed, 0);
  g.output(g.apply("conv", {x, weight(g, {12, 4, 3, 3}, -128), Graph::none}, {{"groups", int64_t(2)}})[0]);
  CHECK(usesTensorCores(g));
}
