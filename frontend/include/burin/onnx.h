// Models in the ONNX format.
#pragma once
#include "burin/graph/graph.h"
#include "burin/nn/module.h"
#include <functional>
#include <string>
#include <vector>

namespace burin {

/// Options of load_onnx.
struct OnnxOptions {
  /// Values of inputs that become constants and leave the signature. Required for inputs that decide on a size, such as
  /// the shape of a Reshape.
  StateDict fixed;
  /// A size of the inputs by its name in the model: its dim_param, or, for unnamed ones, "image_2" for the third size
  /// of the input "image". Equal bounds fix it; otherwise every run checks the range.
  struct Size {
    std::string name;
    int64_t least, most;
  };
  std::vector<Size> sizes;
  /// The shape of an input. Required for inputs that the model declares without one; for others it has as many
  /// dimensions as the declared shape, and equal numbers.
  struct InputShape {
    std::string input;
    Shape shape; // numbers of at least 1, names of sizes, and expressions of them
  };
  std::vector<InputShape> shapes = {};
  /// Receives warnings about the model, such as a declared shape that differs from the computed one.
  std::function<void(const std::string &)> warn;
};

/// Reads an ONNX model as a graph with the model's names. Weights, including external data, are mapped where their
/// alignment allows it, so the files must not be changed in place while the graph is in use.
///
/// Graph::load does the same without options.
///
/// Throws Error with the node and the problem; unsupported ops are listed together. Loading is safe for any bytes, and
/// external data is only read from the model's folder.
BURIN_API Graph load_onnx(const std::string &path, const OnnxOptions &options, Location where = Location::current());
/// The same with only OnnxOptions::fixed.
BURIN_API Graph load_onnx(const std::string &path, const StateDict &fixed = {}, Location where = Location::current());

} // namespace burin
