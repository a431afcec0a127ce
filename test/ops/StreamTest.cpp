// Rows have the same bits in any position: in results larger than any cache, which are written by non-temporal stores,
// and at any offset in a cache line.
#include "codegen/Compiler.h"
#include "ir/dialect/Burin.h"
#include "mlir/Parser/Parser.h"
#include "runtime/execute/session/Session.h"
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

using namespace burin;

namespace {

constexpr int64_t kRows = 16, kColumns = 2064, kRepeats = 1024; // 135 MB
constexpr size_t kBlock = size_t(kRows) * kColumns;

std::string tensorType(std::vector<int64_t> shape) {
  std::string type = "tensor<";
  for (int64_t size : shape)
    type += std::to_string(size) + "x";
  return type + "f32>";
}

/// Compiles a function that computes y from x by `op`; `before` has the ops that compute its other operands,
/// `moreTypes` their types.
rt::Program::Ptr compileRows(int64_t rows, int64_t columns, const std::string &op, const std::string &before = {},
                             const std::string &moreTypes = {}) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  ir::loadDialects(context);
  std::string type = tensorType({rows, columns});
  auto module = mlir::parseSourceString<mlir::ModuleOp>("func.func @main(%x: " + type + ") -> " + type + " {\n" +
                                                            before + "  %y = " + op + " : (" + type + moreTypes +
                                                            ") -> " + type + "\n  return %y : " + type + "\n}",
                                                        &context);
  REQUIRE(module);
  auto artifact = codegen::compile(*module, {});
  REQUIRE(mlir::succeeded(artifact));
  rt::Program::Ptr program;
  REQUIRE(rt::Program::loadMemory(std::as_bytes(std::span(*artifact)), nullptr, {}, program).ok());
  return program;
}

/// `offset`: distance of the result from an aligned address, in elements.
std::vector<float> runRows(const rt::Program::Ptr &program, std::vector<float> x, int64_t rows, int64_t offset,
                           int threads) {
  int64_t columns = int64_t(x.size()) / rows;
  std::vector<float> memory(x.size() + 48, -1);
  auto base = reinterpret_cast<uintptr_t>(memory.data());
  float *y = memory.data() + (64 - base % 64) % 64 / sizeof(float) + offset;
  std::unique_ptr<rt::Session> session;
  REQUIRE(rt::Session::create(program, {.threads = threads}, session).ok());
  std::vector<int64_t> shape{rows, columns};
  rt::TensorView in{x.data(), shape.data(), 2, DType::f32}, out{y, shape.data(), 2, DType::f32};
  REQUIRE(session->run({&in, 1}, {&out, 1}).ok());
  CHECK(std::all_of(memory.data(), y, [](float other) { return other == -1; }));
  CHECK(std::all_of(y + x.size(), memory.data() + memory.size(), [](float other) { return other == -1; }));
  return {y, y + x.size()};
}

} // namespace

TEST_CASE("Large results are the same as small ones, at any address") {
  // Divides neither by the number of threads nor by the rows that a kernel processes at once.
  constexpr int64_t rows = kRows * kRepeats + 7;
  std::vector<float> block(kBlock), many;
  for (size_t i = 0; i < kBlock; ++i)
    block[i] = float(int(i * 7919 % 2003) - 1001) / 100;
  for (int64_t i = 0; i <= kRepeats; ++i)
    many.insert(many.end(), block.begin(), block.end());
  many.resize(size_t(rows * kColumns));
  std::string row = tensorType({kColumns}), shared;
  for (int64_t i = 0; i < kColumns; ++i)
    shared += (i ? ", " : "") + std::to_string(float(i % 31) / 8);
  shared = "  %w = burin.constant dense<[" + shared + "]> : " + row + "\n";
  std::string op = GENERATE("burin.gelu %x", "burin.softmax %x {axis = 1 : i64}", "burin.add %x, %b",
                            "burin.rms_norm %x, %w {axis = 1 : i64, epsilon = 1.0e-5}");
  bool isAdd = op.find("%b") != std::string::npos, isNorm = op.find("%w") != std::string::npos;
  auto compile = [&](int64_t rows) {
    std::string type = tensorType({rows, kColumns}), before = isAdd || isNorm ? shared : "";
    if (isAdd)
      before += "  %b = burin.broadcast_to %w {shape = [" + std::to_string(rows) + ", " + std::to_string(kColumns) +
                "]} : (" + row + ") -> " + type + "\n";
    return compileRows(rows, kColumns, op, before, isAdd ? ", " + type : isNorm ? ", " + row : "");
  };
  std::vector<float> expected = runRows(compile(kRows), block, kRows, 0, 1);
  auto large = compile(rows);
  for (auto [offset, threads] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 1)}) {
    std::vector<float> got = runRows(large, many, rows, offset, threads);
    bool same = true;
    for (size_t i = 0; i < got.size(); i += kBlock)
      same = same && std::memcmp(&got[i], expected.data(), std::min(kBlock, got.size() - i) * sizeof(float)) == 0;
    INFO(op << ", offset " << offset << ", " << threads << " threads");
    CHECK(same);
  }
}

TEST_CASE("A row is the same wherever in a line of the cache it begins") {
  int64_t columns = GENERATE(143, 770);
  constexpr int64_t rows = 17; // odd, and more than the elements of a cache line
  std::string op = GENERATE("burin.softmax %x {axis = 1 : i64}", "burin.log_softmax %x {axis = 1 : i64}",
                            "burin.softmax %t {axis = 1 : i64}"); // a bounded operand: two values per row are kept
  bool isLog = op.find("log") != std::string::npos, isBounded = op.find("%t") != std::string::npos;
  auto compile = [&](int64_t rows) {
    std::string type = tensorType({rows, columns});
    return compileRows(rows, columns, op, isBounded ? "  %t = burin.tanh %x : (" + type + ") -> " + type + "\n" : "");
  };
  auto alone = compile(1), together = compile(rows);
  for (float special : {0.f, NAN, INFINITY, -INFINITY}) {
    std::vector<float> row(columns), many;
    for (int64_t i = 0; i < columns; ++i)
      row[i] = float(int(i * 7919 % 2003) - 1001) / 100;
    row[columns - 2] = special;
    for (int64_t i = 0; i < rows; ++i)
      many.insert(many.end(), row.begin(), row.end());
    std::vector<float> expected = runRows(alone, row, 1, 0, 1);
    double sum = 0;
    for (float y : expected)
      sum += isLog ? std::exp(double(y)) : y;
    bool isNumber = std::isfinite(special) || special < 0 || (isBounded && special > 0);
    CHECK((isNumber ? std::fabs(sum - 1) < 1e-5 : std::isnan(sum)));
    for (int64_t offset : {0, 5}) {
      std::vector<float> got = runRows(together, many, rows, offset, 1);
      for (int64_t i = 0; i < rows; ++i) {
        INFO(op << " of " << columns << " columns, row " << i << ", offset " << offset << ", with " << special);
        CHECK(std::memcmp(&got[size_t(i * columns)], expected.data(), expected.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("A normalised row is the same wherever in a line of the cache it begins") {
  int64_t columns = GENERATE(129, 143, 770);
  bool isShifted = GENERATE(false, true); // by a bias; scale and bias begin at a cache line
  constexpr int64_t rows = 17;
  std::string before, weights, type = tensorType({columns});
  auto weight = [&](const char *name, float first) {
    std::string values;
    for (int64_t i = 0; i < columns; ++i)
      values += (i ? ", " : "") + std::to_string(first + float(i % 31) / 8);
    before += std::string("  %") + name + " = burin.constant dense<[" + values + "]> : " + type + "\n";
    weights += ", " + type;
  };
  weight("w", 1);
  if (isShifted)
    weight("b", -2);
  std::string op = isShifted ? "burin.layer_norm %x, %w, %b {axis = 1 : i64, epsilon = 1.0e-5, operandSegmentSizes = "
                               "array<i32: 1, 1, 1>}"
                             : "burin.rms_norm %x, %w {axis = 1 : i64, epsilon = 1.0e-5}";
  auto together = compileRows(rows, columns, op, before, weights);
  std::vector<float> row(columns), many;
  for (int64_t i = 0; i < columns; ++i)
    row[i] = float(int(i * 7919 % 2003) - 901) / 100;
  for (int64_t i = 0; i < rows; ++i)
    many.insert(many.end(), row.begin(), row.end());

  double mean = 0, squares = 0;
  for (float x : row)
    mean += isShifted ? double(x) / double(columns) : 0;
  for (float x : row)
    squares += (x - mean) * (x - mean) / double(columns);
  std::vector<float> expected;
  for (int64_t offset : {0, 5}) {
    std::vector<float> got = runRows(together, many, rows, offset, 1);
    if (expected.empty())
      expected.assign(got.begin(), got.begin() + columns);
    for (int64_t i = 0; i < rows; ++i) {
      INFO(op << " of " << columns << " columns, row " << i << ", offset " << offset);
      CHECK(std::memcmp(&got[size_t(i * columns)], expected.data(), expected.size() * sizeof(float)) == 0);
    }
  }
  for (int64_t i = 0; i < columns; ++i) {
    double y = (row[i] - mean) / std::sqrt(squares + 1e-5) * (1 + double(i % 31) / 8);
    y += isShifted ? -2 + double(i % 31) / 8 : 0;
    CHECK(std::fabs(expected[i] - y) <= 1e-5 * std::max(1.0, std::fabs(y)));
  }
}
