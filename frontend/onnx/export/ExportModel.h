// An ONNX model under construction, and its serialisation.
#pragma once
#include "burin/dim.h"
#include "frontend/onnx/proto/Proto.h"
#include <memory>
#include <span>
#include <utility>
#include <variant>

namespace burin::onnx {

DataType dataTypeOf(DType);

struct OutModel;

/// Attributes of nodes; a model represents its graph.
using OutAttribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::shared_ptr<OutModel>>;
using OutAttributes = std::vector<std::pair<std::string, OutAttribute>>;

struct OutNode {
  std::string op;
  std::vector<std::string> inputs, outputs; // "": absent
  OutAttributes attributes;
  std::string doc;
};

struct OutTensor {
  std::string name;
  TensorSpec spec; // of fixed shape
  std::span<const char> bytes;
};

struct OutValue {
  std::string name;
  TensorSpec spec;
};

struct OutModel {
  std::string name;
  std::vector<OutNode> nodes;
  std::vector<OutTensor> initializers;
  std::vector<OutValue> inputs, outputs, values;
};

/// Offsets of large initializers in a file beside the model.
struct ExternalData {
  std::string location;
  std::vector<std::pair<size_t, uint64_t>> places; // by initializer: offset

  /// For all initializers that are large enough.
  ExternalData(std::string location, const OutModel &model);
  const uint64_t *offsetOf(size_t initializer) const;
};

/// The model as a ModelProto.
std::string serialize(const OutModel &model, const ExternalData *external);

} // namespace burin::onnx
