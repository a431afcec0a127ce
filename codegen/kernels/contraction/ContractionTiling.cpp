#include "codegen/kernels/contraction/ContractionTiling.h"
#include "codegen/kernels/contraction/microkernel/Bf16x3Gemm.h"
#include "passes/Passes.h"

namespace burin::codegen {

constexpr int64_t kTermBytes = 6; // bytes of the terms of an element

using namespace passes; // the numbers of TargetIndependent.h

ContractionTiling::ContractionTiling(bool unitsAreRows, const Dim &units, const Dim &along, const Dim &depth,
                                     const Dim &columns, int64_t bytes, int64_t sumBytes, bool ofTerms) {
  Dim most = unitsAreRows ? Dim(kTaskRows) : max(floordiv(kTaskRows, max(along, 1)), 1);
  unitBlocks = ceildiv(units, most);
  unitsPerBlock = max(ceildiv(units, max(unitBlocks, 1)), 1);
  if (unitsAreRows && !units.isStatic()) // static units are cut into tiles of nearly equal height
    unitsPerBlock = ceildiv(unitsPerBlock, kRowAlign) * kRowAlign;
  if (ofTerms) {
    unitsPerBlock = ceildiv(unitsPerBlock, Bf16x3Gemm::kSide) * Bf16x3Gemm::kSide;
    unitBlocks = ceildiv(units, unitsPerBlock);
  }
  Dim blockRows = unitsAreRows ? min(units, unitsPerBlock) : unitsPerBlock * along;
  if (!blockRows.isStatic())
    blockRows = min(unitsAreRows ? units : units * along, kTaskRows); // approximately; a shorter expression

  int64_t panelWidth = passes::kPanelBytes / sumBytes;
  panels = max(ceildiv(columns, panelWidth), 1);
  Dim rows = min(max(blockRows, 1), kTaskFlops), sumLength = min(max(depth, 1), kTaskFlops); // bounded against overflow
  Dim flops = sumLength * panelWidth * max(rows * 2, kFlopsPerByte * bytes);
  Dim together = max(floordiv(kSmallRows, rows), 1); // tasks with few rows compute several chunks at once
  Dim several = max(floordiv(kTaskFlops, flops * together), 1) * together;
  Dim isLittle = min(floordiv(floordiv(kSerialFlops - 1, flops), panels), 1);
  panelsPerBlock = min(max(several, isLittle * panels), panels);
  if (ofTerms && rows.value() * sumLength.value() * kTermBytes > kStripBytes)
    panelsPerBlock = ceildiv(panels, kTermTasks);
}

} // namespace burin::codegen
