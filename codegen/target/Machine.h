// Tuning parameters of a processor; the defaults were measured on an Emerald Rapids Xeon. They never affect results,
// packed weights or the launch plan; constants for those are in passes/TargetIndependent.h.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace burin::codegen {

/// Cache line size in bytes, on every target.
inline constexpr int64_t kLineBytes = 64;

struct Machine {
  int64_t l1WayBytes = 4096; // addresses this far apart share a set of L1 …
  int64_t l1Ways = 8;        // … which holds this many cache lines
  /// Total bytes of a kernel's results from which they are written by non-temporal stores, as they would not stay in a
  /// cache.
  int64_t streamFromBytes = int64_t(128) << 20;
  // Prefetch distance for the operands of such results: the bytes that DRAM delivers during the latency of a load.
  int64_t prefetchBytes = 4096;
  int64_t prefetchNearSteps = 16; // prefetch distance of panels to L1, in iterations over the summed dimension …
  int64_t prefetchFarSteps = 96;  // … and to L2, if a panel is read only once
  /// Chunks of columns (see ContractionSchedule) that a register tile of a product spans. More of them have fewer rows,
  /// and fewer loads per product.
  int64_t tileChunks = 1;
  bool memoryBroadcasts = true; // FMAs that broadcast an operand from memory are as fast as others
  bool splitStoresWait = true;  // a store across two cache lines waits for both, and later stores wait for it
};

/// Parameters of a processor family, by LLVM's name of the processor ("znver4", "sapphirerapids"); defaults for unknown
/// ones.
Machine machineOf(llvm::StringRef cpu);

/// All parameters as lines "name value": a profile, and part of the cache key of compiled code.
std::string profileText(const Machine &);
/// Overrides parameters of `start` by such lines; nullopt, with `error` set, for an unknown name or invalid value.
std::optional<Machine> parseProfile(llvm::StringRef text, Machine start, std::string &error);

} // namespace burin::codegen
