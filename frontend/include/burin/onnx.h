// Models in the ONNX format.
#pragma once
#include "burin/graph.h"
#include "burin/module.h"

namespace burin {

/// Reads an ONNX model: a graph with the model's names. Weights, external data included, are mapped where their
/// alignment allows, so the files must not be changed in place while the graph is in use.
///
/// `fixed` gives inputs their values once and for all: they become constants and leave the signature. An input that
/// decides on a size, such as the shape of a Reshape, must be given so. Graph::load does the same without `fixed`.
///
/// Throws Error, naming the node and what is wrong; ops that burin does not have are listed all at once. Any bytes are
/// safe to load, and external data never leads out of the model's folder.
BURIN_API Graph load_onnx(const std::string &path, const StateDict &fixed = {}, Location where = Location::current());

} // namespace burin
