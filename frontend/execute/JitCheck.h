// Comparison of a function's trace with the compiled one.
#pragma once
#include "frontend/trace/Trace.h"

namespace burin::detail {

/// The arguments and results of the function now, by those of before. Traces list states in the order of their first
/// use, which changes once an optimiser has made its states.
struct SameValues {
  std::vector<size_t> arguments, results;
};

/// Matches `before` and `now`, the states of two traces of a function with `arguments` and `results` besides, by their
/// variables; those that only one of them has are matched in their order.
SameValues sameStates(std::span<const StateUse> before, std::span<const StateUse> now, size_t arguments,
                      size_t results);

/// Describes the first op or constant in which two traces of a function differ; nullopt if they are equal.
std::optional<std::string> firstDifference(const Graph &before, const Graph &now, const SameValues &same);

} // namespace burin::detail
