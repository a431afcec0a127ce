// Compares random expressions of sizes with the same arithmetic on numbers.
#include "burin/dim.h"
#include <catch2/catch.hpp>
#include <random>

using burin::Dim;

namespace {

using Values = std::array<int64_t, 3>;
const char *const kNames[] = {"a", "b", "c"};

/// A size, and its value under each of several assignments of the symbols; nullopt where a divisor is 0.
struct Expression {
  Dim dim;
  std::vector<std::optional<int64_t>> values;
};

class Maker {
public:
  Maker(unsigned seed, std::vector<Values> assignments) : random(seed), assignments(std::move(assignments)) {}

  Expression make(int depth) {
    if (depth == 0 || below(5) == 0)
      return leaf();
    Expression x = make(depth - 1), y = below(2) ? make(depth - 1) : number(below(9) - 2);
    switch (below(8)) {
    case 0:
    case 1:
      return combine(x, y, x.dim + y.dim, [](int64_t a, int64_t b) { return a + b; });
    case 2:
    case 3:
      return combine(x, y, x.dim - y.dim, [](int64_t a, int64_t b) { return a - b; });
    case 4:
      return combine(x, y, x.dim * y.dim, [](int64_t a, int64_t b) { return a * b; });
    case 5: {
      Expression n = number(below(8) + 1);
      if (below(2))
        return combine(x, n, floordiv(x.dim, n.dim), floorDivided);
      return combine(x, n, ceildiv(x.dim, n.dim), [](int64_t a, int64_t b) { return -floorDivided(-a, b); });
    }
    case 6: {
      Expression n = number(below(8) + 1);
      return combine(x, n, mod(x.dim, n.dim), [](int64_t a, int64_t b) { return a - floorDivided(a, b) * b; });
    }
    default:
      if (below(2))
        return combine(x, y, min(x.dim, y.dim), [](int64_t a, int64_t b) { return std::min(a, b); });
      return combine(x, y, max(x.dim, y.dim), [](int64_t a, int64_t b) { return std::max(a, b); });
    }
  }

private:
  std::mt19937 random;
  std::vector<Values> assignments;

  int64_t below(int64_t limit) { return int64_t(random() % unsigned(limit)); }
  static int64_t floorDivided(int64_t a, int64_t b) { return a / b - (a % b < 0); }

  Expression number(int64_t value) {
    return {Dim(value), std::vector<std::optional<int64_t>>(assignments.size(), value)};
  }
  Expression leaf() {
    if (below(3) == 0)
      return number(below(9));
    size_t symbol = size_t(below(3));
    Expression made{symbol == 2 ? Dim("c", 2, 40) : Dim(kNames[symbol]), {}};
    for (const Values &values : assignments)
      made.values.push_back(values[symbol]);
    return made;
  }
  template <class F> static Expression combine(const Expression &x, const Expression &y, Dim dim, F &&f) {
    Expression made{std::move(dim), {}};
    for (size_t i = 0; i < x.values.size(); ++i)
      made.values.push_back(f(*x.values[i], *y.values[i]));
    return made;
  }
};

} // namespace

TEST_CASE("random expressions have the values of their parts, within their bounds") {
  std::vector<Values> assignments;
  for (int64_t a : {0, 1, 2, 3, 7, 12, 29})
    for (int64_t b : {0, 1, 5, 6, 13, 40})
      for (int64_t c : {2, 3, 4, 9, 40})
        assignments.push_back({a, b, c});
  int made = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    Expression x;
    try {
      x = Maker(seed, assignments).make(5);
    } catch (const burin::Error &) { // too large for 64 bits
      continue;
    }
    ++made;
    CAPTURE(seed, x.dim.str());
    std::optional<int64_t> least = lowerBound(x.dim), most = upperBound(x.dim);
    std::optional<Dim> parsed = Dim::parse(x.dim.str());
    REQUIRE((parsed && *parsed == x.dim));
    for (size_t i = 0; i < assignments.size(); ++i) {
      auto value = x.dim.evaluate([&](std::string_view name) {
        return std::optional(assignments[i][name == "a" ? 0 : name == "b" ? 1 : 2]);
      });
      CAPTURE(assignments[i][0], assignments[i][1], assignments[i][2]);
      REQUIRE(value == x.values[i]);
      REQUIRE((!least || *least <= *value));
      REQUIRE((!most || *most >= *value));
    }
  }
  CHECK(made > 1400);
}
