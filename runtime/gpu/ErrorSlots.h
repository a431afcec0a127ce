// Where kernels of a run report invalid values.
#pragma once
#include "runtime/format/Artifact.h"

namespace burin::rt::gpu {

/// A step that may report an invalid value. Each has a slot of its own per call of its function.
struct ReportingStep {
  uint32_t plan, step;
};

/// Those of a plan and of the functions that it calls, so that of several errors of a run the first one comes first.
/// The body of a loop comes before the condition, which runs after it in each iteration but the first.
std::vector<ReportingStep> reportingSteps(const Artifact &artifact, uint32_t plan);
/// The functions of a step in that order: indices into Step::plans.
std::vector<uint32_t> orderOfFunctions(const Step &step);

} // namespace burin::rt::gpu
