// State that may change under a compiled function.
#pragma once
#include "burin/api.h"
#include <cstdint>
#include <memory>

namespace burin::detail {

/// What a trace reads here is fixed in the graph; a jitted function therefore checks the version on every call and
/// traces again when it has changed.
struct Observed {
  uint64_t version = 0;
};
/// Reports a read to the trace that is being recorded on this thread, if there is one.
BURIN_API void observe(const std::shared_ptr<const Observed> &state);

} // namespace burin::detail
