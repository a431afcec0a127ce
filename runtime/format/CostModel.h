// How long work takes: what the number of threads and the order of steps are chosen by. Estimates of a plan's flops and
// bytes for one core, the same on every machine, so that a program is cut into the same chunks everywhere.
#pragma once
#include <cstdint>

namespace burin::rt::cost {

// A core does 32 flops and moves 8 bytes per ns; waking the pool costs about a microsecond, so steps below 8 µs stay on
// one thread, and chunks are at least 4 µs long. Long steps need no more than some chunks for all threads to end
// together, and lose at the ends of each: stores past the cache are waited for.
inline constexpr double kFlopsPerNs = 32, kBytesPerNs = 8, kSerialNs = 8000, kChunkNs = 4000, kMostChunks = 1024;
/// What running steps side by side must save: what is in a cache takes an eighth of the estimate, and waking a thread a
/// microsecond.
inline constexpr double kWakeNs = 8000;

inline constexpr double nsOf(double flops, double bytes) { return flops / kFlopsPerNs + bytes / kBytesPerNs; }

// On a GPU a kernel of few blocks leaves most multiprocessors idle. Estimated, not measured: a multiprocessor does 100
// flops and moves 20 bytes per ns, the shortest kernel takes 2 µs, and a fork with its join costs two of these.
inline constexpr double kGpuFlopsPerNs = 100, kGpuBytesPerNs = 20, kGpuKernelNs = 2000, kGpuForkNs = 4000;
inline constexpr int64_t kFewBlocks = 32; // of a kernel beside which others run

inline constexpr double gpuNsOf(int64_t blocks, double flops, double bytes) {
  return kGpuKernelNs + (flops / kGpuFlopsPerNs + bytes / kGpuBytesPerNs) / double(blocks);
}

} // namespace burin::rt::cost
