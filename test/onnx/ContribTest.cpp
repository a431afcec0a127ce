// Tests ops of ONNX Runtime's own domain, and of ai.onnx.ml, against ONNX Runtime's results, with fixed and with
// symbolic sizes. contrib/generate.py writes the cases.
#include "burin/onnx.h"
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "test/onnx/Folder.h"
#include "test/onnx/ModelWriter.h"
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

using namespace burin;
using namespace burin::test;
using nlohmann::json;

namespace {

struct Kind {
  OnnxType onnx;
  DType dtype;
};
Kind kindOf(const std::string &name) {
  if (name == "float32")
    return {kFloat, DType::f32};
  if (name == "float64")
    return {kDouble, DType::f64};
  if (name == "int32")
    return {kInt32, DType::i32};
  if (name == "int64")
    return {kInt64, DType::i64};
  if (name == "int8")
    return {OnnxType(3), DType::i8};
  if (name == "uint4")
    return {OnnxType(21), DType::u8};
  REQUIRE(name == "uint8");
  return {kUint8, DType::u8};
}

/// In JSON, NaN is null.
template <class T> T number(const json &value) {
  return value.is_null() ? std::numeric_limits<T>::quiet_NaN() : value.get<T>();
}
template <class T> std::vector<T> numbers(const json &list) {
  std::vector<T> values;
  for (const json &value : list)
    values.push_back(number<T>(value));
  return values;
}

Tensor tensorFrom(const json &array) {
  Shape shape;
  for (int64_t size : array["shape"])
    shape.push_back(size);
  return from_vector(numbers<double>(array["values"]), shape).to(kindOf(array["type"]).dtype);
}

template <class T> Bytes rawOf(const json &array) {
  std::vector<T> values = numbers<T>(array["values"]);
  return Bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
}
/// Two numbers per byte, the first one in the low bits.
Bytes pairsOf(const json &array) {
  Bytes packed;
  std::vector<int> values = array["values"].get<std::vector<int>>();
  for (size_t i = 0; i < values.size(); i += 2)
    packed += char(values[i] | (i + 1 < values.size() ? values[i + 1] << 4 : 0));
  return packed;
}
Bytes initializerFrom(const Bytes &name, const json &array) {
  std::string type = array["type"];
  Bytes raw = type == "float32"   ? rawOf<float>(array)
              : type == "float64" ? rawOf<double>(array)
              : type == "int32"   ? rawOf<int32_t>(array)
              : type == "int64"   ? rawOf<int64_t>(array)
              : type == "int8"    ? rawOf<int8_t>(array)
              : type == "uint4"   ? pairsOf(array)
                                  : rawOf<uint8_t>(array);
  return tensorHead(name, kindOf(type).onnx, array["shape"]).add(9, raw);
}

Bytes attributeFrom(const Bytes &name, const json &value) {
  if (value.is_string())
    return attribute(name, value.get<std::string>().c_str());
  if (value.is_number_integer())
    return attribute(name, value.get<int64_t>());
  if (value.is_number() || value.is_null())
    return attribute(name, number<double>(value));
  Message message;
  message.add(1, name);
  if (value.is_object())
    return message.add(20, 4).add(5, initializerFrom("", value));
  const bool areStrings = !value.empty() && value[0].is_string(),
             areFloats = !value.empty() && value[0].is_number_float();
  message.add(20, areStrings ? 8 : areFloats ? 6 : 7);
  for (const json &element : value) {
    if (areStrings)
      message.add(9, element.get<std::string>());
    else if (areFloats)
      message.addFloat(7, number<float>(element));
    else
      message.add(8, element.get<int64_t>());
  }
  return message;
}

/// Returns the declared sizes of an input. If symbolic, the first input, and every input with its rank and first size
/// (such as the other operand of a sum), have anonymous sizes except for the features, which are the last size.
std::vector<Bytes> declared(const json &shape, const json &given, bool isSymbolic) {
  const json &first = given["inputs"][0]["shape"];
  bool isLike = shape.size() == first.size() && shape.size() > 1 && shape[0] == first[0];
  std::vector<Bytes> sizes;
  size_t features = given["op"] == "Inverse" ? 2 : 1; // an Inverse has matrices as features
  for (size_t i = 0; i < shape.size(); ++i)
    sizes.push_back(isSymbolic && isLike && i + features < shape.size() ? "" : std::to_string(shape[i].get<int64_t>()));
  return sizes;
}

/// Loads a model of this node alone.
Graph load(const json &given, bool isSymbolic, const std::string &path, std::vector<Tensor> &arguments) {
  NodeText node{given["op"], {}, {}, {}, "n", given["domain"]};
  for (auto &[name, value] : given["attributes"].items())
    node.attributes.push_back(attributeFrom(name, value));
  ModelText model{.nodes = {}, .inputs = {}, .outputs = {}};
  for (size_t i = 0; i < given["inputs"].size(); ++i) {
    const json &input = given["inputs"][i];
    std::string name = input.is_null() ? "" : "x" + std::to_string(i);
    node.inputs.push_back(name);
    if (input.is_null())
      continue;
    if (input.contains("constant")) {
      model.initializers.push_back(initializerFrom(name, input));
      continue;
    }
    model.inputs.push_back(valueInfo(name, kindOf(input["type"]).onnx, declared(input["shape"], given, isSymbolic)));
    arguments.push_back(tensorFrom(input));
  }
  for (size_t i = 0, at = 0; i < given["outputs"].size(); ++i) {
    std::string name = given["outputs"][i];
    node.outputs.push_back(name);
    if (!name.empty())
      model.outputs.push_back(valueInfo(name, kindOf(given["expected"][at++]["type"]).onnx, {}));
  }
  model.nodes.push_back(node);
  return load_onnx(model.write(path));
}

void compare(const Tensor &result, const json &expected, double tolerance) {
  Shape shape;
  for (int64_t size : expected["shape"])
    shape.push_back(size);
  REQUIRE(result.shape() == shape);
  std::vector<double> got = result.to_vector<double>(), want = numbers<double>(expected["values"]);
  REQUIRE(got.size() == want.size());
  bool isQuantized = expected["type"] == "uint8" || expected["type"] == "int8"; // may differ by one quantization step
  double largest = 1;
  for (double value : want)
    largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i << ": " << got[i] << ", expected " << want[i]);
    REQUIRE(std::fabs(got[i] - want[i]) <= (isQuantized ? 1 : tolerance * largest));
  }
}

void run(const char *family) {
  Folder folder;
  std::ifstream file(std::string(CONTRIB_CASES) + "/" + family + ".json");
  REQUIRE(file);
  for (const json &given : json::parse(file)) {
    for (bool isSymbolic : {false, true}) {
      INFO(given["name"] << (isSymbolic ? " with symbolic sizes" : ""));
      std::vector<Tensor> arguments;
      Graph graph = [&] {
        try {
          return load(given, isSymbolic, folder / "model.onnx", arguments);
        } catch (const Error &error) {
          FAIL(error.what());
          throw;
        }
      }();
      std::vector<Tensor> results = graph.run(arguments);
      REQUIRE(results.size() == given["expected"].size());
      for (size_t i = 0; i < results.size(); ++i)
        compare(results[i], given["expected"][i], given["tolerance"]);
    }
  }
}

} // namespace

TEST_CASE("fused ops agree with ONNX Runtime") { run("fused"); }
TEST_CASE("normalisations of sums agree with ONNX Runtime") { run("skipnorm"); }
TEST_CASE("attention ops agree with ONNX Runtime") { run("attention"); }
TEST_CASE("quantized ops agree with ONNX Runtime") { run("quantized"); }
TEST_CASE("classical models agree with ONNX Runtime") { run("ml"); }
