#include "runtime/gpu/ErrorSlots.h"
#include <algorithm>

namespace burin::rt::gpu {

std::vector<uint32_t> orderOfFunctions(const Step &step) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < step.plans.size(); ++i)
    order.push_back(i);
  if (step.kind == Step::Kind::While)
    std::ranges::reverse(order);
  return order;
}

std::vector<ReportingStep> reportingSteps(const Artifact &artifact, uint32_t plan) {
  std::vector<ReportingStep> all;
  const std::vector<Step> &steps = artifact.plans[plan].steps;
  for (uint32_t i = 0; i < steps.size(); ++i) {
    if (canFail(artifact, steps[i]))
      all.push_back({plan, i});
    for (uint32_t which : orderOfFunctions(steps[i])) {
      std::vector<ReportingStep> inside = reportingSteps(artifact, steps[i].plans[which]);
      all.insert(all.end(), inside.begin(), inside.end());
    }
  }
  return all;
}

} // namespace burin::rt::gpu
