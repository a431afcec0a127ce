#include "frontend/onnx/proto/Proto.h"
#include <algorithm>
#include <cctype>
#include <stdexcept>

// A field of another wire type than in the standard is an error in every build.
#define protozero_assert(condition) ((condition) ? void() : throw std::runtime_error("a field is of the wrong kind"))
#include <protozero/pbf_reader.hpp>

namespace burin::onnx {

using protozero::pbf_reader;

namespace {

constexpr int kMaxDepth = 64; // of nested subgraphs
constexpr size_t kMaxRank = 64;

[[noreturn]] void damaged(const std::string &what) { throw std::runtime_error(what); }

std::string_view text(pbf_reader &message) {
  protozero::data_view view = message.get_view();
  return {view.data(), view.size()};
}

bool isUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    auto lead = static_cast<unsigned char>(text[i]);
    size_t size = lead < 0x80 ? 1 : lead >= 0xC2 && lead < 0xE0 ? 2 : lead >= 0xE0 && lead < 0xF0 ? 3 : 4;
    if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || size > text.size() - i)
      return false;
    for (size_t k = 1; k < size; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80)
        return false;
    i += size;
  }
  return true;
}

/// A field of type string in the standard, in contrast to bytes.
std::string_view name(pbf_reader &message) {
  std::string_view found = text(message);
  if (!isUtf8(found))
    damaged("a name is not UTF-8");
  return found;
}

/// A repeated numeric field, packed or not.
template <class T, class Range>
void append(pbf_reader &message, std::vector<T> &out, T (pbf_reader::*one)(), Range (pbf_reader::*packed)()) {
  if (message.wire_type() == protozero::pbf_wire_type::length_delimited) {
    for (auto value : (message.*packed)())
      out.push_back(T(value));
  } else {
    out.push_back((message.*one)());
  }
}
void appendInts(pbf_reader &message, std::vector<int64_t> &out) {
  append(message, out, &pbf_reader::get_int64, &pbf_reader::get_packed_int64);
}
void appendFloats(pbf_reader &message, std::vector<float> &out) {
  append(message, out, &pbf_reader::get_float, &pbf_reader::get_packed_float);
}

void readExternal(pbf_reader message, TensorProto &out) {
  std::string_view key, value;
  while (message.next())
    switch (message.tag()) {
    case 1:
      key = name(message);
      break;
    case 2:
      value = name(message);
      break;
    default:
      message.skip();
    }
  out.external[key] = value;
}

void checkRank(size_t rank) {
  if (rank > kMaxRank)
    damaged("a tensor has more than " + std::to_string(kMaxRank) + " dimensions");
}

TensorProto readTensor(pbf_reader message) {
  TensorProto out;
  while (message.next())
    switch (message.tag()) {
    case 1:
      appendInts(message, out.dims);
      checkRank(out.dims.size());
      break;
    case 2:
      out.dataType = DataType(message.get_int32());
      break;
    case 3:
      out.isSegment = true;
      message.skip();
      break;
    case 4:
      appendFloats(message, out.floats);
      break;
    case 5:
    case 7:
    case 11:
      appendInts(message, out.ints);
      break;
    case 6:
      out.strings.push_back(text(message));
      break;
    case 8:
      out.name = name(message);
      break;
    case 9:
      out.rawData = text(message);
      out.hasRawData = true;
      break;
    case 10:
      append(message, out.doubles, &pbf_reader::get_double, &pbf_reader::get_packed_double);
      break;
    case 13:
      readExternal(message.get_message(), out);
      break;
    case 14:
      out.isExternal = message.get_int32() == 1;
      break;
    default:
      message.skip();
    }
  return out;
}

DimProto readDim(pbf_reader message) {
  DimProto out;
  while (message.next())
    switch (message.tag()) {
    case 1:
      out.value = message.get_int64();
      if (out.value < -1) // some exporters write -1 for an unknown size
        damaged("a dimension of a tensor type has the size " + std::to_string(out.value));
      break;
    case 2:
      out.param = name(message);
      break;
    default:
      message.skip();
    }
  return out;
}

void readTensorType(pbf_reader message, ValueInfo &out) {
  while (message.next())
    switch (message.tag()) {
    case 1:
      out.elementType = DataType(message.get_int32());
      break;
    case 2: {
      out.hasShape = true;
      pbf_reader shape = message.get_message();
      while (shape.next(1))
        out.shape.push_back(readDim(shape.get_message()));
      checkRank(out.shape.size());
      break;
    }
    default:
      message.skip();
    }
}

void readType(pbf_reader message, ValueInfo &out) {
  while (message.next()) {
    switch (message.tag()) {
    case 1:
      out.kind = ValueInfo::Kind::Tensor;
      readTensorType(message.get_message(), out);
      continue;
    case 4:
      out.kind = ValueInfo::Kind::Sequence;
      break;
    case 5:
      out.kind = ValueInfo::Kind::Map;
      break;
    case 8:
      out.kind = ValueInfo::Kind::SparseTensor;
      break;
    case 9:
      out.kind = ValueInfo::Kind::Optional;
      break;
    }
    message.skip();
  }
}

ValueInfo readValueInfo(pbf_reader message) {
  ValueInfo out;
  while (message.next())
    switch (message.tag()) {
    case 1:
      out.name = name(message);
      break;
    case 2:
      readType(message.get_message(), out);
      break;
    default:
      message.skip();
    }
  return out;
}

GraphProto readGraph(pbf_reader message, int depth);

/// The type of an attribute in files that predate the type field.
AttributeProto::Type typeNumber(int32_t number) {
  using Type = AttributeProto::Type;
  constexpr Type types[] = {Type::Undefined, Type::Float,  Type::Int,  Type::String, Type::Tensor,
                            Type::Graph,     Type::Floats, Type::Ints, Type::Strings};
  return number >= 0 && number < int32_t(std::size(types)) ? types[number] : Type::Undefined;
}

AttributeProto readAttribute(pbf_reader message, int depth) {
  using Type = AttributeProto::Type;
  AttributeProto out;
  Type seen = Type::Undefined, stated = Type::Undefined;
  while (message.next())
    switch (message.tag()) {
    case 1:
      out.name = name(message);
      break;
    case 2:
      out.f = message.get_float();
      seen = Type::Float;
      break;
    case 3:
      out.i = message.get_int64();
      seen = Type::Int;
      break;
    case 4:
      out.s = text(message);
      seen = Type::String;
      break;
    case 5:
      out.tensor = std::make_shared<TensorProto>(readTensor(message.get_message()));
      seen = Type::Tensor;
      break;
    case 6:
      out.graph = std::make_shared<GraphProto>(readGraph(message.get_message(), depth + 1));
      seen = Type::Graph;
      break;
    case 7:
      appendFloats(message, out.floats);
      seen = Type::Floats;
      break;
    case 8:
      appendInts(message, out.ints);
      seen = Type::Ints;
      break;
    case 9:
      out.strings.push_back(text(message));
      seen = Type::Strings;
      break;
    case 20:
      stated = typeNumber(message.get_int32());
      break;
    case 21:
      out.reference = name(message);
      break;
    default:
      message.skip();
    }
  out.type = stated == Type::Undefined ? seen : stated;
  bool isMissing = (out.type == Type::Tensor && !out.tensor) || (out.type == Type::Graph && !out.graph);
  if (isMissing && out.reference.empty())
    damaged("the attribute " + quoted(out.name) + " has no value");
  return out;
}

NodeProto readNode(pbf_reader message, int depth) {
  NodeProto out;
  while (message.next())
    switch (message.tag()) {
    case 1:
      out.inputs.push_back(name(message));
      break;
    case 2:
      out.outputs.push_back(name(message));
      break;
    case 3:
      out.name = name(message);
      break;
    case 4:
      out.op = name(message);
      break;
    case 5:
      out.attributes.push_back(readAttribute(message.get_message(), depth));
      break;
    case 6:
      out.doc = text(message);
      break;
    case 7:
      out.domain = name(message);
      break;
    case 8:
      out.overload = name(message);
      break;
    default:
      message.skip();
    }
  if (out.op.empty())
    damaged("a node has no op_type");
  if (out.domain == "ai.onnx")
    out.domain = "";
  return out;
}

GraphProto readGraph(pbf_reader message, int depth) {
  if (depth > kMaxDepth)
    damaged("subgraphs are nested deeper than " + std::to_string(kMaxDepth));
  GraphProto out;
  while (message.next())
    switch (message.tag()) {
    case 1:
      out.nodes.push_back(readNode(message.get_message(), depth));
      break;
    case 2:
      out.name = name(message);
      break;
    case 5:
      out.initializers.push_back(readTensor(message.get_message()));
      break;
    case 11:
      out.inputs.push_back(readValueInfo(message.get_message()));
      break;
    case 12:
      out.outputs.push_back(readValueInfo(message.get_message()));
      break;
    case 13:
      out.values.push_back(readValueInfo(message.get_message()));
      break;
    case 15:
      out.hasSparseInitializers = true;
      message.skip();
      break;
    default:
      message.skip();
    }
  return out;
}

void readOpset(pbf_reader message, Opsets &out) {
  std::string_view domain;
  int64_t version = 0;
  while (message.next())
    switch (message.tag()) {
    case 1:
      domain = name(message);
      break;
    case 2:
      version = message.get_int64();
      break;
    default:
      message.skip();
    }
  out[domain == "ai.onnx" ? "" : domain] = version;
}

FunctionProto readFunction(pbf_reader message) {
  FunctionProto out;
  while (message.next())
    switch (message.tag()) {
    case 1:
      out.name = name(message);
      break;
    case 4:
      out.inputs.push_back(name(message));
      break;
    case 5:
      out.outputs.push_back(name(message));
      break;
    case 6:
      out.attributes.push_back(name(message));
      break;
    case 7:
      out.nodes.push_back(readNode(message.get_message(), 0));
      break;
    case 9:
      readOpset(message.get_message(), out.opsets);
      break;
    case 10:
      out.domain = name(message);
      break;
    case 11:
      out.defaults.push_back(readAttribute(message.get_message(), 0));
      break;
    case 13:
      out.overload = name(message);
      break;
    default:
      message.skip();
    }
  return out;
}

pbf_reader open(std::span<const std::byte> file) {
  return pbf_reader(reinterpret_cast<const char *>(file.data()), file.size());
}

/// Adds a description to protozero's errors, which only name unexpected kinds of bytes.
template <class F> auto reading(const char *what, F &&read) {
  try {
    return read();
  } catch (const protozero::exception &error) {
    damaged(std::string("it is not a whole ") + what + " (" + error.what() + "); the file is cut off or damaged");
  }
}

} // namespace

std::string printable(std::string_view name) {
  constexpr size_t kMost = 200;
  std::string text(name.substr(0, kMost));
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c); }, '?');
  return name.size() > kMost ? text + "…" : text;
}
std::string quoted(std::string_view name) { return "\"" + printable(name) + "\""; }

std::string nameOf(DataType type) {
  static constexpr const char *names[] = {
      "UNDEFINED", "FLOAT",      "UINT8",      "INT8",         "UINT16",         "INT16",      "INT32",
      "INT64",     "STRING",     "BOOL",       "FLOAT16",      "DOUBLE",         "UINT32",     "UINT64",
      "COMPLEX64", "COMPLEX128", "BFLOAT16",   "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ",
      "UINT4",     "INT4",       "FLOAT4E2M1", "FLOAT8E8M0",   "UINT2",          "INT2"};
  auto number = int32_t(type);
  return number >= 0 && number < int32_t(std::size(names)) ? names[number] : "type " + std::to_string(number);
}

bool looksLikeModel(std::span<const std::byte> file) try {
  using protozero::pbf_wire_type;
  pbf_reader message = open(file);
  bool hasGraph = false;
  while (message.next()) {
    uint32_t tag = message.tag();
    bool isNumber = tag == 1 || tag == 5,
         isMessage = (tag >= 2 && tag <= 8 && tag != 5) || tag == 14 || tag == 20 || tag == 25 || tag == 26;
    pbf_wire_type type = message.wire_type();
    if (!(isNumber && type == pbf_wire_type::varint) && !(isMessage && type == pbf_wire_type::length_delimited))
      return false;
    hasGraph |= tag == 7;
    message.skip();
  }
  return hasGraph;
} catch (const protozero::exception &) {
  return false;
}

ModelProto readModel(std::span<const std::byte> file) {
  return reading("ONNX model", [&] {
    ModelProto out;
    pbf_reader message = open(file);
    bool hasGraph = false;
    while (message.next())
      switch (message.tag()) {
      case 1:
        out.irVersion = message.get_int64();
        break;
      case 2:
        out.producer = text(message);
        break;
      case 7:
        out.graph = readGraph(message.get_message(), 0);
        hasGraph = true;
        break;
      case 8:
        readOpset(message.get_message(), out.opsets);
        break;
      case 25:
        out.functions.push_back(readFunction(message.get_message()));
        break;
      default:
        message.skip();
      }
    if (!hasGraph)
      damaged("it has no graph; the file is not an ONNX model, or cut off");
    constexpr int64_t kOpsetsSince = 3;
    if (out.irVersion < kOpsetsSince)
      out.opsets.try_emplace("", 1);
    return out;
  });
}

TensorProto readTensor(std::span<const std::byte> file) {
  return reading("ONNX tensor", [&] { return readTensor(open(file)); });
}

} // namespace burin::onnx
