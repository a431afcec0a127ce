// Named ranges on the timeline of a profiler, by NVTX.
#pragma once
#include <string>

namespace burin::rt::gpu {

/// A range of the calling thread, for its lifetime. Ranges nest. Does nothing unless a profiler has set
/// NVTX_INJECTION64_PATH to its library, as Nsight Systems does for the processes that it starts.
class Range {
public:
  /// Whether a profiler receives ranges; otherwise names need not be made.
  static bool isUsed();
  explicit Range(const std::string &name);
  ~Range();
  Range(const Range &) = delete;

private:
  const bool isOpen;
};

} // namespace burin::rt::gpu
