// The place that a LocationScope of this thread puts in front of a caller's.
#pragma once
#include "burin/location_scope.h"

namespace burin::detail {
const Location &inScope(const Location &where);
/// The same text, never freed: what a Location wants.
const char *keepText(std::string text);
} // namespace burin::detail
