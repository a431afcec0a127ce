// Compares integer and bool arithmetic with plain C++ on 128-bit integers.
#include "codegen/scalar/math/Math.h"
#include "test/math/Samples.h"

using namespace burin;
using codegen::Scalar;
using Wide = __int128;

namespace {

Wide floorDivide(Wide x, Wide y) { return y == 0 ? 0 : x / y - (x % y != 0 && (x < 0) != (y < 0)); }

/// Computes the power by repeated squaring modulo 2^64; the caller wraps it to the result's type.
uint64_t power(uint64_t x, uint64_t y) {
  uint64_t result = 1;
  for (; y; y >>= 1, x *= x)
    if (y & 1)
      result *= x;
  return result;
}
Wide signedPower(Wide x, Wide y) {
  if (y >= 0)
    return power(x, y);
  return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
}

struct BinaryOp {
  const char *name;
  bool boolResult;
  Scalar (*lower)(Scalar, Scalar);
  Wide (*exact)(Wide x, Wide y, int bits, bool isSigned);
};
#define LOWER(expression) [](Scalar x, Scalar y) -> Scalar { return expression; }
#define EXACT(expression)                                                                                              \
  [](Wide x, Wide y, [[maybe_unused]] int bits, [[maybe_unused]] bool isSigned) -> Wide { return expression; }
const BinaryOp binaryOps[] = {
    {"add", false, LOWER(x + y), EXACT(x + y)},
    {"sub", false, LOWER(x - y), EXACT(x - y)},
    {"mul", false, LOWER(x * y), EXACT(x * y)},
    {"floor_divide", false, LOWER(floorDivide(x, y)), EXACT(floorDivide(x, y))},
    {"remainder", false, LOWER(remainder(x, y)), EXACT(y == 0 ? 0 : x - floorDivide(x, y) * y)},
    {"fmod", false, LOWER(fmod(x, y)), EXACT(y == 0 ? 0 : x % y)},
    {"pow", false, LOWER(pow(x, y)), EXACT(signedPower(x, y))},
    {"max", false, LOWER(max(x, y)), EXACT(std::max(x, y))},
    {"min", false, LOWER(min(x, y)), EXACT(std::min(x, y))},
    {"and", false, LOWER(x & y), EXACT(x & y)},
    {"or", false, LOWER(x | y), EXACT(x | y)},
    {"xor", false, LOWER(x ^ y), EXACT(x ^ y)},
    {"lt", true, LOWER(x < y), EXACT(x < y)},
    {"le", true, LOWER(x <= y), EXACT(x <= y)},
    {"gt", true, LOWER(x > y), EXACT(x > y)},
    {"ge", true, LOWER(x >= y), EXACT(x >= y)},
    {"eq", true, LOWER(x == y), EXACT(x == y)},
    {"ne", true, LOWER(x != y), EXACT(x != y)},
    {"logical_and", true, LOWER(x.nonZero() & y.nonZero()), EXACT(x && y)},
    {"where", false, LOWER(select(x > y, x, y)), EXACT(x > y ? x : y)},
    {"shift_left", false, LOWER(shiftLeft(x, y)), EXACT(y < 0 || y >= bits ? 0 : x << int(y))},
    {"shift_right", false, LOWER(shiftRight(x, y)),
     EXACT(y < 0 || y >= bits ? (isSigned && x < 0 ? -1 : 0) : x >> int(y))},
    // Unary ones, of x.
    {"neg", false, LOWER(-x), EXACT(-x)},
    {"abs", false, LOWER(abs(x)), EXACT(x < 0 ? -x : x)},
    {"floor", false, LOWER(floor(x)), EXACT(x)},
    {"not", false, LOWER(~x), EXACT(bits == 1 ? !x : ~x)},
    {"logical_not", true, LOWER(!x), EXACT(!x)},
    {"is_inf", true, LOWER(isInf(x)), EXACT(0)},
};

template <class T> void check() {
  constexpr DType type = test::dtypeFor<T>();
  constexpr int bits = std::is_same_v<T, bool> ? 1 : 8 * sizeof(T);
  test::Jit jit;
  for (const BinaryOp &op : binaryOps)
    jit.add(op.name, {type, type}, 16,
            [&](llvm::ArrayRef<Scalar> x) { return op.lower(x[0], x[1]).to(op.boolResult ? boolean : type); });
  jit.compile();
  auto [x, y] = test::pairs<T>();
  for (const BinaryOp &op : binaryOps) {
    auto verify = [&](const auto &got, auto wrap) {
      for (size_t i = 0; i < x.size(); ++i) {
        auto expected = wrap(op.exact(x[i], y[i], bits, std::is_signed_v<T>));
        if (got[i] != expected) {
          INFO(op.name << " of " << name(type) << " " << +x[i] << ", " << +y[i]);
          REQUIRE(+got[i] == +expected);
        }
      }
      CHECK(got.size() == x.size());
    };
    if (op.boolResult)
      verify(test::run<bool>(jit[op.name], x, y), [](Wide v) { return char(v); });
    else
      verify(test::run<T>(jit[op.name], x, y), [](Wide v) { return typename test::Array<T>::value_type(T(v)); });
  }
}

} // namespace

TEST_CASE("i8 arithmetic") { check<int8_t>(); }
TEST_CASE("u8 arithmetic") { check<uint8_t>(); }
TEST_CASE("i16 arithmetic") { check<int16_t>(); }
TEST_CASE("i32 arithmetic") { check<int32_t>(); }
TEST_CASE("i64 arithmetic") { check<int64_t>(); }
TEST_CASE("bool arithmetic") { check<bool>(); }
