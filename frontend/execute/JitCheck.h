// Whether a function still records what has been compiled.
#pragma once
#include "frontend/trace/Trace.h"

namespace burin::detail {

/// The first op or constant in which two recordings of one function differ, in words; nullopt if they are the same.
std::optional<std::string> firstDifference(const Graph &before, const Graph &now);

} // namespace burin::detail
