#include "runtime/format/ArenaPlacement.h"
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

Placement placeBuffers(std::span<const LiveRange> buffers, std::span<const LiveRange> loops, int workers) {
  // A loop is placed as one buffer; buffers local to its iterations are placed inside of it.
  std::vector<LiveRange> outside(buffers.begin(), buffers.end());
  for (LiveRange &buffer : outside)
    if (buffer.loop != kNoLoop)
      buffer.bytes = 0;
  std::vector<Placement> inside;
  std::vector<uint64_t> strides;
  for (uint32_t loop = 0; loop < loops.size(); ++loop) {
    std::vector<LiveRange> own(buffers.begin(), buffers.end());
    for (LiveRange &buffer : own)
      if (buffer.loop != loop)
        buffer.bytes = 0;
    inside.push_back(placeBuffers(own));
    strides.push_back(inside.back().arenaBytes);
    LiveRange whole = loops[loop];
    if (__builtin_mul_overflow(strides.back(), uint64_t(workers), &whole.bytes))
      whole.bytes = UINT64_MAX; // does not fit
    outside.push_back(whole);
  }
  Placement out = placeBuffers(outside);
  for (size_t i = 0; i < buffers.size(); ++i)
    if (uint32_t loop = buffers[i].loop; loop != kNoLoop)
      out.offsets[i] = out.offsets[buffers.size() + loop] + inside[loop].offsets[i];
  out.offsets.resize(buffers.size());
  out.strides = std::move(strides);
  return out;
}

} // namespace burin::rt
