// Models in the ONNX format.
#pragma once
#include "burin/graph.h"
#include "burin/module.h"
#include <functional>
#include <string>
#include <vector>

namespace burin {

/// How load_onnx reads a model; by default as it is.
struct OnnxOptions {
  /// Values of inputs, once and for all: these become constants and leave the signature. An input that decides on a
  /// size, such as the shape of a Reshape, must be given so.
  StateDict fixed;
  /// A size of the inputs by its name in the model (its dim_param, or "image_2" for the third size of the input "image"
  /// where the model has no name). A number for both ends fixes it; else every run checks that it is within the range.
  struct Size {
    std::string name;
    int64_t least, most;
  };
  std::vector<Size> sizes;
  /// Gets what is odd about the model but no error, such as a declared shape that is not the computed one.
  std::function<void(const std::string &)> warn;
};

/// Reads an ONNX model: a graph with the model's names. Weights, external data included, are mapped where their
/// alignment allows, so the files must not be changed in place while the graph is in use.
///
/// Graph::load does the same without options.
///
/// Throws Error, naming the node and what is wrong; ops that burin does not have are listed all at once. Any bytes are
/// safe to load, and external data never leads out of the model's folder.
BURIN_API Graph load_onnx(const std::string &path, const OnnxOptions &options, Location where = Location::current());
/// With OnnxOptions::fixed alone.
BURIN_API Graph load_onnx(const std::string &path, const StateDict &fixed = {}, Location where = Location::current());

} // namespace burin
