// Import of ONNX models and tensors. The public entry is burin::load_onnx; the tools use the other functions.
#pragma once
#include "burin/onnx.h"

namespace burin::onnx {

/// The model is valid as far as known, but uses features that burin does not have.
class Unsupported : public Error {
  using Error::Error;
};

/// Whether a file is an ONNX model, by its contents; by its name if it cannot be read or is incomplete.
bool isModelFile(const std::string &path);

/// The graph of a model.
Graph importModel(const std::string &path, const OnnxOptions &options, const Location &where);

/// All problems of a model that are not consequences of others. Throws for problems that make further reading
/// impossible.
std::vector<std::string> problemsOf(const std::string &path, const OnnxOptions &options, const Location &where);

/// A TensorProto in a separate file, as in ONNX's test data.
Tensor readTensorFile(const std::string &path, const Location &where);

} // namespace burin::onnx
