// ONNX Runtime as a reference, run by a Python that has its package.
#pragma once
#include "runtime/npy/Npy.h"
#include <string>
#include <utility>
#include <vector>

namespace burin::cli {

/// Runs a model on inputs by name. `outputs` are in the order of the model's. Returns an exit code.
int runOnnxRuntime(const std::string &model, const std::vector<std::pair<std::string, rt::NpyArray>> &inputs,
                   std::vector<rt::NpyArray> &outputs);

} // namespace burin::cli
