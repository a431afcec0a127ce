// The command line of burin-run and `burin run`.
#pragma once
#include "runtime/npy/Npy.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace burin::run {

enum ExitCode { kOk = 0, kMismatch = 1, kUsage = 2, kBadModel = 3, kUnsupported = 4, kInternal = 5 };

struct Options {
  using Named = std::vector<std::pair<std::string, std::string>>; // pairs from name=value arguments, in order
  // Names for messages, such as "burin-run" and "model.plate".
  std::string program, modelText;
  std::string model;
  Named inputs, outputs, expected, data; // values keep the leading '@' of file names
  std::string function;                  // empty: the first function
  std::string device;                    // empty: the processor
  std::string state, saveState;          // paths of safetensors files, or empty
  std::vector<std::string> fixed;        // NAME=VALUE; only `burin run` accepts these
  std::vector<std::pair<std::string, int64_t>> dims;
  int threads = 0;
  int64_t repeat = 1;
  uint64_t seed = 0;
  double rtol = 1e-4, atol = 1e-5;
  /// Reads the array files that options name.
  std::function<std::optional<rt::NpyArray>(const std::string &path, std::string &error)> readArray = rt::loadNpy;
  bool profile = false, json = false, trustWeights = false;
};

/// The parsed options, or the exit code if the program should end (--help, --version, a usage error).
struct Parsed {
  std::optional<Options> options;
  int exitCode = kOk;
};
Parsed parseOptions(const std::string &program, const std::string &modelText, std::vector<std::string_view> args);

} // namespace burin::run
