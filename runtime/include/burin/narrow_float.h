// Floats of 8 and 16 bits as numbers, in portable C++.
#pragma once
#include "burin/dtype.h"
#include <algorithm>
#include <cmath>

namespace burin {

/// A binary float format of at most 16 bits: sign, exponent, mantissa.
struct NarrowFormat {
  int bits, mantissa, bias; // mantissa: stored bits
  uint16_t largest;         // bits of the largest finite number
  uint16_t overflow;        // bits of what larger numbers become: infinity, or NaN without infinities
  uint16_t nan;
};
constexpr NarrowFormat narrowFormat(DType t) {
  switch (t) {
  case DType::f16:
    return {16, 10, 15, 0x7bff, 0x7c00, 0x7e00};
  case DType::f8e4m3fn:
    return {8, 3, 7, 0x7e, 0x7f, 0x7f};
  case DType::f8e5m2:
    return {8, 2, 15, 0x7b, 0x7c, 0x7f};
  default:
    return {16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0};
  }
}

/// The number with these bits in f16, bf16, f8e4m3fn or f8e5m2.
inline double fromNarrowFloat(DType type, uint16_t bits) {
  const NarrowFormat format = narrowFormat(type);
  const int sign = 1 << (format.bits - 1), magnitude = bits & (sign - 1), exponent = magnitude >> format.mantissa;
  const int hidden = 1 << format.mantissa, mantissa = magnitude & (hidden - 1);
  double value = magnitude > format.largest
                     ? (magnitude == format.overflow && format.overflow != format.nan ? HUGE_VAL : NAN)
                 : exponent == 0 ? std::ldexp(mantissa, 1 - format.bias - format.mantissa)
                                 : std::ldexp(hidden + mantissa, exponent - format.bias - format.mantissa);
  return bits & sign ? -value : value;
}

/// The bits of x rounded to f16, bf16, f8e4m3fn or f8e5m2, halves to even; to 8 bits by way of f32, as PyTorch does.
inline uint16_t toNarrowFloat(DType type, double x) {
  const NarrowFormat format = narrowFormat(type);
  const int sign = std::signbit(x) ? 1 << (format.bits - 1) : 0;
  const double size = std::fabs(isFloat8(type) ? double(float(x)) : x);
  if (std::isnan(size))
    return uint16_t(sign | format.nan);
  const int exponent = std::max(std::ilogb(size), 1 - format.bias);
  if (exponent > format.bias + 1)
    return uint16_t(sign | format.overflow);
  // A normal number has 2^mantissa units or more, which adds one to the exponent; rounding up may add another one.
  const auto units = int64_t(std::nearbyint(std::ldexp(size, format.mantissa - exponent)));
  const int64_t bits = units + (int64_t(exponent + format.bias - 1) << format.mantissa);
  return uint16_t(sign | (bits > format.largest ? format.overflow : bits));
}

} // namespace burin
