// What kind of file a command was given, and arguments of the form NAME=SIZE.
#pragma once
#include "tools/burin/ArtifactFacts.h"

namespace burin::cli {

enum class FileKind { Artifact, Graph, Onnx };

/// By the first bytes, or by the name for a file that cannot be read.
FileKind kindOf(const std::string &path);

/// kOk, or kBadModel after a message that says what the file is instead of a graph.
int checkIsGraph(const std::string &path);

/// kOk, or kUsage after a message.
int parseDims(const std::vector<std::string> &arguments, Dims &out);

} // namespace burin::cli
