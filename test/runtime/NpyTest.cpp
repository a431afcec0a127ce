#include "runtime/npy/Npy.h"
#include "runtime/npy/NpyZip.h"
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <unistd.h>

using namespace burin;
using namespace burin::rt;

namespace {

std::vector<std::byte> bytesOf(const std::string &text) {
  auto *p = reinterpret_cast<const std::byte *>(text.data());
  return {p, p + text.size()};
}

/// A version 1 file with this header text.
std::vector<std::byte> file(const std::string &header, const std::string &data, char major = 1) {
  std::string out = "\x93NUMPY";
  out += {major, '\0', char(header.size() & 255), char(header.size() >> 8)};
  if (major > 1)
    out += {'\0', '\0'};
  return bytesOf(out + header + data);
}

std::string errorOf(std::span<const std::byte> bytes) {
  std::string error;
  std::optional<NpyArray> array = readNpy(bytes, error);
  CHECK_FALSE(array);
  return error;
}

/// Reads a file that must be valid.
NpyArray mustRead(std::span<const std::byte> bytes) {
  std::string error;
  std::optional<NpyArray> array = readNpy(bytes, error);
  INFO(error);
  REQUIRE(array);
  return array ? std::move(*array) : NpyArray{};
}

template <class T> NpyArray arrayOf(DType dtype, std::vector<int64_t> shape, std::vector<T> values) {
  auto bytes = std::as_bytes(std::span(values));
  return {dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

bool same(const NpyArray &a, const NpyArray &b) { return a.dtype == b.dtype && a.shape == b.shape && a.data == b.data; }
bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

std::vector<NpyArray> samples() {
  return {
      arrayOf<float>(f32, {2, 3}, {1, 2, 3, 4, 5, 6}),
      arrayOf<double>(f64, {}, {2.5}),
      arrayOf<uint16_t>(f16, {1}, {0x3c00}),
      arrayOf<uint16_t>(bf16, {2, 1}, {0x3f80, 0xbf80}),
      arrayOf<int8_t>(i8, {3}, {-1, 0, 1}),
      arrayOf<uint8_t>(u8, {3}, {255, 0, 1}),
      arrayOf<int16_t>(i16, {1, 1, 1}, {-300}),
      arrayOf<int32_t>(i32, {2}, {-70000, 70000}),
      arrayOf<int64_t>(i64, {1}, {INT64_MIN}),
      arrayOf<uint8_t>(boolean, {2}, {0, 1}),
      arrayOf<uint8_t>(f8e4m3fn, {3}, {0x38, 0xb8, 0x7f}),
      arrayOf<uint8_t>(f8e5m2, {1, 2}, {0x3c, 0x7c}),
      arrayOf<float>(f32, {0, 7}, {}),
  };
}

} // namespace

TEST_CASE("npy: every element type is read as it was written") {
  for (const NpyArray &array : samples()) {
    std::vector<std::byte> bytes = writeNpy(array);
    CHECK(same(mustRead(bytes), array));
    CHECK((bytes.size() - array.data.size()) % 64 == 0);
  }
}

TEST_CASE("npy: the header is NumPy's") {
  std::vector<std::byte> bytes = writeNpy(arrayOf<float>(f32, {2}, {1, 2}));
  std::string text(reinterpret_cast<char *>(bytes.data()), 128);
  CHECK(text.substr(6, 4) == std::string("\1\0\x76\0", 4));
  CHECK(text.substr(10, 61) == "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }    ");
  CHECK(text.back() == '\n');
}

TEST_CASE("npy: Fortran order is converted") {
  // [[1, 2, 3], [4, 5, 6]] in column-major order
  NpyArray array = mustRead(file("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }\n", "\1\4\2\5\3\6"));
  CHECK(same(array, arrayOf<int8_t>(i8, {2, 3}, {1, 2, 3, 4, 5, 6})));

  std::string data(24, '\0'); // element (i, j, k) = 100 i + 10 j + k
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 3; ++j)
      for (size_t k = 0; k < 4; ++k)
        data[i + 2 * j + 6 * k] = char(100 * i + 10 * j + k);
  array = mustRead(file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }", data));
  for (size_t i = 0; i < 24; ++i)
    CHECK(size_t(array.data[i]) == 100 * (i / 12) + 10 * (i / 4 % 3) + i % 4);
  mustRead(file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 0, 4), }", ""));
}

TEST_CASE("npy: other spellings of a header are read") {
  mustRead(file("{\"shape\":(2,),\"descr\":\"|b1\",\"fortran_order\":False}", std::string("\1\0", 2)));
  mustRead(file("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "abcd", 3));
  CHECK(mustRead(file("{'descr': '|V2', 'fortran_order': False, 'shape': (1,)}", "ab")).dtype == bf16);
  CHECK(mustRead(file("{'descr': '<V1', 'fortran_order': False, 'shape': (1,)}", "a")).dtype == f8e4m3fn);
  CHECK(mustRead(file("{'descr': '<f1', 'fortran_order': False, 'shape': (1,)}", "a")).dtype == f8e5m2);
  // The byte order of a single byte does not matter.
  mustRead(file("{'descr': '>i1', 'fortran_order': False, 'shape': (1,)}", "a"));
}

TEST_CASE("npy: what cannot be read is refused with a reason") {
  CHECK(contains(errorOf({}), "not a .npy file"));
  CHECK(contains(errorOf(bytesOf("PK\3\4 something else")), "not a .npy file"));
  CHECK(contains(errorOf(file("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "abcd")), "big-endian"));
  CHECK(contains(errorOf(file("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "abcdabcd")), "'<c8'"));
  CHECK(contains(errorOf(file("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "abcdabcd")), "'|O'"));
  CHECK(contains(errorOf(file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "abcd")), "truncated"));
  CHECK(contains(errorOf(file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "abcdef")), "too long"));
  CHECK(contains(errorOf(file("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "")),
                 "impossible"));
  CHECK(contains(errorOf(file("x", "", 4)), "version 4"));
  std::string manyDims = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 33; ++i)
    manyDims += "1,";
  manyDims += ")}";
  const std::string headers[] = {
      manyDims,
      "",
      "{",
      "{}",
      "{'descr': '<f4'}",
      "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
      "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'descr': '<f4'}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
      "{'descr: '<f4', 'fortran_order': False, 'shape': (1,)}",
  };
  for (const std::string &header : headers)
    CHECK(contains(errorOf(file(header, "abcd")), "malformed"));
}

TEST_CASE("npy: truncated and changed files do no harm") {
  std::vector<std::byte> good = writeNpy(arrayOf<float>(f32, {2, 3}, {1, 2, 3, 4, 5, 6}));
  std::string error;
  for (size_t size = 0; size < good.size(); ++size)
    CHECK_FALSE(readNpy(std::vector<std::byte>(good.begin(), good.begin() + long(size)), error));
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes = good;
    for (uint32_t changes = 1 + random() % 3; changes--;)
      bytes[random() % 80] = std::byte(random() % 2 ? "0123456789(),'"[random() % 14] : char(random()));
    if (std::optional<NpyArray> array = readNpy(bytes, error))
      REQUIRE(array->data.size() <= bytes.size());
  }
}

TEST_CASE("npy: files are written and read whole") {
  std::string path = "npy-" + std::to_string(::getpid()) + ".npy", error;
  NpyArray array = arrayOf<float>(f32, {2}, {1, 2});
  REQUIRE(saveNpy(path, array, error));
  std::optional<NpyArray> back = loadNpy(path, error);
  ::unlink(path.c_str());
  CHECK((back && same(*back, array)));
  CHECK_FALSE(loadNpy(path, error));
  CHECK(contains(error, path));
  CHECK_FALSE(loadNpy(".", error));
  CHECK_FALSE(saveNpy("no such folder/x.npy", array, error));
}

TEST_CASE("npz: archives are read as they were written") {
  NamedArrays arrays;
  for (const NpyArray &array : samples())
    arrays.emplace_back("array " + std::to_string(arrays.size()), array);
  arrays.emplace_back("zeros", arrayOf<float>(f32, {3, 100000}, std::vector<float>(300000)));
  for (bool compress : {false, true}) {
    std::vector<std::byte> bytes = writeNpz(arrays, compress);
    CHECK(bytes == writeNpz(arrays, compress));
    CHECK((bytes.size() < 100000) == compress);
    std::string error;
    NamedArrays back = readNpz(bytes, error).value_or(NamedArrays());
    INFO(error);
    REQUIRE(back.size() == arrays.size());
    for (size_t i = 0; i < arrays.size(); ++i) {
      CHECK(back[i].first == arrays[i].first);
      CHECK(same(back[i].second, arrays[i].second));
    }
  }
}

TEST_CASE("npz: damaged archives are refused or read, without harm") {
  NamedArrays arrays = {{"a", arrayOf<float>(f32, {4}, {1, 2, 3, 4})}, {"b", arrayOf<int8_t>(i8, {}, {1})}};
  std::string error;
  CHECK_FALSE(readNpz({}, error));
  for (bool compress : {false, true}) {
    std::vector<std::byte> good = writeNpz(arrays, compress);
    for (size_t size = 0; size < good.size(); ++size)
      CHECK_FALSE(readNpz(std::vector<std::byte>(good.begin(), good.begin() + long(size)), error));
    std::mt19937 random(9);
    for (int round = 0; round < 10000; ++round) {
      std::vector<std::byte> bytes = good;
      for (uint32_t changes = 1 + random() % 3; changes--;)
        bytes[random() % bytes.size()] = std::byte(random());
      if (std::optional<NamedArrays> back = readNpz(bytes, error))
        REQUIRE(back->size() <= 2);
    }
  }
}
