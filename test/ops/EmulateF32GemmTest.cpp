// The emulation of f32 products by bf16 tiles is as exact as f32, and products of values that have no bf16 terms are
// computed in f32. Each test runs on AMX, and once more with loops in place of the tile operations.
#include "codegen/Compiler.h"
#include "test/Features.h"
#include "test/ops/Graph.h"
#include "test/ops/TileLoops.h"
#include <catch2/catch.hpp>
#include <cmath>

using namespace burin;
using namespace burin::test;
using ir::RefTensor;

namespace {

constexpr const char *kTiles = "x86-64-v4+amx", *kLoops = "x86-64-v4+bf16", *kPlain = "x86-64-v4";

/// Numbers of all magnitudes from 2^-12 to 1, of both signs, with full mantissas, and some zeros.
RefTensor numbers(int64_t rows, int64_t columns, uint32_t seed) {
  RefTensor t = RefTensor::zeros(DType::f32, {rows, columns});
  for (double &x : t.reals()) {
    seed = seed * 1664525 + 1013904223;
    float fraction = float(seed >> 8) / float(1 << 24);
    seed = seed * 1664525 + 1013904223;
    float sign = seed >> 31 ? 1.f : -1.f;
    x = seed >> 24 & 15 ? double(sign * std::ldexp(1 + fraction, -int(seed >> 16 & 15) / 2)) : 0;
  }
  return t;
}

/// Compiles relu(x · w - y), written in place of -y.
std::unique_ptr<Compiled> compiled(int64_t rows, const RefTensor &w, const std::string &target, bool usesTiles = true) {
  Graph g;
  Graph::Value product = g.apply("matmul", {g.input({f32, {rows, w.shape[0]}}), g.constant(w)})[0];
  Graph::Value other = g.apply("neg", {g.input({f32, {rows, w.shape[1]}})})[0];
  g.output(g.apply("relu", {g.apply("add", {product, other})[0]})[0]);
  if (target != kLoops)
    return g.compile(target);
  bool hasTiles = false;
  auto expand = [&](codegen::CompileOptions &options) {
    options.instrumentCode = [&](mlir::ModuleOp code) { hasTiles |= expandTileOps(code); };
  };
  std::vector<std::byte> artifact = g.artifact({kTiles}, expand);
  REQUIRE(hasTiles == usesTiles);
  return std::make_unique<Compiled>(forTarget(artifact, kLoops));
}

bool isSame(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

struct Sizes {
  int64_t rows, depth, columns;
};

void checkProducts(const std::string &target) {
  auto [rows, depth, columns] = GENERATE(Sizes{128, 384, 320}, Sizes{97, 401, 333}, Sizes{48, 3137, 95},
                                         Sizes{211, 1100, 65}, Sizes{65, 2048, 129}, Sizes{389, 64, 500});
  RefTensor x = numbers(rows, depth, 1), w = numbers(depth, columns, 2), y = numbers(rows, columns, 3);
  std::vector<double> got = compiled(rows, w, target)->run({x, y})[0].reals();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      double sum = -y[size_t(row * columns + column)], all = std::fabs(sum);
      for (int64_t k = 0; k < depth; ++k) {
        double product = x[size_t(row * depth + k)] * w[size_t(k * columns + column)];
        sum += product;
        all += std::fabs(product);
      }
      double error = std::fabs(got[size_t(row * columns + column)] - std::max(sum, 0.));
      if (error > all * 0x1p-22)
        FAIL_CHECK(rows << "x" << depth << "x" << columns << " (" << row << ", " << column << "): error " << error
                        << " of " << all);
    }
}

void checkRows(const std::string &target) {
  constexpr int64_t rows = 100, depth = 500, columns = 250;
  RefTensor plain = numbers(rows, depth, 1), w = numbers(depth, columns, 2), y = numbers(rows, columns, 3);
  RefTensor x = plain;
  std::vector<double> special{INFINITY,        -INFINITY,      NAN, double(1e-30f), double(1e-42f), double(-0x1p-53),
                              double(3.4e38f), double(3.3e38f)};
  for (size_t i = 0; i < special.size(); ++i)
    x.reals()[i * 13 * depth + i * 37] = special[i];
  auto f32Product = compiled(rows, w, kPlain), product = compiled(rows, w, target);
  std::vector<double> expected = f32Product->run({x, y})[0].reals(), got = product->run({x, y})[0].reals(),
                      before = product->run({plain, y})[0].reals();
  for (int64_t row = 0; row < rows; ++row) {
    INFO("row " << row);
    auto &same = row % 13 == 0 && row / 13 < int64_t(special.size()) ? expected : before;
    CHECK(std::equal(same.begin() + row * columns, same.begin() + (row + 1) * columns, got.begin() + row * columns,
                     isSame));
  }
}

void checkWeights(const std::string &target) {
  constexpr int64_t rows = 100, depth = 500, columns = 250;
  RefTensor x = numbers(rows, depth, 1), w = numbers(depth, columns, 2), y = numbers(rows, columns, 3);
  w.reals()[700] = GENERATE(double(INFINITY), double(NAN), double(1e-40f), double(1e-20f), double(1e30f));
  std::vector<double> expected = compiled(rows, w, kPlain)->run({x, y})[0].reals();
  std::vector<double> got = compiled(rows, w, target, false)->run({x, y})[0].reals();
  CHECK(std::equal(expected.begin(), expected.end(), got.begin(), isSame));
}

} // namespace

TEST_CASE("Products of terms are as exact as f32") {
  REQUIRE_FEATURE("amx_bf16");
  checkProducts(kTiles);
}
TEST_CASE("Products of terms are as exact as f32, with loops for tile operations") {
  REQUIRE_FEATURE("avx512_bf16");
  checkProducts(kLoops);
}

TEST_CASE("Rows with values that have no bf16 terms are those of f32, and other rows do not change") {
  REQUIRE_FEATURE("amx_bf16");
  checkRows(kTiles);
}
TEST_CASE("Rows with values that have no bf16 terms are those of f32, with loops for tile operations") {
  REQUIRE_FEATURE("avx512_bf16");
  checkRows(kLoops);
}

TEST_CASE("Weights without bf16 terms are multiplied in f32") {
  REQUIRE_FEATURE("amx_bf16");
  checkWeights(kTiles);
}
TEST_CASE("Weights without bf16 terms are multiplied in f32, with loops for tile operations") {
  REQUIRE_FEATURE("avx512_bf16");
  checkWeights(kLoops);
}
