#include "runtime/format/ArenaPlacement.h"
#include "runtime/format/Artifact.h"
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

uint32_t loopOf(const Plan &p, const ArenaBuffer &buffer) {
  for (uint32_t i = 0; buffer.perWorker && i < p.loops.size(); ++i)
    if (p.loops[i].firstStep <= buffer.firstStep && buffer.lastStep <= p.loops[i].lastStep)
      return i;
  return kNoLoop;
}

std::vector<LiveRange> loopRanges(const Plan &p) {
  std::vector<LiveRange> ranges;
  for (const Loop &loop : p.loops)
    ranges.push_back({0, loop.firstStep, loop.lastStep});
  return ranges;
}

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
  // A loop is placed as one buffer, in the order where its first local buffer comes; the local ones are placed inside.
  std::vector<LiveRange> outside;
  std::vector<size_t> placeOf(buffers.size()), placeOfLoop(loops.size(), SIZE_MAX);
  std::vector<Placement> inside(loops.size());
  Placement out;
  out.strides.resize(loops.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    const uint32_t loop = buffers[i].loop;
    if (loop == kNoLoop) {
      placeOf[i] = outside.size();
      outside.push_back(buffers[i]);
      continue;
    }
    if (placeOfLoop[loop] == SIZE_MAX) {
      std::vector<LiveRange> own(buffers.begin(), buffers.end());
      for (LiveRange &buffer : own)
        if (buffer.loop != loop)
          buffer.bytes = 0;
      inside[loop] = placeBuffers(own);
      out.strides[loop] = inside[loop].arenaBytes;
      LiveRange whole = loops[loop];
      if (__builtin_mul_overflow(out.strides[loop], uint64_t(workers), &whole.bytes))
        whole.bytes = UINT64_MAX; // does not fit
      placeOfLoop[loop] = outside.size();
      outside.push_back(whole);
    }
    placeOf[i] = placeOfLoop[loop];
  }
  Placement together = placeBuffers(outside);
  out.arenaBytes = together.arenaBytes;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const uint32_t loop = buffers[i].loop;
    out.offsets.push_back(together.offsets[placeOf[i]] + (loop == kNoLoop ? 0 : inside[loop].offsets[i]));
  }
  return out;
}

} // namespace burin::rt
