// Printers of `burin inspect`.
#pragma once
#include "tools/burin/model/ArtifactFacts.h"

namespace burin::cli {

void printFacts(const std::string &path, const ArtifactFacts &);
void printFactsJson(const std::string &path, const ArtifactFacts &);

/// Inspects a graph (.burin or .mlir). Returns an exit code.
int inspectGraph(const std::string &path, bool json);

} // namespace burin::cli
