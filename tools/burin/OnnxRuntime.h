// ONNX Runtime as an oracle, by way of a Python that has it.
#pragma once
#include "runtime/npy/Npy.h"
#include <string>
#include <utility>
#include <vector>

namespace burin::cli {

/// Runs a model; inputs go by name. The outputs are in the order of the model's. An exit code.
int runOnnxRuntime(const std::string &model, const std::vector<std::pair<std::string, rt::NpyArray>> &inputs,
                   std::vector<rt::NpyArray> &outputs);

} // namespace burin::cli
