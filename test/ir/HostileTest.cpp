// Inference never crashes: random calls with extreme sizes and attributes either infer or explain.
#include "Harness.h"
#include <catch2/catch.hpp>
#include <climits>
#include <random>

using namespace burin;
using namespace burin::test;

namespace {
class Generator {
public:
  explicit Generator(uint32_t seed) : random(seed) {}

  size_t below(size_t n) { return random() % n; }

  int64_t number() {
    static const int64_t extremes[] = {
        0, 1, 2, 3, 4, -1, -2, 7, 1000003, INT64_MAX, INT64_MIN, INT64_MAX - 1, int64_t(1) << 32};
    return extremes[below(below(3) ? 6 : std::size(extremes))];
  }
  Dim dim() {
    switch (below(8)) {
    case 0:
      return Dim("a") * (number() % 5) + number() % 5;
    case 1:
      return Dim("b");
    case 2:
      return floordiv(Dim("a") + number() % 5, 2);
    case 3:
      return Dim(std::max<int64_t>(0, number()));
    default:
      return Dim(static_cast<int64_t>(below(5)));
    }
  }
  Shape shape(bool anyNumber) {
    Shape s(below(below(10) ? 5 : 40));
    for (Dim &d : s)
      d = anyNumber && below(3) == 0 ? Dim(number()) : dim();
    return s;
  }
  DType dtype() { return DType(below(2) ? 0 : below(kNumDTypes)); }
  std::vector<int64_t> ints() {
    std::vector<int64_t> v(below(below(10) ? 5 : 70));
    for (int64_t &x : v)
      x = number();
    return v;
  }
  ir::Attr attr(ir::AttrKind kind) {
    static const char *strings[] = {"", "nchw", "nhwc", "constant", "reflect", "edge", "add", "set", "tanh"};
    static const double reals[] = {0, -1.5, 1e300, INFINITY};
    switch (kind) {
    case ir::AttrKind::Bool:
      return below(2) == 0;
    case ir::AttrKind::Int:
      return number();
    case ir::AttrKind::Float:
      return reals[below(std::size(reals))];
    case ir::AttrKind::String:
      return std::string(strings[below(std::size(strings))]);
    case ir::AttrKind::Ints:
      return ints();
    case ir::AttrKind::DType:
      return dtype();
    case ir::AttrKind::Shape:
      return shape(true);
    }
    return false;
  }

private:
  std::mt19937 random;
};
} // namespace

TEST_CASE("hostile calls are answered, and canonical forms are stable") {
  Generator g(2024);
  size_t accepted = 0;
  for (int round = 0; round < 400; ++round)
    for (const ir::OpInfo &info : ir::opTable()) {
      ir::InferCall call{info, {}, {}, g.below(4) == 0, {}, {}};
      size_t operands = g.below(6) ? info.operands.size() : g.below(5);
      TensorSpec common{g.dtype(), g.shape(false)};
      for (size_t i = 0; i < operands; ++i)
        call.operands.push_back(g.below(12) == 0  ? std::nullopt
                                : g.below(3) == 0 ? std::optional(TensorSpec{g.dtype(), g.shape(false)})
                                                  : std::optional(common));
      for (const ir::AttrInfo &a : info.attrs)
        call.attrs.push_back(a.optional && g.below(2) ? a.fallback : g.attr(a.kind));
      bool ok = ir::infer(call);
      INFO(info.name);
      REQUIRE(ok == call.error.empty());
      if (!ok)
        continue;
      ++accepted;
      for (const TensorSpec &result : call.results)
        for (const Dim &d : result.shape)
          REQUIRE((!d.isStatic() || d.value() >= 0));
      ir::InferCall again{info, call.operands, call.attrs, /*strict=*/true, {}, {}};
      bool isStable = ir::infer(again);
      INFO(again.error);
      REQUIRE(isStable);
      REQUIRE(again.attrs == call.attrs);
    }
  CHECK(accepted > 1000); // the generator reaches beyond the checks
}
