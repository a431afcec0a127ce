#include "runtime/execute/session/PendingRun.h"
#include <algorithm>
#include <utility>

namespace burin::rt {

PendingRun::PendingRun(Program::Ptr program, std::span<const gpu::ReportingStep> reportingSteps,
                       std::unique_ptr<gpu::Report> report)
    : program(std::move(program)), steps(reportingSteps.begin(), reportingSteps.end()), report(std::move(report)) {}

bool PendingRun::isKnownGood() {
  std::lock_guard lock(mutex);
  return !report && outcome.ok();
}

Status PendingRun::wait() {
  std::lock_guard lock(mutex);
  if (report) {
    std::span<const int64_t> found;
    outcome = report->wait(found);
    const Artifact &a = program->artifact();
    for (size_t slot = 0; slot < steps.size() && outcome.ok(); ++slot)
      if (found[slot] != DataError::kNone)
        outcome = dataErrorOf(a, a.plans[steps[slot].plan], steps[slot].step, found[slot]);
    if (report->isCaptured) { // the captured graph may be launched again
      std::fill_n(report->letters, report->slots, DataError::kNone);
      return std::exchange(outcome, Status());
    }
    report.reset();
  }
  return outcome.ok() ? Status() : Status(outcome.code(), outcome.message());
}

} // namespace burin::rt
