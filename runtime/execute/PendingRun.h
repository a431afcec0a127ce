// A run on a GPU that was left before it was done.
#pragma once
#include "runtime/execute/PlanRunner.h"

namespace burin::rt {

/// What kernels have found wrong in a run is known when somebody waits for it. May be used from any thread.
class PendingRun {
public:
  PendingRun(Program::Ptr program, uint32_t function, std::span<const uint32_t> reportingSteps,
             std::unique_ptr<gpu::Report> report);
  /// Waits for the run. The error of the first step that found a value that is not allowed, or of the driver.
  Status wait();
  /// Whether the caller has captured it, and may launch it any number of times.
  bool isCaptured() const { return report && report->isCaptured; }
  /// Whether somebody has waited, and nothing was wrong.
  bool isKnownGood();

private:
  const Program::Ptr program;
  const uint32_t function;
  const std::vector<uint32_t> steps;
  std::mutex mutex;
  std::unique_ptr<gpu::Report> report; // null: somebody has waited
  Status outcome;
};

} // namespace burin::rt
