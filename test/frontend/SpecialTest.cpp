// Special functions against values with 40 digits (special.txt, made by make_special.py), at poles and infinities, and
// their gradients.
#include "test/frontend/Check.h"
#include <cmath>
#include <fstream>
#include <limits>
#include <map>

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

struct Points {
  std::vector<double> x, expected;
};
std::map<std::string, Points> readPoints() {
  std::ifstream file(SPECIAL_VALUES);
  std::map<std::string, Points> points;
  std::string name;
  double x, expected;
  while (file >> name >> x >> expected) {
    points[name].x.push_back(x);
    points[name].expected.push_back(expected);
  }
  return points;
}

struct Case {
  const char *name;
  Tensor (*function)(const Tensor &x);
  /// Bounds of errors in units in the last place of f32 and f64; those of numbers below 1 are those of 1 with `atOne`.
  double single, twice;
  bool atOne = false;
};
const Case cases[] = {
    {"erfc", [](const Tensor &x) { return erfc(x); }, 5, 6},
    {"erfcx", [](const Tensor &x) { return special::erfcx(x); }, 7, 6},
    {"ndtr", [](const Tensor &x) { return special::ndtr(x); }, 6, 8},
    {"log_ndtr", [](const Tensor &x) { return special::log_ndtr(x); }, 6, 8},
    {"erfinv", [](const Tensor &x) { return erfinv(x); }, 5, 8},
    {"ndtri", [](const Tensor &x) { return special::ndtri(x); }, 5, 8},
    {"lgamma", [](const Tensor &x) { return lgamma(x); }, 8, 8},
    {"lgamma_negative", [](const Tensor &x) { return lgamma(x); }, 10, 8, true},
    {"digamma", [](const Tensor &x) { return digamma(x); }, 4, 6},
    {"digamma_negative", [](const Tensor &x) { return digamma(x); }, 8, 8, true},
    {"trigamma", [](const Tensor &x) { return polygamma(1, x); }, 6, 8},
    {"polygamma2", [](const Tensor &x) { return polygamma(2, x); }, 8, 8, true},
    {"i0", [](const Tensor &x) { return i0(x); }, 7, 8},
    {"i1", [](const Tensor &x) { return special::i1(x); }, 8, 8},
    {"i0e", [](const Tensor &x) { return special::i0e(x); }, 7, 6},
    {"i1e", [](const Tensor &x) { return special::i1e(x); }, 6, 6},
    {"logit", [](const Tensor &x) { return logit(x); }, 4, 4},
    {"sinc", [](const Tensor &x) { return sinc(x); }, 4, 4},
};

/// The largest error in units in the last place.
template <class T> std::pair<double, double> largestError(const Points &points, const Tensor &results, bool atOne) {
  std::pair<double, double> worst{0, 0};
  const std::vector<double> got = results.to_vector<double>();
  for (size_t i = 0; i < got.size(); ++i) {
    const double wanted = points.expected[i], size = atOne ? std::max(1.0, std::abs(wanted)) : std::abs(wanted);
    if (double(T(wanted)) == got[i] || (size < std::numeric_limits<T>::min() && std::abs(got[i]) <= 2 * size))
      continue;
    const double unit = std::nextafter(T(size), std::numeric_limits<T>::infinity()) - T(size);
    const double error = std::isfinite(got[i]) ? std::abs(got[i] - wanted) / unit : kInfinity;
    if (error > worst.first)
      worst = {error, points.x[i]};
  }
  return worst;
}

std::vector<double> at(Tensor (*function)(const Tensor &), const std::vector<double> &x) {
  return function(from_vector(x).to(f32)).to_vector<double>();
}
bool isSame(const std::vector<double> &a, const std::vector<double> &b) {
  return std::ranges::equal(a, b, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

} // namespace

TEST_CASE("Errors of special functions in units in the last place") {
  const std::map<std::string, Points> points = readPoints();
  REQUIRE(points.size() == std::size(cases));
  for (const Case &c : cases) {
    const Points &known = points.at(c.name);
    const Tensor x = from_vector(known.x);
    const auto [single, atSingle] = largestError<float>(known, c.function(x.to(f32)), c.atOne);
    const auto [twice, atTwice] = largestError<double>(known, c.function(x), c.atOne);
    INFO(c.name << ": f32 " << single << " at " << atSingle << ", f64 " << twice << " at " << atTwice);
    CHECK(single <= c.single);
    CHECK(twice <= c.twice);
    // Compiled, over a symbolic size, and of 16 bits.
    const Tensor compiled = trace(c.function, {TensorSpec{f32, {Dim("n")}}}).run({x.to(f32)})[0];
    CHECK(equal(compiled, c.function(x.to(f32))));
    CHECK(c.function(ones({2}, bf16)).dtype() == bf16);
    CHECK(c.function(ones({2}, i64)).dtype() == f32);
  }
}

TEST_CASE("Special functions at poles, infinities and NaN") {
  const double inf = kInfinity;
  const std::vector<double> ends{-inf, -3, -1, -0.0, 0, 1, inf, kNaN};
  CHECK(isSame(at([](const Tensor &x) { return lgamma(x); }, ends), {inf, inf, inf, inf, inf, 0, inf, kNaN}));
  CHECK(isSame(at([](const Tensor &x) { return digamma(x); }, {-inf, -3, -0.0, 0, inf, kNaN}),
               {kNaN, kNaN, inf, -inf, inf, kNaN}));
  CHECK(isSame(at([](const Tensor &x) { return polygamma(1, x); }, {-1, 0, inf, kNaN}), {inf, inf, 0, kNaN}));
  CHECK(isSame(at([](const Tensor &x) { return erfc(x); }, {-inf, 0, 20, inf, kNaN}), {2, 1, 0, 0, kNaN}));
  CHECK(isSame(at([](const Tensor &x) { return special::erfcx(x); }, {-inf, 0, inf, kNaN}), {inf, 1, 0, kNaN}));
  CHECK(isSame(at([](const Tensor &x) { return special::ndtr(x); }, {-inf, 0, inf, kNaN}), {0, 0.5, 1, kNaN}));
  CHECK(isSame(at([](const Tensor &x) { return special::log_ndtr(x); }, {-inf, inf, kNaN}), {-inf, 0, kNaN}));
  CHECK(isSame(at([](const Tensor &x) { return erfinv(x); }, {-1, 0, 1, 1.5, -inf, kNaN}),
               {-inf, 0, inf, kNaN, kNaN, kNaN}));
  CHECK(isSame(at([](const Tensor &x) { return special::ndtri(x); }, {-0.5, 0, 0.5, 1, 2, kNaN}),
               {kNaN, -inf, 0, inf, kNaN, kNaN}));
  CHECK(isSame(at([](const Tensor &x) { return i0(x); }, {-inf, inf, kNaN}), {inf, inf, kNaN}));
  CHECK(isSame(at([](const Tensor &x) { return special::i1(x); }, {-inf, 0, inf, kNaN}), {-inf, 0, inf, kNaN}));
  CHECK(isSame(at([](const Tensor &x) { return special::i1e(x); }, {-inf, 0, inf, kNaN}), {0, 0, 0, kNaN}));
  CHECK(
      isSame(at([](const Tensor &x) { return logit(x); }, {-1, 0, 0.5, 1, 2, kNaN}), {kNaN, -inf, 0, inf, kNaN, kNaN}));
  CHECK(isSame(at([](const Tensor &x) { return logit(x, 0.25); }, {-1, 2, kNaN}),
               {-std::log(3.0f), std::log(3.0f), kNaN}));
  CHECK(isSame(at([](const Tensor &x) { return sinc(x); }, {-3, 0, 7, kNaN}), {0, 1, 0, kNaN}));
  const Tensor zero = zeros({3}), y = tensor({kInfinity, 0.0, kNaN});
  CHECK(isSame(xlogy(zero, y).to_vector<double>(), {0, 0, kNaN}));
  CHECK(isSame(xlog1py(zero, y - 1).to_vector<double>(), {0, 0, kNaN}));
  CHECK_ERROR(polygamma(-1, zero), "n = -1 must not be negative");
  CHECK_ERROR(mvlgamma(zero, 0), "the dimension p = 0 must be at least 1");
}

TEST_CASE("Gradients of special functions, and gradients of these") {
  auto check = [](Tensor (*function)(const Tensor &), std::vector<double> x) {
    auto list = [=](const std::vector<Tensor> &in) { return std::vector<Tensor>{function(in[0])}; };
    gradcheck(list, {from_vector(x)});
    auto slope = [=](const std::vector<Tensor> &in) {
      EnableGrad on;
      Tensor x = in[0].requires_grad() ? in[0] : in[0].detach().requires_grad_();
      return grad(function(x).sum(), {x}, std::nullopt, {.create_graph = true});
    };
    gradcheck(slope, {from_vector(x)});
  };
  for (const Case &c : cases) {
    INFO(c.name);
    const bool isPart = std::string(c.name) == "ndtri" || std::string(c.name) == "logit";
    check(c.function, isPart ? std::vector{0.1, 0.3, 0.51, 0.97} : std::vector{-0.7, -0.2, 0.4, 0.8});
  }
  check([](const Tensor &x) { return lgamma(x); }, {-2.3, 1.3, 2.6, 7.5});
  check([](const Tensor &x) { return xlogy(x, x + 2) + xlog1py(x, x + 2); }, {0.0, 0.5});
  check([](const Tensor &x) { return mvlgamma(x, 3); }, {1.3, 2.5});
  // One call for all examples.
  const Tensor x = tensor({{0.5, 1.5}, {2.5, 3.5}});
  CHECK(largestDifference(vmap(grad([](const Tensor &x) { return lgamma(x).sum(); }))(x), digamma(x)) < 1e-6);
}
