// Random graphs of many ops, which test interactions between ops: fusion, views, broadcasts, several results.
#pragma once
#include "test/ops/Graph.h"
#include "test/ops/Values.h"

namespace burin::test {

/// Compiles and runs the graph of this seed, truncated to `steps` steps, and compares its results with the
/// interpreter's. Returns the difference and the graph as text, or "" if there is none. `compile` replaces compilation
/// for this processor.
std::string tryGraph(uint64_t seed, size_t steps = SIZE_MAX,
                     const std::function<std::unique_ptr<Compiled>(Graph &)> &compile = {});

/// Compiles the graph of this seed, with mostly symbolic sizes, once, and for each of several choices of sizes again
/// with fixed sizes. The results must be the same bits (or, if a size is 1, as exact as the interpreter's). Returns the
/// difference, or the error of the symbolic graph, with the graph; "" if all agree. Sizes for which the fixed graph is
/// refused are skipped.
std::string trySymbols(uint64_t seed, size_t steps = SIZE_MAX);

/// Returns the bytes of the artifact of the graph of this seed, for this processor.
std::vector<std::byte> artifactOf(uint64_t seed, bool symbols = false);

/// Returns the graph as text.
std::string graphText(uint64_t seed, size_t steps = SIZE_MAX, bool symbols = false);

} // namespace burin::test
