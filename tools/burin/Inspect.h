// What `burin inspect` prints.
#pragma once
#include "tools/burin/ArtifactFacts.h"

namespace burin::cli {

void printFacts(const std::string &path, const ArtifactFacts &);
void printFactsJson(const std::string &path, const ArtifactFacts &);

/// Of a graph: .burin or .mlir. An exit code.
int inspectGraph(const std::string &path, bool json);

} // namespace burin::cli
