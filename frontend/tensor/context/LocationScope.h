// The location that a LocationScope of this thread substitutes for a caller's.
#pragma once
#include "burin/graph/location_scope.h"

namespace burin::detail {
const Location &inScope(const Location &where);
/// The location of this thread's last request for the sizes of a traced tensor: comparisons of Dims have none.
Location &lastSizes();
/// A copy of the text that is never freed, as Location requires.
const char *keepText(std::string text);
/// The module in whose call this thread is, as in state_dict(): "encoder.layers.3.linear1". Empty if none.
std::string modulePath();
/// A line for the error of a call whose module is not known: the module that was called before; or "".
std::string afterModule();
} // namespace burin::detail
