// Shared by the commands that run a model: the artifact to run, and options of the form NAME=VALUE.
#pragma once
#include "codegen/Compiler.h"
#include "tools/common/Options.h"
#include <span>
#include <vector>

namespace burin::cli {

/// Compiles a graph in memory for the runner; `out` stays empty for an artifact file, which the runner reads itself.
/// Returns an exit code.
int artifactOf(const run::Options &run, const codegen::CompileOptions &options, std::vector<std::byte> &out);

/// The options of burin-run that bench and verify accept too.
struct InputArguments {
  std::vector<std::string> inputs, dims;
  /// Moves the parsed options to `out`. Returns kOk, or kUsage after a message.
  int moveTo(run::Options &out) const;
};

} // namespace burin::cli
