#include "codegen/kernels/contraction/ContractionTiling.h"
#include "codegen/kernels/contraction/Bf16x3Gemm.h"
#include "passes/Passes.h"

namespace burin::codegen {

constexpr int64_t kTaskFlops = 1'000'000;     // of a task, about 5 µs: enough tasks for all threads
constexpr int64_t kSerialFlops = 1'500'000;   // what is less work in all is not worth several tasks
constexpr int64_t kFlopsPerByte = 2;          // that a core does while a byte comes from the second cache level
constexpr int64_t kTermBytes = 6;             // of an element as terms
constexpr int64_t kTermTasks = 8;             // of a block of rows, where each reads all of them again
constexpr int64_t kRowAlign = 12;             // a multiple of the full tile's height on every target
constexpr int64_t kTaskRows = 16 * kRowAlign; // rows of the left side kept in cache while panels pass

ContractionTiling::ContractionTiling(bool unitsAreRows, const Dim &units, const Dim &along, const Dim &depth,
                                     const Dim &columns, int64_t bytes, int64_t sumBytes, bool ofTerms) {
  Dim most = unitsAreRows ? Dim(kTaskRows) : max(floordiv(kTaskRows, max(along, 1)), 1);
  unitBlocks = ceildiv(units, most);
  unitsPerBlock = max(ceildiv(units, max(unitBlocks, 1)), 1);
  if (unitsAreRows && !units.isStatic()) // else they are cut into tiles of nearly equal height
    unitsPerBlock = ceildiv(unitsPerBlock, kRowAlign) * kRowAlign;
  if (ofTerms) {
    unitsPerBlock = ceildiv(unitsPerBlock, Bf16x3Gemm::kSide) * Bf16x3Gemm::kSide;
    unitBlocks = ceildiv(units, unitsPerBlock);
  }
  Dim blockRows = unitsAreRows ? min(units, unitsPerBlock) : unitsPerBlock * along;
  if (!blockRows.isStatic())
    blockRows = min(unitsAreRows ? units : units * along, kTaskRows); // nearly; a shorter expression

  int64_t panelWidth = passes::kPanelBytes / sumBytes;
  panels = max(ceildiv(columns, panelWidth), 1);
  Dim rows = min(max(blockRows, 1), kTaskFlops), sumLength = min(max(depth, 1), kTaskFlops); // no overflow below
  Dim flops = sumLength * panelWidth * max(rows * 2, kFlopsPerByte * bytes);
  Dim together = max(floordiv(kSmallRows, rows), 1); // such tasks take several chunks at once
  Dim several = max(floordiv(kTaskFlops, flops * together), 1) * together;
  Dim isLittle = min(floordiv(floordiv(kSerialFlops - 1, flops), panels), 1);
  panelsPerBlock = min(max(several, isLittle * panels), panels);
  if (ofTerms && rows.value() * sumLength.value() * kTermBytes > kStripBytes)
    panelsPerBlock = ceildiv(panels, kTermTasks);
}

} // namespace burin::codegen
