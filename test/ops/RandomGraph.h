// Random graphs of many ops, for what only shows when ops meet: fusion, views, broadcasts, several results.
#pragma once
#include "test/ops/Graph.h"
#include "test/ops/Values.h"

namespace burin::test {

/// Compiles and runs the graph of this seed, cut off after `steps` steps, and compares its results with the
/// interpreter's. Returns what differs and the graph as text, "" if nothing does. `compile` makes it ready in another
/// way than for this processor.
std::string tryGraph(uint64_t seed, size_t steps = SIZE_MAX,
                     const std::function<std::unique_ptr<Compiled>(Graph &)> &compile = {});

/// Compiles the graph of this seed, most sizes of which are symbolic, once, and for each of several sizes again with
/// numbers in their place. Returns where the results are not the same bits (where a size is 1, as exact as the
/// interpreter), or what refuses the symbolic one, and the graph; "" if all is well. Sizes for which the graph with
/// numbers is refused say nothing.
std::string trySymbols(uint64_t seed, size_t steps = SIZE_MAX);

/// The graph as text.
std::string graphText(uint64_t seed, size_t steps = SIZE_MAX, bool symbols = false);

} // namespace burin::test
