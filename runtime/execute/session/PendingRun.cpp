#include "runtime/execute/session/PendingRun.h"
#include <algorithm>
#include <utility>

namespace burin::rt {

PendingRun::PendingRun(Program::Ptr program, uint32_t function, std::span<const uint32_t> reportingSteps,
                       std::unique_ptr<gpu::Report> report)
    : program(std::move(program)), function(function), steps(reportingSteps.begin(), reportingSteps.end()),
      report(std::move(report)) {}

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
        outcome = dataErrorOf(a, a.plans[function], steps[slot], found[slot]);
    if (report->isCaptured) { // the captured graph may be launched again
      std::fill_n(report->letters, report->slots, DataError::kNone);
      return std::exchange(outcome, Status());
    }
    report.reset();
  }
  return outcome.ok() ? Status() : Status(outcome.code(), outcome.message());
}

} // namespace burin::rt
