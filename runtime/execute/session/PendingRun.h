// A run on a GPU that returned before it was complete.
#pragma once
#include "runtime/execute/PlanRunner.h"

namespace burin::rt {

/// Errors that kernels find are reported to the caller that waits for the run. Thread-safe.
class PendingRun {
public:
  PendingRun(Program::Ptr program, std::span<const gpu::ReportingStep> reportingSteps,
             std::unique_ptr<gpu::Report> report);
  /// Waits for the run. Returns the error of the first step that found an invalid value, or of the driver.
  Status wait();
  /// Whether the caller captured the run in a CUDA graph, so that it may run any number of times.
  bool isCaptured() const { return report && report->isCaptured; }
  /// Whether the run has been waited for and succeeded.
  bool isKnownGood();

private:
  const Program::Ptr program;
  const std::vector<gpu::ReportingStep> steps;
  std::mutex mutex;
  std::unique_ptr<gpu::Report> report; // null after wait()
  Status outcome;
};

} // namespace burin::rt
