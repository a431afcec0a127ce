#include "test/training/Cases.h"
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace burin::test {

using Json = nlohmann::ordered_json;

static Tensor tensorOf(const Json &json) {
  Shape shape;
  for (int64_t size : json[1])
    shape.push_back(size);
  std::vector<double> numbers;
  for (const Json &number : json[2])
    numbers.push_back(number.is_string() ? std::stod(number.get<std::string>()) : number.get<double>());
  for (int i = 0; i < kNumDTypes; ++i)
    if (name(DType(i)) == json[0].get<std::string>())
      return from_vector(numbers, shape).to(DType(i));
  throw std::runtime_error("unknown element type " + json[0].dump());
}

std::map<std::string, Tensors> loadCases(const std::string &file) {
  std::ifstream stream(std::string(BURIN_SOURCE_DIR "/test/training/") + file);
  REQUIRE(stream);
  Json json = Json::parse(stream);
  std::map<std::string, Tensors> cases;
  for (auto &[name, tensors] : json.items())
    for (auto &[key, value] : tensors.items())
      cases[name].emplace_back(key, tensorOf(value));
  return cases;
}

void checkClose(const Tensor &got, const Tensor &expected, double tolerance, const std::string &what) {
  INFO(what);
  REQUIRE(str(got.shape()) == str(expected.shape()));
  std::vector<double> a = got.to_vector<double>(), b = expected.to_vector<double>();
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    INFO("element " << i << ": " << a[i] << ", expected " << b[i]);
    if (!std::isfinite(b[i]) || !std::isfinite(a[i]))
      REQUIRE((a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))));
    else
      worst = std::max(worst, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
  }
  CHECK(worst <= tolerance);
}

} // namespace burin::test
