#include "ir/reference/ops/ReferenceRandom.h"
#include "test/reference/Harness.h"
#include <catch2/catch.hpp>
#include <cmath>

using namespace burin;
using namespace burin::test;
using namespace burin::ir;

namespace {

std::vector<double> draw(const std::string &op, int64_t seed, int64_t count, DType dtype, double a, double b) {
  bool normal = op == "random_normal";
  Outcome outcome = evaluateOp(op, std::vector<const RefTensor *>(),
                               {{"shape", Shape{count}},
                                {"seed", seed},
                                {"dtype", dtype},
                                {normal ? "mean" : "low", a},
                                {normal ? "stddev" : "high", b}});
  REQUIRE(outcome.error == "");
  return outcome->reals();
}

struct Moments {
  double mean = 0, variance = 0;
  explicit Moments(const std::vector<double> &x) {
    for (double v : x)
      mean += v / double(x.size());
    for (double v : x)
      variance += (v - mean) * (v - mean) / double(x.size());
  }
};

} // namespace

TEST_CASE("Philox gives the words its authors published") {
  CHECK(ref::philox(0, 0) == std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
}

TEST_CASE("uniform numbers follow from the words") {
  auto x = draw("random_uniform", 0, 5, f32, 0, 1);
  CHECK(x[0] == (0x6627e8d5 >> 8) * 0x1p-24);
  CHECK(x[3] == (0x9b00dbd8 >> 8) * 0x1p-24);
  auto wide = draw("random_uniform", 0, 2, f64, 0, 1);
  CHECK(wide[0] == double((0xe169c58d6627e8d5 >> 11)) * 0x1p-53);
  CHECK(wide[1] == double((0x9b00dbd8bc57ac4c >> 11)) * 0x1p-53);
  auto scaled = draw("random_uniform", 0, 1, f64, -2, 3);
  CHECK(scaled[0] == -2 + 5 * wide[0]);
}

TEST_CASE("an element does not depend on how many there are") {
  auto few = draw("random_normal", 42, 7, f32, 0, 1), many = draw("random_normal", 42, 1000, f32, 0, 1);
  CHECK(std::equal(few.begin(), few.end(), many.begin()));
  CHECK(draw("random_normal", 43, 7, f32, 0, 1) != few);
  CHECK(draw("random_normal", -1, 7, f32, 0, 1) != draw("random_normal", 0xffffffff, 7, f32, 0, 1));
}

TEST_CASE("uniform stays below the upper end in every type") {
  for (DType dtype : {f32, f64, f16, bf16})
    for (auto [low, high] : {std::pair(0.0, 1.0), std::pair(-1.0, 0.0), std::pair(1000.0, 1001.0)}) {
      bool inside = true;
      for (double x : draw("random_uniform", 5, 4096, dtype, low, high))
        inside &= x >= low && x < high;
      CHECK(inside);
    }
}

TEST_CASE("moments are those of the distributions") {
  for (DType dtype : {f32, f64}) {
    Moments uniform(draw("random_uniform", 7, 100000, dtype, 2, 4)),
        normal(draw("random_normal", 7, 100000, dtype, 1, 3));
    CHECK(uniform.mean == Approx(3).margin(0.01));
    CHECK(uniform.variance == Approx(1 / 3.0).margin(0.01));
    CHECK(normal.mean == Approx(1).margin(0.05));
    CHECK(normal.variance == Approx(9).margin(0.15));
  }
}

TEST_CASE("normal numbers are Box-Muller pairs") {
  auto u = draw("random_uniform", 3, 4, f32, 0, 1), n = draw("random_normal", 3, 4, f32, 0, 1);
  for (size_t i : {0, 2}) {
    double r = std::sqrt(-2 * std::log(u[i] + 0x1p-24));
    CHECK(n[i] == Approx(r * std::cos(2 * M_PI * u[i + 1])));
    CHECK(n[i + 1] == Approx(r * std::sin(2 * M_PI * u[i + 1])));
  }
}

TEST_CASE("bernoulli compares the unit numbers with the probability") {
  auto u = draw("random_uniform", 9, 6, f32, 0, 1);
  std::vector<double> p{0, 1, u[2], std::nextafter(float(u[3]), 1.0f), NAN, 2}, expected{0, 1, 0, 1, 0, 1};
  Outcome outcome = evaluateOp("bernoulli", {reals(p)}, {{"seed", int64_t(9)}});
  REQUIRE(outcome.error == "");
  CHECK(outcome->reals() == expected);
}
