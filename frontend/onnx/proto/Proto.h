// The messages of onnx.proto as plain structs. Text and raw data refer to the bytes of the file, which must outlive
// them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace burin::onnx {

/// TensorProto.DataType; numbers are those of the standard.
enum class DataType : int32_t { Undefined = 0, String = 8 };
/// "FLOAT8E4M3FN", or the number of an unknown type.
std::string nameOf(DataType);

/// A name from the file for messages: truncated and on one line; quoted() adds quotes.
std::string printable(std::string_view name);
std::string quoted(std::string_view name);

struct TensorProto {
  std::string_view name, rawData;
  DataType dataType = DataType::Undefined;
  std::vector<int64_t> dims;
  bool hasRawData = false, isExternal = false, isSegment = false;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> ints; // int32_data, int64_data and uint64_data
  std::vector<std::string_view> strings;
  std::map<std::string_view, std::string_view> external; // location, offset, length
};

struct DimProto {
  int64_t value = -1; // -1: not given, or not known
  std::string_view param;
};

/// The type of a graph's input or output.
struct ValueInfo {
  enum class Kind { Unknown, Tensor, SparseTensor, Sequence, Map, Optional };
  std::string_view name;
  Kind kind = Kind::Unknown;
  DataType elementType = DataType::Undefined; // of a tensor
  bool hasShape = false;
  std::vector<DimProto> shape;
};

struct GraphProto;

struct AttributeProto {
  enum class Type { Undefined, Float, Int, String, Tensor, Graph, Floats, Ints, Strings };
  std::string_view name, reference; // reference: the attribute of the enclosing function that this one refers to
  Type type = Type::Undefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::shared_ptr<const TensorProto> tensor;
  std::shared_ptr<const GraphProto> graph;
};

struct NodeProto {
  std::string_view name, op, domain, overload, doc;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeProto> attributes;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueInfo> inputs, outputs, values;
  bool hasSparseInitializers = false;
};

using Opsets = std::map<std::string_view, int64_t>; // version by domain; "ai.onnx" is ""

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<AttributeProto> defaults; // of attributes
  std::vector<NodeProto> nodes;
  Opsets opsets;
};

struct ModelProto {
  int64_t irVersion = 0;
  std::string_view producer;
  Opsets opsets;
  GraphProto graph;
  std::vector<FunctionProto> functions;
};

/// Whether the bytes look like a ModelProto: every field of the outermost message is one of its fields. Does not throw.
bool looksLikeModel(std::span<const std::byte> file);

/// Safe for any bytes; throws std::runtime_error with a reason for those that are not such a message.
ModelProto readModel(std::span<const std::byte> file);
TensorProto readTensor(std::span<const std::byte> file);

} // namespace burin::onnx
