// The place that a LocationScope of this thread puts in front of a caller's.
#pragma once
#include "burin/location_scope.h"

namespace burin::detail {
const Location &inScope(const Location &where);
/// The same text, never freed: what a Location wants.
const char *keepText(std::string text);
/// The module whose call this thread is in, as in state_dict(): "encoder.layers.3.linear1". Empty if there is none.
std::string modulePath();
} // namespace burin::detail
