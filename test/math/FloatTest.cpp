// Compares float arithmetic that is exact or correctly rounded with plain C++.
#include "codegen/scalar/math/Math.h"
#include "test/math/Samples.h"

using namespace burin;
using codegen::Scalar;

namespace {

// PyTorch's definitions for floats.
template <class T> T remainder(T x, T y) {
  T mod = std::fmod(x, y);
  return mod != 0 && (y < 0) != (mod < 0) ? mod + y : mod;
}
template <class T> T floorDivide(T x, T y) {
  if (y == 0)
    return x / y;
  T mod = std::fmod(x, y), q = (x - mod) / y;
  if (mod != 0 && (y < 0) != (mod < 0))
    q -= 1;
  if (q == 0)
    return std::copysign(T(0), x / y);
  T down = std::floor(q);
  return q - down > T(0.5) ? down + 1 : down;
}
template <class T> T maximum(T x, T y) { return std::isnan(x) || std::isnan(y) ? T(NAN) : y > x ? y : x; }
template <class T> T minimum(T x, T y) { return std::isnan(x) || std::isnan(y) ? T(NAN) : y < x ? y : x; }

template <class T> struct FloatOp {
  const char *name;
  Scalar (*lower)(Scalar, Scalar);
  T (*exact)(T, T);
};
#define OP(name, lowered, exactly)                                                                                     \
  {name, [](Scalar x, Scalar y) -> Scalar { return lowered; }, [](T x, T y) -> T { return exactly; }}

template <class T> void check() {
  const FloatOp<T> ops[] = {
      OP("add", x + y, x + y),
      OP("sub", x - y, x - y),
      OP("mul", x * y, x * y),
      OP("div", x / y, x / y),
      OP("neg", -x, -x),
      OP("abs", abs(x), std::fabs(x)),
      OP("fmod", fmod(x, y), std::fmod(x, y)),
      OP("remainder", remainder(x, y), remainder(x, y)),
      OP("floor_divide", floorDivide(x, y), floorDivide(x, y)),
      OP("maximum", max(x, y), maximum(x, y)),
      OP("minimum", min(x, y), minimum(x, y)),
      OP("floor", floor(x), std::floor(x)),
      OP("ceil", ceil(x), std::ceil(x)),
      OP("round", round(x), std::nearbyint(x)),
      OP("trunc", trunc(x), std::trunc(x)),
      OP("sqrt", sqrt(x), std::sqrt(x)),
      OP("fma", fma(x, y, x), std::fma(x, y, x)),
      OP("copysign", copysign(x, y), std::copysign(x, y)),
      OP("relu", max(x, x.constant(0)),
         std::isnan(x) ? x
         : 0 > x       ? T(0)
                       : x),
      OP("lt", select(x < y, x, y), x < y ? x : y),
      OP("ge", select(x >= y, x, y), x >= y ? x : y),
      OP("eq", select(x == y, x, y), x == y ? x : y),
      OP("ne", select(x != y, x, y), x != y ? x : y),
      OP("non_zero", select(x.nonZero(), x, y), x != 0 ? x : y),
      OP("is_inf", select(isInf(x), x, y), std::isinf(x) ? x : y),
      OP("pow", pow(x, y), y == 2 ? x * x : std::pow(x, y)),
      OP("atan2", atan2(x, y), std::atan2(x, y)),
  };
  test::Jit jit;
  constexpr DType type = test::dtypeFor<T>();
  for (const auto &op : ops)
    jit.add(op.name, {type, type}, 16, [&](llvm::ArrayRef<Scalar> x) { return op.lower(x[0], x[1]); });
  jit.compile();
  auto [x, y] = test::pairs<T>();
  for (const auto &op : ops) {
    auto got = test::run<T>(jit[op.name], x, y);
    for (size_t i = 0; i < x.size(); ++i) {
      T expected = op.exact(x[i], y[i]);
      if (std::isnan(expected) ? !std::isnan(got[i]) : std::memcmp(&got[i], &expected, sizeof(T)) != 0) {
        INFO(op.name << " of " << name(type) << " " << x[i] << ", " << y[i] << " at " << i);
        REQUIRE(got[i] == expected);
        FAIL("sign of zero");
      }
    }
    CHECK(got.size() == x.size());
  }
}

} // namespace

TEST_CASE("f32 arithmetic") { check<float>(); }
TEST_CASE("f64 arithmetic") { check<double>(); }
