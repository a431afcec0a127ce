// Conversions between all pairs of element types.
#include "codegen/scalar/Elementwise.h"
#include "test/math/Samples.h"

using namespace burin;
using codegen::Scalar;
using test::Bf16, test::E4m3, test::E5m2;

namespace {

double toDouble(float x) { return x; }
double toDouble(double x) { return x; }
double toDouble(_Float16 x) { return x; }
double toDouble(Bf16 x) { return std::bit_cast<float>(uint32_t(x.bits) << 16); }

/// Decodes 8 bits: sign, `exponentBits`, and the rest.
double fromBits(uint8_t bits, int exponentBits, bool hasInfinity) {
  const int mantissaBits = 7 - exponentBits, bias = (1 << (exponentBits - 1)) - 1, last = (1 << exponentBits) - 1;
  const int exponent = (bits & 0x7f) >> mantissaBits, mantissa = bits & ((1 << mantissaBits) - 1);
  double x = exponent ? (1 + std::ldexp(mantissa, -mantissaBits)) * std::ldexp(1.0, exponent - bias)
                      : std::ldexp(mantissa, 1 - bias - mantissaBits);
  if (exponent == last && hasInfinity)
    x = mantissa ? NAN : INFINITY;
  else if (exponent == last && mantissa == (1 << mantissaBits) - 1)
    x = NAN;
  return bits & 0x80 ? -x : x;
}
double toDouble(E4m3 x) { return fromBits(x.bits, 4, false); }
double toDouble(E5m2 x) { return fromBits(x.bits, 5, true); }

/// Searches the number nearest to x, of two equally near ones that with an even last bit. The number after the largest
/// one has the bits of infinity, or of NaN.
template <class To> To nearest(double x) {
  const uint8_t beyond = std::is_same_v<To, E4m3> ? 0x7f : 0x7c, sign = std::signbit(x) ? 0x80 : 0;
  const double size = std::fabs(x);
  if (std::isnan(x))
    return {0x7f};
  uint8_t best = 0;
  for (uint8_t bits = 1; bits < beyond; ++bits) {
    double before = size - toDouble(To{best}), after = toDouble(To{bits}) - size;
    if (after < before || (after == before && bits % 2 == 0))
      best = bits;
  }
  const double largest = toDouble(To{uint8_t(beyond - 1)}), unit = largest - toDouble(To{uint8_t(beyond - 2)});
  const bool isBeyond = best == beyond - 1 && (size > largest + unit / 2 || (size == largest + unit / 2 && best % 2));
  return {uint8_t(sign | (isBeyond ? beyond : best))};
}

/// Rounds to the nearest number with `mantissa` bits and exponents from `lowest`, halves to even. Independent of the
/// hardware.
double roundTo(double x, int mantissa, int lowest, double largest) {
  if (x == 0 || !std::isfinite(x))
    return x;
  int exponent = std::max(std::ilogb(x), lowest) - (mantissa - 1);
  double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -exponent)), exponent);
  return std::fabs(rounded) > largest ? std::copysign(INFINITY, x) : std::copysign(rounded, x);
}

template <class To, class From> To exactFloat(From x) {
  double value;
  if constexpr (std::is_integral_v<From> && sizeof(To) <= 4)
    value = float(x); // integers are rounded to f32 first, which loses digits of 64-bit ones
  else if constexpr (std::is_integral_v<From>)
    value = x;
  else
    value = toDouble(x);
  if constexpr (std::is_same_v<To, double>)
    return value;
  else if constexpr (std::is_same_v<To, float>)
    return float(value);
  else if constexpr (std::is_same_v<To, _Float16>)
    return _Float16(roundTo(float(value), 11, -14, 65504));
  else if constexpr (sizeof(To) == 1)
    return nearest<To>(float(value));
  else
    return Bf16{uint16_t(std::bit_cast<uint32_t>(float(roundTo(float(value), 8, -126, 0x1.fep127))) >> 16)};
}

template <class To, class From> To exactInteger(From x) {
  if constexpr (std::is_integral_v<From>)
    return std::is_same_v<To, bool> ? To(x != 0) : To(x);
  else {
    double value = toDouble(x);
    using Limits = std::numeric_limits<To>;
    if (std::is_same_v<To, bool>)
      return value != 0;
    if (std::isnan(value))
      return 0;
    value = std::trunc(value);
    return value >= double(Limits::max()) ? Limits::max() : value <= double(Limits::min()) ? Limits::min() : To(value);
  }
}

template <class From, class To> void check(const test::Jit &jit) {
  constexpr DType from = test::dtypeFor<From>(), to = test::dtypeFor<To>();
  auto x = test::samples<From>();
  auto got = test::run<To>(jit[std::string(name(to))], x);
  for (size_t i = 0; i < x.size(); ++i) {
    typename test::Array<To>::value_type expected;
    if constexpr (std::is_integral_v<To>)
      expected = exactInteger<To>(x[i]);
    else
      expected = exactFloat<To>(x[i]);
    if (test::isNan(expected) ? !test::isNan(got[i]) : std::memcmp(&got[i], &expected, sizeof expected) != 0) {
      INFO("element " << i << " from " << name(from) << " to " << name(to));
      FAIL();
    }
  }
  CHECK(got.size() == x.size());
}

template <class From> void checkAll() {
  test::Jit jit;
  constexpr DType from = test::dtypeFor<From>();
  for (int t = 0; t < kNumDTypes; ++t) {
    DType to = static_cast<DType>(t);
    jit.add(std::string(name(to)), {from}, 16, [&](llvm::ArrayRef<Scalar> x) { return x[0].to(to); });
  }
  jit.compile();
  check<From, float>(jit);
  check<From, double>(jit);
  check<From, _Float16>(jit);
  check<From, Bf16>(jit);
  check<From, E4m3>(jit);
  check<From, E5m2>(jit);
  check<From, int8_t>(jit);
  check<From, uint8_t>(jit);
  check<From, int16_t>(jit);
  check<From, int32_t>(jit);
  check<From, int64_t>(jit);
  check<From, bool>(jit);
}

} // namespace

TEST_CASE("casts from floats") {
  checkAll<float>();
  checkAll<double>();
  checkAll<_Float16>();
  checkAll<Bf16>();
  checkAll<E4m3>();
  checkAll<E5m2>();
}
TEST_CASE("casts from integers") {
  checkAll<int8_t>();
  checkAll<uint8_t>();
  checkAll<int16_t>();
  checkAll<int32_t>();
  checkAll<int64_t>();
  checkAll<bool>();
}
