#include "frontend/onnx/export/ExportModel.h"
#include "frontend/onnx/export/Export.h"
#include <algorithm>
#include <protozero/pbf_writer.hpp>

namespace burin::onnx {

using protozero::pbf_writer;

namespace {

constexpr uint64_t kExternalAlignment = 4096, kSmallestExternal = 1024;

// Each function writes the fields of one message of onnx.proto; field numbers are those of the standard.

void writeShape(pbf_writer message, const Shape &shape) {
  for (const Dim &size : shape) {
    pbf_writer dim(message, 1);
    if (size.isStatic())
      dim.add_int64(1, size.value());
    else
      dim.add_string(2, size.str());
  }
}

void writeValueInfo(pbf_writer message, const OutValue &value) {
  message.add_string(1, value.name);
  pbf_writer type(message, 2);
  pbf_writer tensor(type, 1);
  tensor.add_int32(1, int32_t(dataTypeOf(value.spec.dtype)));
  std::string shape;
  writeShape(pbf_writer(shape), value.spec.shape);
  tensor.add_message(2, shape); // required for scalars, too: without a shape the rank is unknown
}

void writeEntry(pbf_writer message, const char *key, const std::string &value) {
  message.add_string(1, key);
  message.add_string(2, value);
}

void writeTensor(pbf_writer message, const OutTensor &tensor, const ExternalData *external, size_t index) {
  for (const Dim &size : tensor.spec.shape)
    message.add_int64(1, size.value());
  message.add_int32(2, int32_t(dataTypeOf(tensor.spec.dtype)));
  message.add_string(8, tensor.name);
  const uint64_t *offset = external ? external->offsetOf(index) : nullptr;
  if (!offset) {
    message.add_bytes(9, tensor.bytes.data(), tensor.bytes.size());
    return;
  }
  writeEntry({message, 13}, "location", external->location);
  writeEntry({message, 13}, "offset", std::to_string(*offset));
  writeEntry({message, 13}, "length", std::to_string(tensor.bytes.size()));
  message.add_enum(14, 1);
}

void writeGraph(pbf_writer message, const OutModel &model, const ExternalData *external);

void writeAttribute(pbf_writer message, const std::string &name, const OutAttribute &value) {
  message.add_string(1, name);
  enum Type { Float = 1, Int = 2, String = 3, Graph = 5, Ints = 7 } type = Int;
  if (auto *number = std::get_if<int64_t>(&value)) {
    message.add_int64(3, *number);
  } else if (auto *real = std::get_if<double>(&value)) {
    message.add_float(2, float(*real));
    type = Float;
  } else if (auto *text = std::get_if<std::string>(&value)) {
    message.add_bytes(4, *text);
    type = String;
  } else if (auto *graph = std::get_if<std::shared_ptr<OutModel>>(&value)) {
    writeGraph({message, 6}, **graph, nullptr);
    type = Graph;
  } else {
    for (int64_t each : std::get<std::vector<int64_t>>(value))
      message.add_int64(8, each);
    type = Ints;
  }
  message.add_enum(20, type);
}

void writeNode(pbf_writer message, const OutNode &node) {
  for (const std::string &input : node.inputs)
    message.add_string(1, input);
  for (const std::string &output : node.outputs)
    message.add_string(2, output);
  message.add_string(3, node.outputs.front()); // as a unique name
  message.add_string(4, node.op);
  for (const auto &[name, value] : node.attributes)
    writeAttribute({message, 5}, name, value);
  if (!node.doc.empty())
    message.add_string(6, node.doc);
}

void writeGraph(pbf_writer message, const OutModel &model, const ExternalData *external) {
  for (const OutNode &node : model.nodes)
    writeNode({message, 1}, node);
  message.add_string(2, model.name);
  for (size_t i = 0; i < model.initializers.size(); ++i)
    writeTensor({message, 5}, model.initializers[i], external, i);
  for (const OutValue &input : model.inputs)
    writeValueInfo({message, 11}, input);
  for (const OutValue &output : model.outputs)
    writeValueInfo({message, 12}, output);
  for (const OutValue &value : model.values)
    writeValueInfo({message, 13}, value);
}

} // namespace

DataType dataTypeOf(DType dtype) { return DataType(infoOf(dtype).onnx); }

ExternalData::ExternalData(std::string location, const OutModel &model) : location(std::move(location)) {
  uint64_t end = 0;
  for (size_t i = 0; i < model.initializers.size(); ++i) {
    uint64_t size = model.initializers[i].bytes.size();
    if (size < kSmallestExternal)
      continue;
    uint64_t offset = (end + kExternalAlignment - 1) / kExternalAlignment * kExternalAlignment;
    places.emplace_back(i, offset);
    end = offset + size;
  }
}

const uint64_t *ExternalData::offsetOf(size_t initializer) const {
  auto at = std::lower_bound(places.begin(), places.end(), std::pair(initializer, uint64_t(0)));
  return at != places.end() && at->first == initializer ? &at->second : nullptr;
}

std::string serialize(const OutModel &model, const ExternalData *external) {
  std::string bytes;
  size_t weights = 1 << 16; // weights plus some space for nodes, so that the buffer is not reallocated
  for (const OutTensor &tensor : model.initializers)
    weights += external ? 0 : tensor.bytes.size();
  bytes.reserve(weights);
  pbf_writer message(bytes);
  message.add_int64(1, kExportIrVersion);
  message.add_string(2, "burin");
  message.add_string(3, BURIN_VERSION);
  writeGraph({message, 7}, model, external);
  pbf_writer opset(message, 8);
  opset.add_string(1, "");
  opset.add_int64(2, kExportOpset);
  opset.commit();
  return bytes;
}

} // namespace burin::onnx
