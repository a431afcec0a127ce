// Products of one row with a large matrix leave out what meets a zero, and nobody sees it in the result.
#include "codegen/Compiler.h"
#include "ir/Burin.h"
#include "mlir/Parser/Parser.h"
#include "runtime/Session.h"
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

using namespace burin;

namespace {

constexpr int64_t kDepth = 1031, kColumns = 261; // more than 1 MB, from where on it is done; no whole vectors

std::vector<float> weights(float special) {
  std::vector<float> w(size_t(kDepth) * kColumns);
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = float(int(i * 7919 % 2003) - 1001) / 1000;
  w[5 * kColumns + 7] = special;
  return w;
}

std::string hex(const std::vector<float> &values) {
  std::string text = "0x";
  std::vector<unsigned char> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  for (unsigned char byte : bytes)
    for (int nibble : {byte >> 4, byte & 15})
      text += "0123456789ABCDEF"[nibble];
  return text;
}

/// -(x · w) of so many rows, or of any number ("?").
rt::Program::Ptr compileProduct(const std::string &rows, const std::vector<float> &w, const std::string &target) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  ir::loadDialects(context);
  bool any = rows == "?";
  auto type = [&](int64_t columns) {
    return "tensor<" + rows + "x" + std::to_string(columns) + "xf32" + (any ? ", [\"n\"]>" : ">");
  };
  std::string matrix = "tensor<" + std::to_string(kDepth) + "x" + std::to_string(kColumns) + "xf32>";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "func.func @main(%x: " + type(kDepth) + ") -> " + type(kColumns) + " {\n  %w = burin.constant dense<\"" + hex(w) +
          "\"> : " + matrix + "\n  %p = burin.matmul %x, %w : (" + type(kDepth) + ", " + matrix + ") -> " +
          type(kColumns) + "\n  %y = burin.neg %p : (" + type(kColumns) + ") -> " + type(kColumns) +
          "\n  return %y : " + type(kColumns) + "\n}",
      &context);
  REQUIRE(module);
  codegen::CompileOptions options;
  options.targets = {target};
  auto artifact = codegen::compile(*module, options);
  REQUIRE(mlir::succeeded(artifact));
  rt::Program::Ptr program;
  REQUIRE(rt::Program::loadMemory(std::as_bytes(std::span(*artifact)), nullptr, {}, program).ok());
  return program;
}

/// The first row of the result for so many times this row.
std::vector<float> firstRow(const rt::Program::Ptr &program, const std::vector<float> &x, int64_t rows, int threads) {
  std::vector<float> in, out(size_t(rows * kColumns));
  for (int64_t i = 0; i < rows; ++i)
    in.insert(in.end(), x.begin(), x.end());
  std::unique_ptr<rt::Session> session;
  REQUIRE(rt::Session::create(program, {.threads = threads}, session).ok());
  std::vector<int64_t> inShape{rows, kDepth}, outShape{rows, kColumns};
  rt::TensorView from{in.data(), inShape.data(), 2, DType::f32}, to{out.data(), outShape.data(), 2, DType::f32};
  REQUIRE(session->run({&from, 1}, {&to, 1}).ok());
  return {out.begin(), out.begin() + kColumns};
}

bool isSame(float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); }

/// One element in `period` is not zero, from the `first` on.
std::vector<float> sparseRow(int64_t first, int64_t period) {
  std::vector<float> x(kDepth);
  for (int64_t i = 0; i < kDepth; ++i)
    x[i] = i >= first && (i - first) % period == 0 ? float(i % 101 + 1) / 100 : i % 3 ? 0.f : -0.f;
  return x;
}

} // namespace

TEST_CASE("A row with zeros gives what it gives beside another one, where nothing is left out") {
  std::string target = GENERATE("native", "x86-64-v3");
  std::vector<float> w = weights(GENERATE(1.f, INFINITY, NAN));
  auto one = compileProduct("1", w, target), two = compileProduct("2", w, target), any = compileProduct("?", w, target);
  std::vector<std::vector<float>> inputs{sparseRow(0, 1),          sparseRow(0, 2),     sparseRow(1, 3),
                                         sparseRow(2, 7),          sparseRow(0, 40),    sparseRow(30, 31),
                                         sparseRow(kDepth - 1, 1), sparseRow(kDepth, 1)};
  for (float special : {NAN, INFINITY, -INFINITY, 1e-40f}) {
    inputs.push_back(sparseRow(0, 2));
    inputs.back()[8] = special;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    INFO(target << ", input " << i << ", weight " << w[5 * kColumns + 7]);
    std::vector<float> expected = firstRow(two, inputs[i], 2, 1);
    for (int64_t column = 0; column < kColumns; ++column) {
      double sum = 0;
      for (int64_t k = 0; k < kDepth; ++k)
        sum -= double(inputs[i][k]) * w[size_t(k * kColumns + column)];
      bool isClose =
          std::isfinite(sum) ? std::fabs(expected[column] - sum) < 1e-3 : isSame(expected[column], float(sum));
      if (!isClose)
        FAIL_CHECK("column " << column << ": " << expected[column] << " for " << sum);
    }
    CHECK(std::equal(expected.begin(), expected.end(), firstRow(one, inputs[i], 1, 1).begin(), isSame));
    CHECK(std::equal(expected.begin(), expected.end(), firstRow(one, inputs[i], 1, 2).begin(), isSame));
    CHECK(std::equal(expected.begin(), expected.end(), firstRow(any, inputs[i], 1, 1).begin(), isSame));
    CHECK(std::equal(expected.begin(), expected.end(), firstRow(any, inputs[i], 3, 1).begin(), isSame));
  }
}
