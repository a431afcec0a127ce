// Reads arrays named on the command line: .npy files, and ONNX .pb files of one tensor.
#pragma once
#include "burin/nn/module.h"
#include "runtime/npy/Npy.h"
#include <optional>
#include <string>
#include <vector>

namespace burin::cli {

rt::NpyArray arrayOf(const Tensor &);

std::optional<rt::NpyArray> readArray(const std::string &path, std::string &error);

/// Parses --fix NAME=@FILE and NAME=NUMBER (an i64), which turn inputs into constants. Returns kOk, or kUsage after a
/// message.
int readFixedInputs(const std::vector<std::string> &arguments, StateDict &out);

/// The help text of --fix.
extern const char *const kFixHelp;

} // namespace burin::cli
