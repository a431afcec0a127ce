#include "test/reference/Harness.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using Catch::Matchers::Contains;
using ir::RefTensor;

TEST_CASE("a function with symbolic sizes runs for any of them") {
  const char *text = R"(
    func.func @main(%x: tensor<?x3xf32, ["b"]>) -> (tensor<?xf32, ["b*6"]>, tensor<?xf32, ["b"]>) {
      %0 = burin.concat %x, %x {axis = 1 : i64} : (tensor<?x3xf32, ["b"]>, tensor<?x3xf32, ["b"]>) -> tensor<?x6xf32, ["b"]>
      %1 = burin.reshape %0 {shape = ["b*6"]} : (tensor<?x6xf32, ["b"]>) -> tensor<?xf32, ["b*6"]>
      %2 = burin.reduce_sum %x {axes = array<i64: 1>} : (tensor<?x3xf32, ["b"]>) -> tensor<?xf32, ["b"]>
      return %1, %2 : tensor<?xf32, ["b*6"]>, tensor<?xf32, ["b"]>
    })";
  for (int64_t b : {0, 1, 4}) {
    Outcome outcome = interpretText(text, {RefTensor{f32, {b, 3}, std::vector<double>(size_t(3 * b), 2.0)}});
    REQUIRE(outcome.error == "");
    CHECK(outcome.results[0].shape == std::vector<int64_t>{6 * b});
    CHECK(outcome.results[1].reals() == std::vector<double>(size_t(b), 6.0));
  }
}

TEST_CASE("kernels, calls and constants, the observer sees every op") {
  const char *text = R"(
    func.func @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = burin.kernel(%a = %x) : (tensor<2xf32>) -> tensor<2xf32> {
        %1 = burin.add %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        burin.yield %1 : tensor<2xf32>
      }
      return %0 : tensor<2xf32>
    }
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %c = burin.constant dense<[1.0, 10.0]> : tensor<2xf32>
      %0 = func.call @twice(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = burin.mul %0, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %1 : tensor<2xf32>
    })";
  std::vector<std::string> seen;
  Outcome outcome =
      interpretText(text, {reals({3, 4})}, [&](const std::string &op, const std::vector<RefTensor> &results) {
        seen.push_back(op + " " + std::to_string(results[0][1]).substr(0, 2));
      });
  REQUIRE(outcome.error == "");
  CHECK(outcome->reals() == std::vector<double>{6, 80});
  CHECK(seen == std::vector<std::string>{"constant 10", "add 8.", "kernel 8.", "call 8.", "mul 80"});
}

TEST_CASE("one branch runs, and loops turn as long as their condition says so") {
  const char *text = R"(
    func.func private @less(%i: tensor<i64>, %s: tensor<?xf32, ["n"]>, %x: tensor<?xf32, ["n"]>, %n: tensor<i64>) -> tensor<i1> {
      %0 = burin.lt %i, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
      return %0 : tensor<i1>
    }
    func.func private @turn(%i: tensor<i64>, %s: tensor<?xf32, ["n"]>, %x: tensor<?xf32, ["n"]>, %n: tensor<i64>) -> (tensor<i64>, tensor<?xf32, ["n"]>) {
      %one = burin.constant dense<1> : tensor<i64>
      %0 = burin.add %i, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %1 = burin.add %s, %x : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
      return %0, %1 : tensor<i64>, tensor<?xf32, ["n"]>
    }
    func.func private @same(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
      return %x : tensor<?xf32, ["n"]>
    }
    func.func private @negative(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
      %0 = burin.neg %x : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
      return %0 : tensor<?xf32, ["n"]>
    }
    func.func @main(%p: tensor<i1>, %x: tensor<?xf32, ["n"]>, %n: tensor<i64>) -> (tensor<i64>, tensor<?xf32, ["n"]>) {
      %zero = burin.constant dense<0> : tensor<i64>
      %0 = burin.if %p, @same, @negative(%x) : (tensor<i1>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
      %1:2 = burin.while @less, @turn(%zero, %x, %0, %n) {carried = 2 : i64} : (tensor<i64>, tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>, tensor<i64>) -> (tensor<i64>, tensor<?xf32, ["n"]>)
      return %1#0, %1#1 : tensor<i64>, tensor<?xf32, ["n"]>
    })";
  for (int64_t turns : {-1, 0, 1, 5})
    for (bool isSame : {true, false}) {
      RefTensor condition{boolean, {}, std::vector<int64_t>{isSame}}, limit{i64, {}, std::vector<int64_t>{turns}};
      Outcome outcome = interpretText(text, {condition, reals({3, 4}), limit});
      REQUIRE(outcome.error == "");
      int64_t count = std::max<int64_t>(turns, 0);
      double factor = isSame ? double(1 + count) : double(1 - count);
      CHECK(outcome.results[0].ints() == std::vector<int64_t>{count});
      CHECK(outcome.results[1].reals() == std::vector<double>{3 * factor, 4 * factor});
    }
}

TEST_CASE("what is wrong is said") {
  const char *square = R"(
    func.func @main(%x: tensor<?x?xf32, ["n", "n"]>, %y: tensor<?xf32, ["n + 1"]>) -> tensor<?x?xf32, ["n", "n"]> {
      return %x : tensor<?x?xf32, ["n", "n"]>
    })";
  CHECK(interpretText(square, {RefTensor::zeros(f32, {2, 2}), RefTensor::zeros(f32, {3})}).error == "");
  CHECK_THAT(interpretText(square, {RefTensor::zeros(f32, {2, 3}), RefTensor::zeros(f32, {3})}).error,
             Contains("input 0 is f32[2, 3], expected f32[n, n] with n = 2"));
  CHECK_THAT(interpretText(square, {RefTensor::zeros(f32, {2, 2}), RefTensor::zeros(f32, {2})}).error,
             Contains("input 1 is f32[2], expected f32[n + 1] with n = 2"));
  CHECK_THAT(interpretText(square, {RefTensor::zeros(f64, {2, 2}), RefTensor::zeros(f32, {3})}).error,
             Contains("input 0 is f64[2, 2]"));
  CHECK_THAT(interpretText(square, {}).error, Contains("expected 2, got 0"));
  CHECK_THAT(interpretText("func.func private @other() { return }", {}).error, Contains("no public function"));
}

TEST_CASE("sizes that only the inputs decide are checked") {
  const char *crop = R"(
    func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n - 2"]> {
      %0 = burin.pad %x {low = array<i64: -2>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n - 2"]>
      return %0 : tensor<?xf32, ["n - 2"]>
    })";
  CHECK(interpretText(crop, {reals({1, 2, 3})})->reals() == std::vector<double>{3});
  CHECK_THAT(interpretText(crop, {reals({1})}).error, Contains("becomes -1"));
}

TEST_CASE("a compound size of an input gives its symbol a value") {
  const char *text = R"(
    func.func @main(%x: tensor<?xf32, ["n*2 + 1"]>) -> tensor<?xf32, ["n"]> {
      %0 = burin.full {shape = ["n"], value = 1.0 : f64, dtype = f32} : () -> tensor<?xf32, ["n"]>
      return %0 : tensor<?xf32, ["n"]>
    })";
  CHECK(interpretText(text, {reals(std::vector<double>(7))})->shape == std::vector<int64_t>{3});
  CHECK_THAT(interpretText(text, {reals(std::vector<double>(6))}).error, Contains("expected f32[n*2 + 1]"));
}

TEST_CASE("absurd sizes are refused") {
  const char *text = R"(
    func.func @main() -> tensor<1000000x1000000xf32> {
      %0 = burin.full {shape = [1000000, 1000000], value = 1.0 : f64, dtype = f32} : () -> tensor<1000000x1000000xf32>
      return %0 : tensor<1000000x1000000xf32>
    })";
  CHECK_THAT(interpretText(text, {}).error, Contains("the interpreter's limit"));
}

TEST_CASE("endless recursion is refused") {
  const char *text = R"(
    func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = func.call @main(%x) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    })";
  CHECK_THAT(interpretText(text, {RefTensor::zeros(f32, {})}).error, Contains("64 deep"));
}

TEST_CASE("ops of other dialects are refused") {
  const char *text = R"(
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "other.op"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    })";
  CHECK(interpretText(text, {reals({1, 2})}).error != "");
}
