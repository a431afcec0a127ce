// The split of a contraction into tasks.
#pragma once
#include "burin/dim.h"
#include "passes/TargetIndependent.h"

namespace burin::codegen {

using passes::kSmallRows;

/// A task is a block of units times a block of panels. Units are rows, or outer positions with `along` rows each.
/// Blocks are of nearly equal size, for static and symbolic sizes, and equal on every target. With `ofTerms` (bf16x3),
/// rows are static and blocks are whole squares (see Bf16x3Gemm).
struct ContractionTiling {
  Dim unitBlocks, unitsPerBlock; // all blocks but the last have the same size
  Dim panels, panelsPerBlock;

  ContractionTiling() = default;
  /// `depth`: length of the sum; `bytes` and `sumBytes`: sizes of an element of a panel and of an accumulator.
  ContractionTiling(bool unitsAreRows, const Dim &units, const Dim &along, const Dim &depth, const Dim &columns,
                    int64_t bytes, int64_t sumBytes, bool ofTerms);
};

} // namespace burin::codegen
