// What burin-run prints: results on stdout, the rest on stderr.
#pragma once
#include "burin/runtime.h"
#include "tools/burin-run/Options.h"
#include "tools/burin-run/Values.h"

namespace burin::run {

struct NamedTensor {
  std::string name;
  burin_tensor tensor;
  std::string source; // of an input: "x.npy", "random", "filled"

  Values values() const {
    return {DType(tensor.dtype), {tensor.shape, tensor.rank}, static_cast<const std::byte *>(tensor.data)};
  }
};

/// The times of one step over all runs.
struct StepTimes {
  burin_step_profile step{};
  int64_t totalNs = 0, runs = 0;
};

struct Report {
  std::string model, target;
  std::vector<NamedTensor> inputs, outputs;
  double loadMs = 0;
  uint64_t arenaBytes = 0;
  std::vector<double> runUs; // empty: not timed
  std::vector<StepTimes> steps;
};

void printText(const Report &report, const Options &options);
void printJson(const Report &report);

} // namespace burin::run
