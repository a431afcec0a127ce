// ONNX models and tensors read from files. The public entry is burin::load_onnx; the tools use the rest.
#pragma once
#include "burin/onnx.h"

namespace burin::onnx {

/// The model is valid as far as can be told, but uses what burin does not have.
class Unsupported : public Error {
  using Error::Error;
};

/// Whether a file holds an ONNX model, by its contents; by its name if it cannot be read or is not a whole message.
bool isModelFile(const std::string &path);

/// The graph of a model.
Graph importModel(const std::string &path, const OnnxOptions &options, const Location &where);

/// All that is wrong with a model and not hidden by something else that is. What makes reading on impossible is thrown.
std::vector<std::string> problemsOf(const std::string &path, const OnnxOptions &options, const Location &where);

/// A TensorProto in a file of its own, as ONNX's test data has it.
Tensor readTensorFile(const std::string &path, const Location &where);

} // namespace burin::onnx
