// Cost model for choosing the number of threads and the order of steps. Times are estimated from the FLOP and bytes of
// a plan, for one core, equally on every machine, so that work is cut into the same chunks everywhere.
#pragma once
#include <cstdint>

namespace burin::rt::cost {

// A core computes 32 FLOP and moves 8 bytes per ns; waking the pool costs about 1 µs, so steps below 8 µs stay on one
// thread, and chunks are at least 4 µs long. Long steps have at most kMostChunks chunks: enough for all threads to end
// together, while non-temporal stores are waited for at the end of each chunk.
inline constexpr double kFlopsPerNs = 32, kBytesPerNs = 8, kSerialNs = 8000, kChunkNs = 4000, kMostChunks = 1024;
/// Least gain of running steps concurrently: with data in cache they take an eighth of the estimate, and waking a
/// thread costs 1 µs.
inline constexpr double kWakeNs = 8000;

inline constexpr double nsOf(double flops, double bytes) { return flops / kFlopsPerNs + bytes / kBytesPerNs; }

// A GPU kernel of few blocks leaves most multiprocessors idle. Estimated, not measured: a multiprocessor computes 100
// FLOP and moves 20 bytes per ns, the shortest kernel takes 2 µs, and a fork with its join costs two of these.
inline constexpr double kGpuFlopsPerNs = 100, kGpuBytesPerNs = 20, kGpuKernelNs = 2000, kGpuForkNs = 4000;
inline constexpr int64_t kFewBlocks = 32; // most blocks of a kernel that runs concurrently with others

inline constexpr double gpuNsOf(int64_t blocks, double flops, double bytes) {
  return kGpuKernelNs + (flops / kGpuFlopsPerNs + bytes / kGpuBytesPerNs) / double(blocks);
}

} // namespace burin::rt::cost
