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

/// The graph of a model. Inputs named in `fixed` become constants and leave the signature: what an op must know when
/// the model is compiled, such as the shape of a Reshape, can be given so.
Graph importModel(const std::string &path, const StateDict &fixed, const Location &where);

/// A TensorProto in a file of its own, as ONNX's test data has it.
Tensor readTensorFile(const std::string &path, const Location &where);

} // namespace burin::onnx
