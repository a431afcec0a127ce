// Random graphs of fixed seeds, in several cases so that ctest can run them in parallel. ops-fuzz runs more.
#include "test/ops/RandomGraph.h"
#include <catch2/catch.hpp>

using namespace burin::test;

static void trySeeds(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::string different = tryGraph(seed);
    INFO(different);
    CHECK(different.empty());
  }
}

static void trySymbolicSeeds(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::string different = trySymbols(seed);
    INFO(different);
    CHECK(different.empty());
  }
}

TEST_CASE("Random graphs 1", "[graph]") { trySeeds(1, 30); }
TEST_CASE("Random graphs 2", "[graph]") { trySeeds(1001, 30); }
TEST_CASE("Random graphs 3", "[graph]") { trySeeds(2001, 30); }
TEST_CASE("Random graphs 4", "[graph]") { trySeeds(3001, 30); }

TEST_CASE("Random graphs with symbolic sizes give the bits of known sizes 1", "[graph]") { trySymbolicSeeds(1, 15); }
TEST_CASE("Random graphs with symbolic sizes give the bits of known sizes 2", "[graph]") { trySymbolicSeeds(1001, 15); }
TEST_CASE("Random graphs with symbolic sizes give the bits of known sizes 3", "[graph]") { trySymbolicSeeds(2001, 15); }
TEST_CASE("Random graphs that once differed with symbolic sizes", "[graph]") {
  trySymbolicSeeds(417435, 1);  // a mean over columns, of which there is one
  trySymbolicSeeds(421326, 1);  // a take along columns of [m, 16, 1]
  trySymbolicSeeds(8006138, 1); // a mean over rows and columns of x + y, where y repeats along rows
  trySymbolicSeeds(8019686, 1); // a product with an rms_norm, in 16 bits, of one row
}

// Addresses differ between the two turns, so that an order that depends on them shows.
TEST_CASE("The artifact of a graph does not depend on what was compiled before", "[graph]") {
  constexpr uint64_t kFirst = 5001, kGraphs = 24;
  std::vector<std::vector<std::byte>> before;
  for (uint64_t i = 0; i < kGraphs; ++i)
    before.push_back(artifactOf(kFirst + i, /*symbols=*/i % 2));
  for (uint64_t i = kGraphs; i-- > 0;) {
    INFO("seed " << kFirst + i);
    CHECK(artifactOf(kFirst + i, /*symbols=*/i % 2) == before[i]);
  }
}
