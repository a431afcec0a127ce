// The place that a LocationScope of this thread puts in front of a caller's.
#pragma once
#include "burin/error.h"

namespace burin::detail {
const Location &inScope(const Location &where);
}
