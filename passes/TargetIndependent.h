// Tuned numbers that are the same on every target, since results, packed weights or the launch plan depend on them: one
// plan serves all targets of an artifact, and numerics.md promises equal bits. What may differ is in
// codegen/target/Machine.h.
#pragma once
#include <cstdint>

namespace burin::passes {

// ---- packed weights
/// Packed panels are this wide on every target, so that one copy of the weights serves all targets in an artifact.
inline constexpr int64_t kPanelBytes = 128;

// ---- results: which columns of a convolution are summed by lanes
inline constexpr int64_t kMostTail = 4;    // columns as sums by lanes
inline constexpr int64_t kMostTailed = 32; // vectors of columns; where there are more, one more costs little
inline constexpr int64_t kLaneSum = 8;     // what the sum of a vector's lanes costs, in products of vectors

// ---- the graph: symbolic sizes that sizes in bytes are compared by
inline constexpr int64_t kTypicalSize = 8;
/// Of activations whose layout is chosen, where a symbol is the batch or the sides of images.
inline constexpr int64_t kTypicalImageSize = 32;
/// Bytes that stay in a core's second cache level from one part of a batch, or one row of a product, to the next.
inline constexpr int64_t kCachedBytes = int64_t(1) << 20;
/// Bytes of memory traffic that a part of a batch must save to be worth an iteration of the loop, about a microsecond.
inline constexpr int64_t kLeastGainOfSplit = 32 << 10;
/// Products with fewer rows than this read weights from cache faster than they compute.
inline constexpr int64_t kComputeBoundRows = 12;

// ---- the plan: how work is cut into tasks
inline constexpr int64_t kTaskFlops = 1'000'000;   // of a contraction's task, about 5 µs: enough tasks for all threads
inline constexpr int64_t kSerialFlops = 1'500'000; // what is less work in all is not worth several tasks
inline constexpr int64_t kFlopsPerByte = 2;        // that a core does while a byte comes from the second cache level
inline constexpr int64_t kRowAlign = 12;           // a multiple of the full tile's height on every target
inline constexpr int64_t kTaskRows = 16 * kRowAlign; // rows of the left side kept in cache while panels pass
inline constexpr int64_t kSmallRows = 4;             // fewer rows than this take several chunks of columns at once
inline constexpr int64_t kTermTasks = 8; // column tasks per row block when the split left operand exceeds the cache
/// Of the left side's bf16 terms: stays in the second cache level while panels pass.
inline constexpr int64_t kStripBytes = 640 << 10;
inline constexpr int64_t kMapBlock = 1024;  // elements of a task that only maps: a page of f32
inline constexpr int64_t kColumnBlock = 64; // columns of a task that reduces columns one after the other
inline constexpr int64_t kSquareBlock = 64; // elements of a transposing task along each of the two dimensions
inline constexpr int64_t kPlaneRows = 8;    // rows of a plane of the result that a task of a pool makes
inline constexpr int64_t kQueryRows = 192; // query rows of attention that share packed keys: whole tiles of all targets
/// Upper bounds of one task's tile of a window op. Images that fit in the second cache level (kCachedBytes) use narrow
/// channel blocks, for the first level to hold what rows and tiles share; larger ones use wide blocks, for sequential
/// reads of memory.
struct WindowShare {
  int64_t channels, rows;
};
inline constexpr WindowShare kNearWindow = {48, 8}, kFarWindow = {256, 4};
/// Bytes of a tile's windows and the next one's that the first cache level of every processor holds.
inline constexpr int64_t kWindowTileBytes = 32 << 10;

} // namespace burin::passes
