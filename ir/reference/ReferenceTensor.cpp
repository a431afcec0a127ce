#include "ir/reference/ReferenceTensor.h"
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

namespace burin::ir {

namespace {

/// A binary float format narrower than double.
struct Format {
  int bits;
  int mantissa;    // stored bits
  int minExponent; // of the smallest normal number
  double smallest; // value of that number
  double unit;     // the smallest subnormal number
  double overflow; // smallest magnitude that rounds to infinity, or to NaN if there is none
  bool hasInfinity = true;
};
constexpr Format kHalf{16, 10, -14, 0x1p-14, 0x1p-24, 65520.0};
constexpr Format kBFloat{16, 7, -126, 0x1p-126, 0x1p-133, 0x1.ffp127};
constexpr Format kE5M2{8, 2, -14, 0x1p-14, 0x1p-16, 61440.0};
// 464 lies between 448 and the bits of NaN, which would be 480; halves go to even, so to 448.
constexpr Format kE4M3{8, 3, -6, 0x1p-6, 0x1p-9, 0x1.d000000000001p8, false};

double roundTo(const Format &format, double x) {
  if (!(std::fabs(x) < format.overflow))
    return std::isnan(x) || !format.hasInfinity ? std::numeric_limits<double>::quiet_NaN() : std::copysign(HUGE_VAL, x);
  if (std::fabs(x) < format.smallest)
    return std::copysign(std::nearbyint(x / format.unit) * format.unit, x);
  int dropped = 52 - format.mantissa;
  auto bits = std::bit_cast<uint64_t>(x);
  bits += (uint64_t(1) << (dropped - 1)) - 1 + ((bits >> dropped) & 1);
  return std::bit_cast<double>(bits >> dropped << dropped);
}

/// The bits of x, which must be a value of the format.
uint16_t encode(const Format &format, double x) {
  const int exponentBits = format.bits - 1 - format.mantissa;
  uint16_t sign = std::signbit(x) ? uint16_t(1 << (format.bits - 1)) : 0;
  uint16_t infinity = uint16_t(((1 << exponentBits) - 1) << format.mantissa);
  x = std::fabs(x);
  if (std::isnan(x) && !format.hasInfinity)
    return sign | infinity | uint16_t((1 << format.mantissa) - 1);
  if (std::isnan(x))
    return sign | infinity | uint16_t(1 << (format.mantissa - 1));
  if (std::isinf(x))
    return sign | infinity;
  if (x < format.smallest)
    return sign | uint16_t(x / format.unit);
  auto bits = std::bit_cast<uint64_t>(x);
  uint64_t exponent = (bits >> 52) - 1023 - format.minExponent + 1;
  uint64_t mantissa = (bits & ((uint64_t(1) << 52) - 1)) >> (52 - format.mantissa);
  return sign | uint16_t(exponent << format.mantissa | mantissa);
}

double decode(const Format &format, uint16_t bits) {
  const uint16_t sign = uint16_t(1 << (format.bits - 1));
  int exponent = (bits & (sign - 1)) >> format.mantissa;
  uint64_t mantissa = bits & ((1 << format.mantissa) - 1);
  int last = (1 << (format.bits - 1 - format.mantissa)) - 1;
  double magnitude;
  if (exponent == 0)
    magnitude = double(mantissa) * format.unit;
  else if (exponent == last && format.hasInfinity)
    magnitude = mantissa ? std::numeric_limits<double>::quiet_NaN() : HUGE_VAL;
  else if (exponent == last && mantissa == uint64_t((1 << format.mantissa) - 1))
    magnitude = std::numeric_limits<double>::quiet_NaN();
  else
    magnitude = std::bit_cast<double>(uint64_t(exponent - 1 + format.minExponent + 1023) << 52 |
                                      mantissa << (52 - format.mantissa));
  return bits & sign ? -magnitude : magnitude;
}

template <class Stored, class T, class Convert>
void load(std::vector<T> &to, std::span<const char> bytes, Convert convert) {
  for (size_t i = 0; i < to.size(); ++i) {
    Stored element;
    std::memcpy(&element, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    to[i] = convert(element);
  }
}
template <class Stored, class T, class Convert>
void store(std::vector<char> &bytes, const std::vector<T> &from, Convert convert) {
  for (size_t i = 0; i < from.size(); ++i) {
    Stored element = convert(from[i]);
    std::memcpy(bytes.data() + i * sizeof(Stored), &element, sizeof(Stored));
  }
}

/// Calls f with a value of the C++ type in which an integer or bool type is stored.
template <class F> auto withStored(DType dtype, F f) {
  switch (dtype) {
  case DType::i8:
    return f(int8_t());
  case DType::u8:
  case DType::boolean:
    return f(uint8_t());
  case DType::i16:
    return f(int16_t());
  case DType::i32:
    return f(int32_t());
  default:
    return f(int64_t());
  }
}

} // namespace

RefTensor RefTensor::zeros(DType dtype, std::vector<int64_t> shape) {
  RefTensor t{dtype, std::move(shape), {}};
  size_t n = size_t(t.size());
  if (isFloat(dtype))
    t.data = std::vector<double>(n);
  else
    t.data = std::vector<int64_t>(n);
  return t;
}

RefTensor RefTensor::fromBytes(DType dtype, std::vector<int64_t> shape, std::span<const char> bytes) {
  RefTensor t = zeros(dtype, std::move(shape));
  assert(bytes.size() == size_t(t.size()) * byteWidth(dtype) && "the bytes of a tensor have its size");
  switch (dtype) {
  case DType::f32:
    load<float>(t.reals(), bytes, [](float x) { return double(x); });
    break;
  case DType::f64:
    load<double>(t.reals(), bytes, [](double x) { return x; });
    break;
  case DType::f16:
    load<uint16_t>(t.reals(), bytes, [](uint16_t x) { return decode(kHalf, x); });
    break;
  case DType::bf16:
    load<uint16_t>(t.reals(), bytes, [](uint16_t x) { return decode(kBFloat, x); });
    break;
  case DType::f8e4m3fn:
    load<uint8_t>(t.reals(), bytes, [](uint8_t x) { return decode(kE4M3, x); });
    break;
  case DType::f8e5m2:
    load<uint8_t>(t.reals(), bytes, [](uint8_t x) { return decode(kE5M2, x); });
    break;
  case DType::boolean:
    load<uint8_t>(t.ints(), bytes, [](uint8_t x) { return int64_t(x != 0); });
    break;
  default:
    withStored(dtype, [&](auto stored) { load<decltype(stored)>(t.ints(), bytes, [](auto x) { return int64_t(x); }); });
  }
  return t;
}

std::vector<char> RefTensor::toBytes() const {
  std::vector<char> bytes(size_t(size()) * byteWidth(dtype));
  switch (dtype) {
  case DType::f32:
    store<float>(bytes, reals(), [](double x) { return float(x); });
    break;
  case DType::f64:
    store<double>(bytes, reals(), [](double x) { return x; });
    break;
  case DType::f16:
    store<uint16_t>(bytes, reals(), [](double x) { return encode(kHalf, roundTo(kHalf, x)); });
    break;
  case DType::bf16:
    store<uint16_t>(bytes, reals(), [](double x) { return encode(kBFloat, roundTo(kBFloat, x)); });
    break;
  case DType::f8e4m3fn:
    store<uint8_t>(bytes, reals(), [](double x) { return uint8_t(encode(kE4M3, roundTo(kE4M3, float(x)))); });
    break;
  case DType::f8e5m2:
    store<uint8_t>(bytes, reals(), [](double x) { return uint8_t(encode(kE5M2, roundTo(kE5M2, float(x)))); });
    break;
  default:
    withStored(dtype, [&](auto stored) {
      store<decltype(stored)>(bytes, ints(), [](int64_t x) { return decltype(stored)(x); });
    });
  }
  return bytes;
}

int64_t RefTensor::size() const { return elementCount(shape).value_or(0); }

void RefTensor::round(const RefOptions &options) {
  if (isFloat(dtype)) {
    if (dtype == DType::f64 || (dtype == DType::f32 && !options.roundF32))
      return;
    for (double &x : reals())
      x = roundTo(dtype, x);
  } else if (isBool(dtype)) {
    for (int64_t &x : ints())
      x = x != 0;
  } else {
    withStored(dtype, [&](auto stored) {
      for (int64_t &x : ints())
        x = decltype(stored)(x);
    });
  }
}

std::optional<int64_t> elementCount(std::span<const int64_t> shape, int64_t limit) {
  // An empty tensor has no elements, however large its other sizes are.
  int64_t n = 1;
  for (int64_t d : shape) {
    if (d < 0)
      return std::nullopt;
    if (d == 0)
      n = 0;
  }
  for (int64_t d : shape)
    if (n != 0 && (__builtin_mul_overflow(n, d, &n) || n > limit))
      return std::nullopt;
  return n;
}

double roundTo(DType dtype, double x) {
  switch (dtype) {
  case DType::f16:
    return roundTo(kHalf, x);
  case DType::bf16:
    return roundTo(kBFloat, x);
  case DType::f8e4m3fn: // by way of f32, as PyTorch does
    return roundTo(kE4M3, float(x));
  case DType::f8e5m2:
    return roundTo(kE5M2, float(x));
  case DType::f32:
    return double(float(x));
  default:
    return x;
  }
}

int64_t wrapTo(DType dtype, int64_t x) {
  if (isBool(dtype))
    return x != 0;
  return withStored(dtype, [&](auto stored) { return int64_t(decltype(stored)(x)); });
}

int64_t saturateTo(DType dtype, double x) {
  if (isBool(dtype))
    return x != 0;
  if (std::isnan(x))
    return 0;
  if (x <= double(lowest(dtype)))
    return lowest(dtype);
  return x >= double(highest(dtype)) ? highest(dtype) : int64_t(x);
}

int64_t lowest(DType dtype) {
  return isBool(dtype) ? 0 : withStored(dtype, [](auto x) { return int64_t(std::numeric_limits<decltype(x)>::min()); });
}

int64_t highest(DType dtype) {
  return isBool(dtype) ? 1 : withStored(dtype, [](auto x) { return int64_t(std::numeric_limits<decltype(x)>::max()); });
}

} // namespace burin::ir
