// Runs a function on paper with a budget of bytes: values that do not fit are dropped and recomputed.
#pragma once
#include "passes/kernels/memory/Recompute.h"

namespace burin::passes {

/// Steps whose buffers fit a budget, and the values that they compute again.
struct BudgetedSteps {
  MemoryModel model;
  std::vector<MemoryChange> changes;
};

/// The steps of the model, in their order, with recomputations between them. When the results of a step do not fit, a
/// value is dropped that the step does not need: the one that takes the least time to recompute per byte and step until
/// its next use. A dropped value is recomputed before its next use, after those of its inputs that are gone, too.
/// Inputs that cannot be recomputed are kept as long as a dropped value needs them. Returns nullopt if that does not
/// fit.
std::optional<BudgetedSteps> stepsWithin(int64_t bytes, const MemoryModel &model, Recipes &recipes,
                                         BufferReuseCache &bufferReuse);

} // namespace burin::passes
