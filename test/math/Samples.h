// Inputs for the scalar tests: all values of small types; corner cases and random values of the others.
#pragma once
#include "burin/dtype.h"
#include "test/math/Jit.h"
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace burin::test {

struct Bf16 {
  uint16_t bits;
};
struct E4m3 {
  uint8_t bits;
};
struct E5m2 {
  uint8_t bits;
};

/// An array of elements as they are in memory (std::vector<bool> packs bits).
template <class T> using Array = std::vector<std::conditional_t<std::is_same_v<T, bool>, char, T>>;

template <class T> constexpr DType dtypeFor() {
  if constexpr (std::is_same_v<T, float>)
    return f32;
  else if constexpr (std::is_same_v<T, double>)
    return f64;
  else if constexpr (std::is_same_v<T, _Float16>)
    return f16;
  else if constexpr (std::is_same_v<T, Bf16>)
    return bf16;
  else if constexpr (std::is_same_v<T, E4m3>)
    return f8e4m3fn;
  else if constexpr (std::is_same_v<T, E5m2>)
    return f8e5m2;
  else if constexpr (std::is_same_v<T, int8_t>)
    return i8;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return u8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return i16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return i32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return i64;
  else
    return boolean;
}

template <class T> T number(double v) {
  if constexpr (std::is_same_v<T, Bf16>)
    return {uint16_t(std::bit_cast<uint32_t>(float(v)) >> 16)};
  else
    return T(v);
}

/// Makes signalling NaNs quiet, as functions treat them differently.
template <class T> T quiet(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x + 0;
  else if constexpr (std::is_same_v<T, _Float16>)
    return x != x ? _Float16(NAN) : x;
  else if constexpr (std::is_same_v<T, Bf16>)
    return {uint16_t((x.bits & 0x7fff) > 0x7f80 ? 0x7fc0 : x.bits)};
  else
    return x;
}

template <class T> Array<T> samples() {
  Array<T> all;
  if constexpr (std::is_same_v<T, bool>)
    return {false, true};
  else if constexpr (sizeof(T) <= 2) {
    for (uint32_t bits = 0; bits < (1u << 8 * sizeof(T)); ++bits)
      all.push_back(quiet(std::bit_cast<T>(static_cast<std::conditional_t<sizeof(T) == 1, uint8_t, uint16_t>>(bits))));
  } else {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    std::mt19937_64 random(7);
    for (int i = 0; i < 20000; ++i)
      all.push_back(quiet(std::bit_cast<T>(static_cast<Bits>(random()))));
    // Values around the corners of every integer type and of the float formats.
    for (int e = -160; e <= 140; ++e)
      for (double factor : {1.0, 1 - 0x1p-24, 1 + 0x1p-23, 1 - 0x1p-53, 1 + 0x1p-52, 1.5, 1.25}) {
        double value = std::ldexp(factor, e);
        if constexpr (std::is_floating_point_v<T>)
          all.insert(all.end(), {T(value), T(-value), T(std::floor(value) + 0.5), T(-std::floor(value) - 0.5)});
        else if (value < std::ldexp(1.0, 8 * sizeof(T) - 2))
          all.insert(all.end(), {T(value), T(-value), T(value + 1), T(1 - value)});
      }
    using Limits = std::numeric_limits<T>;
    all.insert(all.end(), {T(0), Limits::max(), Limits::lowest()});
    if constexpr (std::is_floating_point_v<T>)
      all.insert(all.end(),
                 {T(-0.0), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), Limits::denorm_min()});
  }
  return all;
}

/// Pairs of values: all of them for small types, else corner cases with corner cases and random values.
template <class T> std::pair<Array<T>, Array<T>> pairs() {
  Array<T> some = samples<T>(), x, y;
  if (some.size() > 256) {
    std::mt19937 random(11);
    Array<T> few;
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      for (int i = -70; i <= 70; ++i)
        few.insert(few.end(), {T(i), T(Limits::max() - std::abs(i)), T(Limits::min() + std::abs(i))});
    } else {
      for (double v : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 0.1, 0.3, 7.0, 1e-30, 1e30, 1e-40, double(INFINITY), double(NAN)})
        few.insert(few.end(), {number<T>(v), number<T>(-v)});
    }
    for (int i = 0; i < 50000; ++i) {
      x.push_back(some[random() % some.size()]);
      y.push_back(i % 2 ? some[random() % some.size()] : few[random() % few.size()]);
    }
    some = few;
  }
  for (auto a : some)
    for (auto b : some)
      x.push_back(a), y.push_back(b);
  return {x, y};
}

template <class T> bool isNan(T x) {
  if constexpr (std::is_same_v<T, Bf16>)
    return (x.bits & 0x7fff) > 0x7f80;
  else if constexpr (std::is_same_v<T, E4m3>)
    return (x.bits & 0x7f) == 0x7f;
  else if constexpr (std::is_same_v<T, E5m2>)
    return (x.bits & 0x7f) > 0x7c;
  else
    return x != x;
}

/// Runs a kernel over whole vectors, then again in pieces shorter than a vector, and checks that the bits are the same.
template <class R, class... T> Array<R> run(Kernel kernel, const std::vector<T> &...in) {
  size_t n = std::get<0>(std::tie(in...)).size();
  Array<R> wide(n), narrow(n);
  const void *whole[] = {in.data()...};
  kernel(whole, wide.data(), n);
  constexpr size_t piece = 15;
  for (size_t i = 0; i < n; i += piece) {
    const void *part[] = {in.data() + i...};
    kernel(part, narrow.data() + i, std::min(piece, n - i));
  }
  for (size_t i = 0; i < n; ++i)
    if (std::memcmp(&wide[i], &narrow[i], sizeof(R)) != 0 && !(isNan(wide[i]) && isNan(narrow[i]))) {
      INFO("element " << i << " depends on the vector length");
      CHECK(false);
      break;
    }
  return wide;
}

} // namespace burin::test
