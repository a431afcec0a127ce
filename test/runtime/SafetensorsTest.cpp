#include "runtime/format/Safetensors.h"
#include "test/runtime/Checks.h"
#include <cstring>

using namespace burin;
using namespace burin::rt;
using namespace burin::rt::test;

namespace {
/// The bytes of a file with this header and so many bytes of elements.
std::vector<std::byte> fileOf(const std::string &header, size_t elements = 0) {
  std::vector<std::byte> file(8 + header.size() + elements);
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  std::memcpy(file.data() + 8, header.data(), header.size());
  return file;
}

/// The error for this header, or "".
std::string problemOf(const std::string &header, size_t elements = 0) {
  std::string problem;
  return parseSafetensors(fileOf(header, elements), problem) ? "" : problem;
}
} // namespace

TEST_CASE("safetensors headers with any names and blanks are read") {
  std::string problem;
  auto file =
      parseSafetensors(fileOf(" {\n\t\"a\\\"\\\\\\/\\n\\u00e9\\u20ac\\ud83d\\ude00\" : {\"shape\" : [ 2 , 1 ] , "
                              "\"more\": [{\"x\": [1.5e-3, null, true, \"]}\"]}, {}, []], "
                              "\"data_offsets\":[4,8],\"dtype\":\"F16\"},"
                              "\"__metadata__\":{\"k\":\"v\\u0000\",\"n\":5},"
                              "\"\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}  ",
                              8),
                       problem);
  INFO(problem);
  REQUIRE(file);
  REQUIRE(file->tensors.size() == 2);
  CHECK(file->tensors[0].name == "a\"\\/\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(file->tensors[0].dtype == DType::f16);
  CHECK(file->tensors[0].shape == std::vector<int64_t>{2, 1});
  CHECK(file->tensors[1].name.empty());
  CHECK(file->tensors[1].shape.empty());
  CHECK(file->metadata == std::vector<std::pair<std::string, std::string>>{{"k", std::string("v\0", 2)}});
}

TEST_CASE("malformed safetensors headers are refused") {
  const std::string entry = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  CHECK(problemOf("{}").empty());
  CHECK(problemOf("{\"a\":" + entry + "}", 1).empty());
  for (const std::string &header : {std::string(),
                                    std::string("[]"),
                                    std::string("{"),
                                    std::string("{\"a\"}"),
                                    std::string("{\"a\":}"),
                                    "{\"a\":" + entry,
                                    "{\"a\":" + entry + ",}",
                                    "{\"a\":" + entry + "}x",
                                    "{\"a\":" + entry + "} {}",
                                    "{\"a\" " + entry + "}",
                                    "{a:" + entry + "}",
                                    "{\"a\\x\":" + entry + "}",
                                    "{\"a\\u12\":" + entry + "}",
                                    "{\"\\ud83d\":" + entry + "}",
                                    "{\"\\ude00\":" + entry + "}",
                                    "{\"\\ud83d\\u0041\":" + entry + "}",
                                    "{\"a\n\":" + entry + "}",
                                    "{\"a\":" + std::string(1000, '[') + "}",
                                    "{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}",
                                    std::string("{\"__metadata__\":{\"k\":\"v}}")}) {
    INFO(header);
    CHECK(contains(problemOf(header, 1), "not a JSON object"));
  }
  for (const std::string &bad : {std::string("5"), std::string("null"), std::string(R"({"dtype":"U8","shape":[1]})"),
                                 std::string(R"({"dtype":8,"shape":[1],"data_offsets":[0,1]})"),
                                 std::string(R"({"dtype":"U8","shape":[01],"data_offsets":[0,1]})"),
                                 std::string(R"({"dtype":"U8","shape":[1.0],"data_offsets":[0,1]})"),
                                 std::string(R"({"dtype":"U8","shape":[18446744073709551617],"data_offsets":[0,1]})"),
                                 std::string(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1,2]})")}) {
    INFO(bad);
    CHECK(contains(problemOf("{\"a\":" + bad + "}", 1), "lacks a valid dtype, shape or data_offsets"));
  }
  CHECK(contains(problemOf("{\"a\":" + entry + ",\"b\":" + entry + ",\"a\":" + entry + "}", 1), "\"a\" occurs twice"));
  CHECK(contains(problemOf("{\"__metadata__\":{},\"__metadata__\":{}}"), "\"__metadata__\" occurs twice"));
}

TEST_CASE("what is written as safetensors is read again") {
  SafetensorsFile content{{{"b\"\\\x01\t", DType::u8, {3}}, {"x", DType::f64, {2, 0}}, {"y", DType::i32, {}}},
                          {{"who", "a \"name\""}}};
  std::vector<std::byte> file;
  std::string problem;
  REQUIRE(startSafetensors(content, file, problem));
  CHECK(file.size() % 64 == 0);
  file.resize(file.size() + 7);
  auto again = parseSafetensors(file, problem);
  INFO(problem);
  REQUIRE(again);
  CHECK(again->metadata == content.metadata);
  REQUIRE(again->tensors.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(again->tensors[i].name == content.tensors[i].name);
    CHECK(again->tensors[i].dtype == content.tensors[i].dtype);
    CHECK(again->tensors[i].shape == content.tensors[i].shape);
    CHECK(again->tensors[i].begin == content.tensors[i].begin);
    CHECK(again->tensors[i].begin % byteWidth(again->tensors[i].dtype) == 0);
  }
  SafetensorsFile twice{{{"x", DType::u8, {3}}, {"x", DType::f64, {2}}}, {}};
  CHECK_FALSE(startSafetensors(twice, file, problem));
  CHECK(contains(problem, "\"x\""));
}
