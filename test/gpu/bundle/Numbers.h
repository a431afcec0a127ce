// Elements of the types of floats, as numbers.
#pragma once
#include "burin/dtype.h"
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace burin::test::bundle {

inline float fromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float size = exponent == 31  ? (fraction ? NAN : INFINITY)
               : exponent == 0 ? std::ldexp(float(fraction), -24)
                               : std::ldexp(float(1024 + fraction), exponent - 25);
  return bits >> 15 ? -size : size;
}
/// The bits of a number that f16 has.
inline uint16_t toHalf(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  int exponent = 0;
  const float fraction = std::frexp(std::abs(value), &exponent); // 0, or from 0.5 to 1
  return value == 0 ? sign : uint16_t(sign | ((exponent + 14) << 10) + int(fraction * 2048) - 1024);
}

template <class T> T elementAt(const std::byte *data, size_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof value, sizeof value);
  return value;
}
inline double real(DType dtype, const std::byte *data, size_t i) {
  switch (dtype) {
  case DType::f32:
    return elementAt<float>(data, i);
  case DType::f64:
    return elementAt<double>(data, i);
  case DType::f16:
    return fromHalf(elementAt<uint16_t>(data, i));
  default: { // bf16
    uint32_t bits = uint32_t(elementAt<uint16_t>(data, i)) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  }
}

} // namespace burin::test::bundle
