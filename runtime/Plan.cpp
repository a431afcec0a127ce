#include "runtime/Plan.h"
#include <algorithm>

namespace burin::rt {
namespace {

struct Placed {
  uint64_t begin, end;
  uint32_t firstStep, lastStep;
};

bool liveTogether(const Placed &a, const LiveRange &b) {
  return a.firstStep <= b.lastStep && b.firstStep <= a.lastStep;
}

} // namespace

Placement placeBuffers(std::span<const LiveRange> buffers) {
  constexpr uint64_t kLargest = UINT64_MAX - kBufferAlign;
  Placement out;
  out.offsets.reserve(buffers.size());
  std::vector<Placed> placed; // by begin
  for (const LiveRange &buffer : buffers) {
    if (buffer.bytes == 0) {
      out.offsets.push_back(0);
      continue;
    }
    uint64_t offset = 0;
    for (const Placed &other : placed) {
      if (!liveTogether(other, buffer))
        continue;
      if (other.begin >= offset && other.begin - offset >= buffer.bytes)
        break;
      offset = std::max(offset, other.end);
    }
    if (buffer.bytes > kLargest - offset) {
      out.arenaBytes = UINT64_MAX;
      out.offsets.resize(buffers.size());
      return out;
    }
    uint64_t end = (offset + buffer.bytes + kBufferAlign - 1) / kBufferAlign * kBufferAlign;
    Placed self{offset, end, buffer.firstStep, buffer.lastStep};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), self,
                                   [](const Placed &a, const Placed &b) { return a.begin < b.begin; }),
                  self);
    out.offsets.push_back(offset);
    out.arenaBytes = std::max(out.arenaBytes, end);
  }
  return out;
}

} // namespace burin::rt
