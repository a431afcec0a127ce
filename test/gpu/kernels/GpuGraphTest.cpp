// Random graphs on a GPU's kernels: what fusion makes of many ops.
#include "test/gpu/emulator/Emulate.h"
#include "test/gpu/emulator/Simt.h"
#include "test/ops/RandomGraph.h"
#include <catch2/catch.hpp>

using namespace burin::test;

static void trySeeds(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::string different = tryGraph(seed, SIZE_MAX, [](Graph &graph) {
      return graph.compile("cuda-sm_80+ptx",
                           [](burin::codegen::CompileOptions &options) { options.emulate = emulated; });
    });
    for (const std::string &error : simt::takeErrors())
      different += "seed " + std::to_string(seed) + ": " + error + "\n";
    INFO(different);
    CHECK(different.empty());
  }
}

TEST_CASE("Random graphs on a GPU's kernels 1", "[gpu]") { trySeeds(1, 60); }
TEST_CASE("Random graphs on a GPU's kernels 2", "[gpu]") { trySeeds(1001, 60); }
