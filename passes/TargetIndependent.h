// Tuned constants that must be equal on all targets because packed weights, the launch plan or results depend on them:
// one plan and one set of weights serve all targets of an artifact, and numerics.md promises equal bits for most ops.
// Constants that may differ are in codegen/target/Machine.h.
#pragma once
#include <cstdint>

namespace burin::passes {

// ---- packed weights
/// Panel width in bytes of accumulators; equal on all targets so that they share packed weights. Elements narrower than
/// 32 bits are summed in 32 bits, so a panel has 32 columns, 16 of 64-bit elements.
inline constexpr int64_t kPanelBytes = 128;

// ---- results: columns of a convolution that are computed as horizontal sums
inline constexpr int64_t kMostTail = 4;    // most columns computed as horizontal sums
inline constexpr int64_t kMostTailed = 32; // most vectors of columns; with more of them one further vector costs little
inline constexpr int64_t kLaneSum = 8;     // cost of one horizontal sum, in multiply-adds of vectors

// ---- the graph: values assumed for symbolic sizes where sizes in bytes are compared
inline constexpr int64_t kTypicalSize = 8;
/// For batch and spatial sizes of the images whose layout is chosen.
inline constexpr int64_t kTypicalImageSize = 32;
/// Bytes of L2 that hold weights from one part of a batch, or one row of a product, to the next.
inline constexpr int64_t kCachedBytes = int64_t(1) << 20;
/// Least memory traffic in bytes that a part of a batch must save to pay for a loop iteration, about 1 µs.
inline constexpr int64_t kLeastGainOfSplit = 32 << 10;
/// Products with fewer rows than this are bound by reading weights, even from L2.
inline constexpr int64_t kComputeBoundRows = 12;

// ---- the plan: sizes of tasks
inline constexpr int64_t kTaskFlops = 1'000'000; // of a task of a contraction, about 5 µs: enough tasks for all threads
inline constexpr int64_t kSerialFlops = 1'500'000; // kernels with less work in all are not split further
inline constexpr int64_t kFlopsPerByte = 2;        // arithmetic of a core in the time that a byte takes from L2
inline constexpr int64_t kRowAlign = 12;           // a multiple of the height of the full register tile on every target
inline constexpr int64_t kTaskRows = 16 * kRowAlign; // rows of the left operand that stay in cache while panels pass
inline constexpr int64_t kSmallRows = 4;             // with fewer rows a task takes several chunks of columns at once
inline constexpr int64_t kTermTasks = 8; // column tasks per row block when the split left operand exceeds the cache
/// Bytes of bf16 terms of the left operand that stay in L2 while panels pass.
inline constexpr int64_t kStripBytes = 640 << 10;
inline constexpr int64_t kMapBlock = 1024; // elements per task of an elementwise kernel: one page of f32
/// Columns per task of a reduction over the rows of a matrix. Where vectors of columns are reduced side by side, a task
/// has at most kColumnVectors of them, divided by the number of accumulators of a column.
inline constexpr int64_t kColumnBlock = 64, kColumnVectors = 16;
/// Tasks of elementwise kernels and of reductions are whole vectors of this size, the widest of all targets.
inline constexpr int64_t kTaskVectorBytes = 64;
inline constexpr int64_t kSquareBlock = 64; // side of the square block of a transposing task, in elements
inline constexpr int64_t kTakenRows = 8;    // rows per task that read at the same positions, which are computed once
inline constexpr int64_t kPlaneRows = 8;    // result rows per task of a pool over planes
inline constexpr int64_t kQueryRows = 192; // query rows of attention that share packed keys: whole tiles on all targets
/// Upper bounds of one task's tile of a window op. Images that fit in L2 (kCachedBytes) use narrow channel blocks
/// (reuse across rows and tiles in L1); larger ones use wide blocks (sequential memory access).
struct WindowShare {
  int64_t channels, rows;
};
inline constexpr WindowShare kNearWindow = {48, 8}, kFarWindow = {256, 4};
/// Bytes of the windows of a tile and of the next tile; fits the L1 of all targets.
inline constexpr int64_t kWindowTileBytes = 32 << 10;

} // namespace burin::passes
