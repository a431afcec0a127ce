// Arrays that the command line names: .npy files, and ONNX's .pb files of one tensor.
#pragma once
#include "burin/module.h"
#include "runtime/npy/Npy.h"
#include <optional>
#include <string>
#include <vector>

namespace burin::cli {

rt::NpyArray arrayOf(const Tensor &);

std::optional<rt::NpyArray> readArray(const std::string &path, std::string &error);

/// The values of --fix NAME=@FILE or NAME=NUMBER (an i64), with which inputs become constants. kOk, or kUsage after a
/// message.
int readFixedInputs(const std::vector<std::string> &arguments, StateDict &out);

/// What --fix says about itself.
extern const char *const kFixHelp;

} // namespace burin::cli
