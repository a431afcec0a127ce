// Writes small ONNX models for tests, so that the tests need no binary files.
#pragma once
#include <fstream>
#include <initializer_list>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

namespace burin::test {

using Bytes = std::string;
enum OnnxType : int {
  kFloat = 1,
  kUint8 = 2,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kDouble = 11,
  kUint16 = 4,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19
};

/// A protobuf message under construction.
class Message {
public:
  Message &add(uint32_t tag, const Bytes &value) {
    writer.add_bytes(tag, value);
    return *this;
  }
  Message &add(uint32_t tag, int64_t value) {
    writer.add_int64(tag, value);
    return *this;
  }
  Message &addFloat(uint32_t tag, float value) {
    writer.add_float(tag, value);
    return *this;
  }
  operator const Bytes &() const { return bytes; }

private:
  Bytes bytes;
  protozero::pbf_writer writer{bytes};
};

// ---- attributes
inline Bytes attribute(const Bytes &name, int64_t value) { return Message().add(1, name).add(3, value).add(20, 2); }
inline Bytes attribute(const Bytes &name, double value) {
  return Message().add(1, name).addFloat(2, float(value)).add(20, 1);
}
inline Bytes attribute(const Bytes &name, const char *value) {
  return Message().add(1, name).add(4, Bytes(value)).add(20, 3);
}
inline Bytes attribute(const Bytes &name, std::initializer_list<int64_t> values) {
  Message message;
  message.add(1, name).add(20, 7);
  for (int64_t value : values)
    message.add(8, value);
  return message;
}
inline Bytes stringsAttribute(const Bytes &name, std::initializer_list<Bytes> values) {
  Message message;
  message.add(1, name).add(20, 8);
  for (const Bytes &value : values)
    message.add(9, value);
  return message;
}
inline Bytes tensorAttribute(const Bytes &name, const Bytes &tensor) {
  return Message().add(1, name).add(5, tensor).add(20, 4);
}
inline Bytes graphAttribute(const Bytes &name, const Bytes &graph) {
  return Message().add(1, name).add(6, graph).add(20, 5);
}
/// An attribute of a node in a function that refers to an attribute of the function.
inline Bytes referenceAttribute(const Bytes &name, const Bytes &of, int64_t type) {
  return Message().add(1, name).add(21, of).add(20, type);
}

// ---- tensors
inline Message tensorHead(const Bytes &name, OnnxType type, const std::vector<int64_t> &dims) {
  Message message;
  for (int64_t size : dims)
    message.add(1, size);
  message.add(2, int64_t(type)).add(8, name);
  return message;
}
template <class T>
Bytes tensorProto(const Bytes &name, OnnxType type, const std::vector<int64_t> &dims, const std::vector<T> &values) {
  return tensorHead(name, type, dims)
      .add(9, Bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)));
}
inline Bytes floatTensor(const Bytes &name, const std::vector<int64_t> &dims, const std::vector<float> &values) {
  return tensorProto(name, kFloat, dims, values);
}
inline Bytes intTensor(const Bytes &name, const std::vector<int64_t> &dims, const std::vector<int64_t> &values) {
  return tensorProto(name, kInt64, dims, values);
}

/// The type of an input or output. Sizes are numbers, names, or "" for an anonymous size.
inline Bytes valueInfo(const Bytes &name, OnnxType type, const std::vector<Bytes> &sizes) {
  Message shape;
  for (const Bytes &size : sizes) {
    Message dim;
    if (!size.empty() && (std::isdigit(size[0]) || size[0] == '-'))
      dim.add(1, int64_t(std::stoll(size)));
    else if (!size.empty())
      dim.add(2, size);
    shape.add(1, dim);
  }
  Bytes tensorType = Message().add(1, int64_t(type)).add(2, shape);
  return Message().add(1, name).add(2, Message().add(1, tensorType));
}

struct NodeText {
  Bytes op;
  std::vector<Bytes> inputs, outputs, attributes = {};
  Bytes name = "", domain = "";
  operator Bytes() const {
    Message message;
    for (const Bytes &input : inputs)
      message.add(1, input);
    for (const Bytes &output : outputs)
      message.add(2, output);
    message.add(3, name).add(4, op);
    for (const Bytes &attribute : attributes)
      message.add(5, attribute);
    return message.add(7, domain);
  }
};

/// A graph, and the model that contains it.
struct ModelText {
  std::vector<NodeText> nodes;
  std::vector<Bytes> inputs, outputs, initializers = {}, functions = {}, values = {};
  int64_t opset = 21;

  Bytes graph() const {
    Message message;
    for (const NodeText &node : nodes)
      message.add(1, node);
    message.add(2, Bytes("test"));
    for (const Bytes &initializer : initializers)
      message.add(5, initializer);
    for (const Bytes &input : inputs)
      message.add(11, input);
    for (const Bytes &output : outputs)
      message.add(12, output);
    for (const Bytes &value : values)
      message.add(13, value);
    return message;
  }
  Bytes model() const {
    Message message;
    message.add(1, int64_t(10)).add(7, graph());
    for (const Bytes &function : functions)
      message.add(25, function);
    for (const Bytes &domain : {"local", "ai.onnx.ml", "ai.onnx.preview.training", "com.microsoft"})
      message.add(8, Message().add(1, domain).add(2, int64_t(1)));
    return message.add(8, Message().add(1, Bytes()).add(2, opset));
  }
  /// Writes the model to a file and returns its path.
  std::string write(const std::string &path) const {
    std::ofstream(path, std::ios::binary) << model();
    return path;
  }
};

} // namespace burin::test
