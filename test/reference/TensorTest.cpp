#include "test/reference/Harness.h"
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

using namespace burin;
using namespace burin::test;
using namespace burin::ir;

namespace {

template <class T> std::vector<char> bytesOf(std::vector<T> elements) {
  std::vector<char> bytes(elements.size() * sizeof(T));
  std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

} // namespace

TEST_CASE("every 16-bit float survives the way through the interpreter's tensors") {
  std::vector<uint16_t> patterns(65536);
  for (size_t i = 0; i < patterns.size(); ++i)
    patterns[i] = uint16_t(i);
  std::vector<char> bytes = bytesOf(patterns);
  for (DType dtype : {f16, bf16}) {
    RefTensor t = RefTensor::fromBytes(dtype, {65536}, bytes);
    std::vector<char> back = t.toBytes();
    int infinityBits = dtype == f16 ? 0x7c00 : 0x7f80, wrong = 0;
    for (int i = 0; i < 65536; ++i) {
      uint16_t pattern;
      std::memcpy(&pattern, back.data() + 2 * i, 2);
      bool isNan = (i & 0x7fff) > infinityBits; // payloads are not kept
      wrong += isNan ? (pattern & 0x7fff) <= infinityBits || !std::isnan(t[size_t(i)]) : pattern != i;
    }
    CHECK(wrong == 0);
  }
  // The compiler's conversions of the same bits.
  RefTensor half = RefTensor::fromBytes(f16, {65536}, bytes), brain = RefTensor::fromBytes(bf16, {65536}, bytes);
  int wrong = 0;
  for (size_t i = 0; i < 65536; ++i) {
    _Float16 h;
    std::memcpy(&h, &patterns[i], 2);
    uint32_t wide = uint32_t(patterns[i]) << 16;
    float b;
    std::memcpy(&b, &wide, 4);
    wrong += !(double(h) == half[i] || (std::isnan(half[i]) && h != h));
    wrong += !(double(b) == brain[i] || (std::isnan(brain[i]) && b != b));
  }
  CHECK(wrong == 0);
}

TEST_CASE("rounding to f16 is the compiler's") {
  int wrong = 0;
  for (int exponent = -30; exponent < 20; ++exponent)
    for (int k = 0; k < 4096; ++k) {
      double x = std::ldexp(1 + k / 4096.0, exponent) * (k % 2 ? -1 : 1);
      wrong += roundTo(f16, x) != double(_Float16(x));
    }
  CHECK(wrong == 0);
  CHECK(std::isinf(roundTo(f16, 65520)));
  CHECK(roundTo(f16, 65519.99) == 65504);
  CHECK(std::signbit(roundTo(f16, -1e-30)));
}

TEST_CASE("rounding to bf16: nearest, ties to even, up to infinity") {
  CHECK(roundTo(bf16, 1 + 0x1p-8) == 1);
  CHECK(roundTo(bf16, 1 + 0x1p-8 + 0x1p-30) == 1 + 0x1p-7);
  CHECK(roundTo(bf16, 1 + 3 * 0x1p-8) == 1 + 0x1p-6);
  CHECK(roundTo(bf16, 0x1.fep127) == 0x1.fep127);
  CHECK(std::isinf(roundTo(bf16, 0x1.ffp127)));
  CHECK(roundTo(bf16, 0x1.8p-134) == 0x1p-133);
  CHECK(roundTo(bf16, -0x1p-134) == 0);
  CHECK(std::isnan(roundTo(bf16, NAN)));
}

TEST_CASE("integers wrap, saturate and keep their bytes") {
  CHECK(wrapTo(i8, 200) == -56);
  CHECK(wrapTo(u8, -1) == 255);
  CHECK(wrapTo(boolean, 256) == 1);
  CHECK(saturateTo(i8, 1e9) == 127);
  CHECK(saturateTo(u8, -3.5) == 0);
  CHECK(saturateTo(i32, -INFINITY) == INT32_MIN);
  CHECK(saturateTo(i64, 1e30) == INT64_MAX);
  CHECK(saturateTo(i64, -9223372036854775808.0) == INT64_MIN);
  CHECK(saturateTo(i16, NAN) == 0);
  CHECK(saturateTo(boolean, NAN) == 1);
  CHECK(saturateTo(i32, -1.99) == -1);

  RefTensor t = RefTensor::fromBytes(i16, {2, 2}, bytesOf<int16_t>({1, -2, 32767, -32768}));
  CHECK(t.ints() == std::vector<int64_t>{1, -2, 32767, -32768});
  CHECK(t.toBytes() == bytesOf<int16_t>({1, -2, 32767, -32768}));
  RefTensor b = RefTensor::fromBytes(boolean, {3}, bytesOf<uint8_t>({0, 1, 7}));
  CHECK(b.toBytes() == bytesOf<uint8_t>({0, 1, 1}));
}

TEST_CASE("sizes are counted without overflow") {
  CHECK(elementCount(std::vector<int64_t>{}) == 1);
  CHECK(elementCount(std::vector<int64_t>{int64_t(1) << 62, 4}) == std::nullopt);
  CHECK(elementCount(std::vector<int64_t>{int64_t(1) << 62, 4, 0}) == 0);
  CHECK(elementCount(std::vector<int64_t>{3, -1}) == std::nullopt);
  CHECK(elementCount(std::vector<int64_t>{3, 5}, 14) == std::nullopt);
}
