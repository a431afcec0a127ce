// Comparison of a function's trace with the compiled one.
#pragma once
#include "frontend/trace/Trace.h"

namespace burin::detail {

/// Describes the first op or constant in which two traces of a function differ; nullopt if they are equal.
std::optional<std::string> firstDifference(const Graph &before, const Graph &now);

} // namespace burin::detail
