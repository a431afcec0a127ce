// How the work of a contraction is cut into tasks.
#pragma once
#include "burin/dim.h"
#include "passes/TargetIndependent.h"

namespace burin::codegen {

using passes::kSmallRows;

/// A task is a block of units times a block of panels. Units are rows, or rows of rows, `along` long. Blocks are of
/// nearly equal size, whether sizes are known or symbolic, and the same on every target. Where the left side is
/// `ofTerms`, rows are known and blocks of them whole squares (see Bf16x3Gemm).
struct ContractionTiling {
  Dim unitBlocks, unitsPerBlock; // all blocks of rows but the last are of the same size
  Dim panels, panelsPerBlock;

  /// `depth` is the length of the sum; `bytes` and `sumBytes` are those of an element of a panel and of a sum.
  ContractionTiling(bool unitsAreRows, const Dim &units, const Dim &along, const Dim &depth, const Dim &columns,
                    int64_t bytes, int64_t sumBytes, bool ofTerms);
};

} // namespace burin::codegen
