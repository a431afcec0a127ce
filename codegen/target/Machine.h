// Facts of a processor for tuning. They never affect results, packed weights or the launch plan; constants for those
// are in passes/TargetIndependent.h.
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
  int64_t l1Ways = 8;        // … which holds as many lines
  /// Results from this size on use non-temporal stores: they would not stay in a cache.
  int64_t streamFromBytes = int64_t(128) << 20;
  // Prefetch distance for streamed results: bytes that memory delivers during the latency of a line.
  int64_t prefetchBytes = 4096;
  int64_t prefetchNearSteps = 16; // prefetch distance of panels to L1, in steps of the sum …
  int64_t prefetchFarSteps = 96;  // … and to L2, if a panel is read only once
  bool splitStoresWait = true;    // stores across two lines wait for both, and block the stores behind them
};

/// Facts of a processor family, by LLVM's name of the processor ("znver4", "sapphirerapids"); defaults for unknown
/// ones.
Machine machineOf(llvm::StringRef cpu);

/// All facts as lines "name value": a profile, and part of the cache key of compiled code.
std::string profileText(const Machine &);
/// Overrides the facts of `start` by such lines; returns nullopt and sets `error` for an unknown name or invalid value.
std::optional<Machine> parseProfile(llvm::StringRef text, Machine start, std::string &error);

} // namespace burin::codegen
