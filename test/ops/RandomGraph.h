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

/// The graph as text.
std::string graphText(uint64_t seed, size_t steps = SIZE_MAX);

} // namespace burin::test
