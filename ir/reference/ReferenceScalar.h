// Scalar functions over double and int64_t for the `reference` code of elementwise ops. Integer arithmetic wraps.
#pragma once
#include "burin/dtype.h"
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <numbers>

namespace burin::ir::ref {

inline bool isNegativeZero(double x) { return x == 0 && std::signbit(x); }
inline bool isNegativeZero(int64_t) { return false; }

// Integers are whole already; double would lose their low bits.
inline double floor(double x) { return std::floor(x); }
inline double ceil(double x) { return std::ceil(x); }
inline double trunc(double x) { return std::trunc(x); }
inline double nearbyint(double x) { return std::nearbyint(x); }
inline int64_t floor(int64_t x) { return x; }
inline int64_t ceil(int64_t x) { return x; }
inline int64_t trunc(int64_t x) { return x; }
inline int64_t nearbyint(int64_t x) { return x; }

// NaN if either is NaN; +0 is greater than -0.
inline double maximum(double x, double y) {
  if (std::isnan(x) || std::isnan(y))
    return std::numeric_limits<double>::quiet_NaN();
  return x == y ? (std::signbit(x) ? y : x) : (x > y ? x : y);
}
inline double minimum(double x, double y) {
  if (std::isnan(x) || std::isnan(y))
    return std::numeric_limits<double>::quiet_NaN();
  return x == y ? (std::signbit(x) ? x : y) : (x < y ? x : y);
}
inline int64_t maximum(int64_t x, int64_t y) { return x > y ? x : y; }
inline int64_t minimum(int64_t x, int64_t y) { return x < y ? x : y; }

/// Has the sign of x; division by 0 gives 0.
inline double cRemainder(double x, double y) { return std::fmod(x, y); }
inline int64_t cRemainder(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }

/// Has the sign of y, as Python's %.
template <class T> T remainder(T x, T y) {
  T r = cRemainder(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

inline int64_t floorDivide(int64_t x, int64_t y) {
  if (y == 0)
    return 0;
  if (y == -1) // the smallest integer wraps to itself
    return int64_t(-uint64_t(x));
  return x / y - (x % y != 0 && (x % y < 0) != (y < 0));
}
/// The exact quotient rounded down, as Python's //: 1.0 // 0.1 is 9, although 1.0 / 0.1 rounds to 10.
inline double floorDivide(double x, double y) {
  if (y == 0)
    return x / y;
  double r = std::fmod(x, y);
  double quotient = (x - r) / y;
  if (r != 0 && (r < 0) != (y < 0))
    quotient -= 1;
  return quotient == 0 ? std::copysign(0.0, x / y) : std::nearbyint(quotient);
}

inline double power(double x, double y) { return std::pow(x, y); }
inline int64_t power(int64_t x, int64_t y) {
  if (y < 0)
    return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
  uint64_t result = 1;
  for (uint64_t base = uint64_t(x); y != 0; y >>= 1, base *= base)
    if (y & 1)
      result *= base;
  return int64_t(result);
}

/// x times the normal distribution function, by erfc or its tanh approximation.
inline double gelu(double x, bool approximate) {
  if (x == -HUGE_VAL)
    return 0;
  if (approximate)
    return x * 0.5 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  return x * 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

constexpr int64_t bitWidth(DType type) { return isBool(type) ? 1 : int64_t(byteWidth(type)) * 8; }
inline int64_t bitNot(int64_t x, DType type) { return isBool(type) ? x == 0 : ~x; }
inline int64_t shiftLeft(int64_t x, int64_t y, DType type) {
  return y < 0 || y >= bitWidth(type) ? 0 : int64_t(uint64_t(x) << y);
}
inline int64_t shiftRight(int64_t x, int64_t y, DType type) {
  return y < 0 || y >= bitWidth(type) ? (x < 0 ? -1 : 0) : x >> y;
}

} // namespace burin::ir::ref
