// Detects the kind of an input file, and parses arguments of the form NAME=SIZE.
#pragma once
#include "tools/burin/model/ArtifactFacts.h"

namespace burin::cli {

enum class FileKind { Artifact, Graph, Onnx };

/// Decides by the first bytes, or by the file name if the file cannot be read.
FileKind kindOf(const std::string &path);

/// Returns kOk for a graph, or kBadModel after a message that names the kind of the file.
int checkIsGraph(const std::string &path);

/// Returns kOk, or kUsage after a message.
int parseDims(const std::vector<std::string> &arguments, Dims &out);

} // namespace burin::cli
