// Whole states of artifacts: copies, and permutations along an axis. Artifact itself reads, writes, saves and loads
// them.
#pragma once
#include "burin/graph/graph.h"

namespace burin {

/// Copies all states from another copy of the same artifact, made by with_own_states() or to(). Throws if it is none.
BURIN_API void copy_states(const Artifact &from, const Artifact &to, Location where = Location::current());

/// Along `axis` of a state, element i becomes the old element order[i], as the rows of a cache follow their beams in
/// beam search. Throws unless the state exists and `order` has one index in range for each element.
BURIN_API void reorder_state(const Artifact &artifact, const std::string &name, int64_t axis,
                             std::span<const int64_t> order, Location where = Location::current());

} // namespace burin
