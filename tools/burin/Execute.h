// What the commands that run a model share: the artifact to run, and options given as NAME=VALUE.
#pragma once
#include "codegen/Compiler.h"
#include "tools/common/Options.h"
#include <span>
#include <vector>

namespace burin::cli {

/// What the runner loads: nothing for an artifact file, which it reads itself, or the bytes of a graph compiled now.
/// An exit code.
int artifactOf(const run::Options &run, const codegen::CompileOptions &options, std::vector<std::byte> &out);

/// The options that bench and verify take from burin-run.
struct InputArguments {
  std::vector<std::string> inputs, dims;
  /// kOk, or kUsage after a message.
  int moveTo(run::Options &out) const;
};

} // namespace burin::cli
