// Facts of a processor that code is tuned by: never its results, its packed weights or its launch plan, for which
// passes/TargetIndependent.h has what all targets share.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace burin::codegen {

/// Bytes of a line of the caches of every target.
inline constexpr int64_t kLineBytes = 64;

struct Machine {
  int64_t l1WayBytes = 4096; // addresses this far apart share a set of the first data cache …
  int64_t l1Ways = 8;        // … which holds so many lines
  /// Results from this size on are written past the caches: nobody would find them there.
  int64_t streamFromBytes = int64_t(128) << 20;
  int64_t prefetchBytes = 4096;   // ahead of streamed results: what memory delivers while one line is on its way
  int64_t prefetchNearSteps = 16; // of the summed dimension that panels are fetched ahead into the first level …
  int64_t prefetchFarSteps = 96;  // … and into the second one, where a panel is read only once
  bool splitStoresWait = true;    // a store across two lines waits for both, and those behind it wait with it
};

/// Of a family of processors by the name that LLVM gives one ("znver4", "sapphirerapids"); the default if it is not
/// known.
Machine machineOf(llvm::StringRef cpu);

/// All facts as lines "name value": a profile, and part of the key of a cache of compiled code.
std::string profileText(const Machine &);
/// Reads such lines over the facts of `start`; nullopt, with `error`, for a name or value that is none.
std::optional<Machine> parseProfile(llvm::StringRef text, Machine start, std::string &error);

} // namespace burin::codegen
