// Attention of 16-bit floats on tensor cores (FlashAttention-2, Dao 2023): a warp computes 16 query rows. Their scores
// against a tile of keys stay in registers, become softmax weights there, and are multiplied by the values. The next
// keys are copied while values are multiplied, and values while keys are multiplied.
//
// Shared memory is one SwizzledTile, whose rows (shared rows) have 32 elements. A tile of keys is stored by blocks of
// 32 columns, a block having a shared row per key; the values follow in the same order. Queries are staged in the
// shared rows of the keys before the loop, results in all shared rows after it.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/attention/AttentionFragments.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kWarps = 4, kThreads = kWarps * kWarp;
constexpr int64_t kTile = 64; // query rows, and keys, of a tile
constexpr int64_t kBlock = SwizzledTile::kRow;

class TensorCoreAttention : AttentionFragments {
public:
  explicit TensorCoreAttention(const KernelEmission &kernel)
      : AttentionFragments(kernel, *kernel.body.getOps<ScaledDotProductAttentionOp>().begin()),
        depthBlocks((depth.value() + kBlock - 1) / kBlock), widthBlocks((width.value() + kBlock - 1) / kBlock),
        depthSteps((depth.value() + kSteps - 1) / kSteps), widthMatrices((width.value() + kColumns - 1) / kColumns),
        tile(SwizzledTile::make(k, dtype, (depthBlocks + widthBlocks) * kTile)) {}

  GpuLaunch emit() {
    Dim blocks = ceildiv(rows, kTile);
    goToHead(k.div(k.lo, k.dim(blocks)));
    firstRow = k.mul(k.rem(k.lo, k.dim(blocks)), k.constant(kTile));
    placeThread(threadIndex(k));
    firstKeySharedRow = k.constant(0), firstValueSharedRow = k.constant(depthBlocks * kTile);
    canCopy = copiesPieces({&query, &key, &value});
    loadQueries();
    Value end = keysBefore(k.add(firstRow, k.constant(kTile)));
    fillKeys(k.constant(0), end);
    // The state of the rows, followed by the weighted sums of values.
    SmallVector<Value> carried = start().followedBy(SmallVector<Value>(size_t(widthMatrices * 4), number(0)));
    carried = overTiles(k.constant(0), end, kTile, firstRow, kTile, carried,
                        [&](const KeyTile &keyTile, ArrayRef<Value> before) { return oneTile(keyTile, end, before); });
    finishTile(carried);
    return {.blocks = heads * blocks, .threads = kThreads};
  }

private:
  // ---- copies to shared memory. An asynchronous group is closed even if it is empty, so that waitForGroups() counts
  // groups alike for all tiles.

  /// Copies kTile rows of `source`, from row `first` on, to the shared rows from `sharedRow` on. Complete after
  /// waitForGroups().
  void fill(Value sharedRow, const StridedMemory &source, Value first, const Dim &allRows, const Dim &allColumns,
            int64_t blocks) {
    Tile all{tile, sharedRow, source, first, allRows, allColumns, kTile, blocks};
    if (!canCopy)
      return storeTile(all, thread, kThreads);
    k.when(canCopy, [&] { copyTile(all, thread, kThreads); });
    k.unless(canCopy, [&] { storeTile(all, thread, kThreads); });
  }
  void endGroup() {
    if (canCopy)
      commitCopies(k);
  }
  /// Waits until at most `most` groups are incomplete, in all threads of the block.
  void waitForGroups(int64_t most) {
    if (canCopy)
      waitForCopies(k, most);
    barrier(k);
  }
  void fillKeys(Value first, Value end) {
    k.when(isBelow(first, end), [&] { fill(firstKeySharedRow, key, first, keys, depth, depthBlocks); });
    endGroup();
  }

  /// Loads the queries of a warp as fragments, staged in the shared memory of the keys.
  void loadQueries() {
    fill(firstKeySharedRow, query, firstRow, rows, depth, depthBlocks);
    endGroup();
    waitForGroups(0);
    queries = loadRows(tile, firstKeySharedRow, kTile, depthSteps);
    barrier(k);
  }

  // ---- one tile of keys

  /// Carried values after a tile of keys; `end` is the first key that no row of the block may see.
  SmallVector<Value> oneTile(const KeyTile &keyTile, Value end, ArrayRef<Value> before) {
    fill(firstValueSharedRow, value, keyTile.firstKey, keys, width, widthBlocks);
    endGroup();
    waitForGroups(1); // for the keys; the values may be in flight
    SmallVector<Value> scores = multiplyRows(queries, tile, firstKeySharedRow, kTile);
    if (!keyTile.isLast) {
      barrier(k);
      fillKeys(k.add(keyTile.firstKey, k.constant(kTile)), end);
    }
    Online online = Online::of(before);
    Weights weights = weigh(keyTile.firstKey, scores, online, keyTile.seesAll);
    SmallVector<Value> sums(before.drop_front(Online::kCount));
    rescale(sums, weights.shrinks);
    waitForGroups(keyTile.isLast ? 0 : 1); // for the values; the next keys may be in flight
    addProducts(weights.fragments, tile, firstValueSharedRow, kTile, sums);
    // Results are staged where the keys were, and behind them if they have more columns.
    if (!keyTile.isLast || widthBlocks > depthBlocks)
      barrier(k);
    return online.followedBy(sums);
  }

  /// Stages the results in shared memory, which no thread reads any more after the barrier of the last tile.
  void finishTile(ArrayRef<Value> carried) {
    const int64_t columns = widthBlocks * kBlock;
    Memory staged{tile.pointer, type, {}};
    storeResults(staged, columns, Online::of(carried), carried.drop_front(Online::kCount));
    barrier(k);
    finish(staged, columns, kTile, kThreads);
  }

  int64_t depthBlocks, widthBlocks;  // blocks of 32 columns of a key, and of a value
  int64_t depthSteps, widthMatrices; // 16 summed elements of a key, and 8 columns of a value: one mma.sync each
  SwizzledTile tile;                 // blocks of keys, followed by blocks of values
  Value firstKeySharedRow, firstValueSharedRow, canCopy; // canCopy: see copiesPieces(), may be null
  Fragments queries;                                     // this warp's rows
};

} // namespace

GpuLaunch emitTensorCoreAttention(const KernelEmission &kernel) { return TensorCoreAttention(kernel).emit(); }

} // namespace burin::codegen
