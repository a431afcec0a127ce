// State that may change after a function has been compiled.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

namespace burin::detail {

/// A value that tracing makes constant in the graph. A jitted function checks the version on every call, and traces
/// again if it has changed.
struct Observed {
  std::atomic<uint64_t> version = 0;
};
/// Reports a read to the current trace of this thread, if any.
void observe(const std::shared_ptr<const Observed> &state);

} // namespace burin::detail
