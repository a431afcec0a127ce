#include "codegen/target/Machine.h"
#include "llvm/ADT/StringExtras.h"

namespace burin::codegen {
namespace {

/// Calls `visit` with the name of each parameter, as in profiles, and a reference to it.
template <class M, class Visit> void eachFact(M &m, Visit visit) {
  visit("l1_way_bytes", m.l1WayBytes);
  visit("l1_ways", m.l1Ways);
  visit("stream_from_bytes", m.streamFromBytes);
  visit("prefetch_bytes", m.prefetchBytes);
  visit("prefetch_near_steps", m.prefetchNearSteps);
  visit("prefetch_far_steps", m.prefetchFarSteps);
  visit("tile_chunks", m.tileChunks);
  visit("memory_broadcasts", m.memoryBroadcasts);
  visit("split_stores_wait", m.splitStoresWait);
}

constexpr int64_t kMostTileChunks = 4; // a tile of AVX-512 has 24 vectors of sums

struct Row {
  llvm::StringLiteral prefix; // of LLVM's processor names
  Machine machine;
};

// Differences from the defaults, which were measured on an Emerald Rapids Xeon. On a Zen 5 a store across two cache
// lines is hardly slower than others. An Ice Lake at 2.8 GHz executes about one load per cycle, beside two FMAs: with 8
// rows of two vectors it reaches 80 to 110 GFLOP/s if some FMAs load their operand, and 150 if none does, with 6 rows
// of four vectors 175, its peak. A Granite Rapids executes two loads per cycle beside two FMAs, which 12 rows of two
// vectors use up: with 6 rows of four, convolutions take 0.9 of the time. Its cores, which some hypervisors report as a
// Rocket Lake, have the load ports of those of Sapphire and Emerald Rapids, where this was not measured.
const Row table[] = {
    {"znver", {.splitStoresWait = false}}, {"sapphirerapids", {.tileChunks = 2}},
    {"emeraldrapids", {.tileChunks = 2}},  {"graniterapids", {.tileChunks = 2}},
    {"rocketlake", {.tileChunks = 2}},     {"icelake", {.tileChunks = 2, .memoryBroadcasts = false}},
};

} // namespace

Machine machineOf(llvm::StringRef cpu) {
  for (const Row &row : table)
    if (cpu.starts_with(row.prefix))
      return row.machine;
  return {};
}

std::string profileText(const Machine &m) {
  std::string text;
  eachFact(m, [&](const char *name, auto value) {
    text += std::string(name) + " " + std::to_string(int64_t(value)) + "\n";
  });
  return text;
}

std::optional<Machine> parseProfile(llvm::StringRef text, Machine start, std::string &error) {
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    line = line.split('#').first.trim();
    if (line.empty())
      continue;
    auto [name, number] = line.split(' ');
    int64_t value = 0;
    bool isKnown = false, isNumber = !number.trim().getAsInteger(10, value) && value >= 0;
    eachFact(start, [&](llvm::StringRef fact, auto &place) {
      if (fact == name) {
        isKnown = true;
        place = static_cast<std::remove_reference_t<decltype(place)>>(value);
      }
    });
    if (!isKnown || !isNumber) {
      error = (isKnown ? "'" + number.trim() + "' is no value of " + name : "there is no fact '" + name + "'").str();
      return std::nullopt;
    }
  }
  // Code divides by these.
  if (start.l1WayBytes < 1 || start.l1Ways < 1) {
    error = "l1_way_bytes and l1_ways must be 1 or more";
    return std::nullopt;
  }
  if (start.tileChunks < 1 || start.tileChunks > kMostTileChunks) {
    error = "tile_chunks must be 1 to " + std::to_string(kMostTileChunks);
    return std::nullopt;
  }
  return start;
}

} // namespace burin::codegen
