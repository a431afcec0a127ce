// Prints the report of burin-run: results to stdout, everything else to stderr.
#pragma once
#include "burin/runtime.h"
#include "tools/common/Options.h"
#include "tools/common/Values.h"
#include <cstdio>

namespace burin::run {

struct NamedTensor {
  std::string name;
  burin_tensor tensor;
  std::string source; // origin of an input: "x.npy", "random", "filled"

  Values values() const {
    return {DType(tensor.dtype), {tensor.shape, tensor.rank}, static_cast<const std::byte *>(tensor.data)};
  }
};

/// Summary of a list of times, which must not be empty.
struct Times {
  double median, p10, p90;
};
Times quantiles(std::vector<double> us);

/// The times of one step over all runs.
struct StepTimes {
  burin_step_profile step{};
  std::vector<double> us; // one per run; in a loop, the sum over all iterations

  double medianUs() const { return quantiles(us).median; }
};

struct Report {
  std::string model, target;
  std::vector<NamedTensor> inputs, outputs;
  double loadMs = 0;
  uint64_t arenaBytes = 0;
  std::vector<double> runUs; // empty: not timed
  std::vector<StepTimes> steps;
};

/// Prints a table with the time, share, rates, kernel and source line of each step.
void printSteps(std::FILE *out, const std::vector<StepTimes> &steps);

void printText(const Report &report, const Options &options);
void printJson(const Report &report);

} // namespace burin::run
