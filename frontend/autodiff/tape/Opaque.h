// Results of compiled code on the tape, which cannot differentiate it.
#pragma once
#include "frontend/autodiff/tape/Tape.h"

namespace burin::detail {

/// Makes a result of compiled code depend on `sources`: a backward pass that reaches it throws an Error with `problem`
/// that names the call. `op` and `problem` must never be freed.
void connectOpaque(Tensor &result, std::vector<TapeEdge> sources, const char *op, const char *problem,
                   const Location &where);

} // namespace burin::detail
