// Attention of 16-bit floats by warpgroups (FlashAttention-3, Shah et al. 2024): two of them have 64 query rows each, a
// third one copies tiles of keys and values to shared memory. Scores, weights and weighted sums stay in registers. A
// warpgroup starts the scores of a tile together with the weighted sum of the tile before, and turns scores into
// weights while that sum is computed.
//
// Shared memory: queries, two tiles of keys, two of values, barriers. Each tile has for each block of 32 columns a
// shared row per row, as SwizzledTile. Results pass through the same memory.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/attention/AttentionFragments.h"
#include "codegen/gpu/contraction/Warpgroup.h"
#include "passes/kernels/families/GpuFamilies.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kMultiplying = 2; // warpgroups
constexpr int64_t kGroupRows = 64;  // of a warpgroup
constexpr int64_t kRows = kMultiplying * kGroupRows;
constexpr int64_t kThreads = (kMultiplying + 1) * kWarpgroup, kMultiplyingThreads = kMultiplying * kWarpgroup;
constexpr int64_t kStages = 2; // tiles of keys, and of values, in shared memory
// Registers of a thread. 504 of the 512 per lane that a multiprocessor has are used: 2 * 232 + 40.
constexpr int64_t kRegistersOfMultiplying = 232, kRegistersOfCopying = 40;
constexpr int64_t kSharedRow = SwizzledTile::kRow, kSharedRowBytes = 2 * kSharedRow, kGroupBytes = 8 * kSharedRowBytes;
constexpr int64_t kUnit = 16;  // bytes; matrix descriptors count in it
constexpr int64_t kSkewed = 8; // columns that pad a row of results, so that rows begin in different banks
constexpr int64_t kLargeTile = 128, kSmallTile = 64; // keys

class WarpgroupAttention : AttentionFragments {
public:
  explicit WarpgroupAttention(const KernelEmission &kernel)
      : AttentionFragments(kernel, *kernel.body.getOps<ScaledDotProductAttentionOp>().begin()),
        depthBlocks((depth.value() + kSharedRow - 1) / kSharedRow),
        widthBlocks((width.value() + kSharedRow - 1) / kSharedRow), depthSteps((depth.value() + kSteps - 1) / kSteps),
        widthSums((width.value() + kColumns - 1) / kColumns * 4), tileKeys(hasLargeTiles() ? kLargeTile : kSmallTile),
        pool(sharedPool(k)), queryTile{pool, dtype}, keyTile{inPool(queryBytes()), dtype},
        valueTile{inPool(queryBytes() + keyBytes()), dtype},
        keySlices(SliceBarriers::at(k, inPool(tileBytes()), kStages)),
        valueSlices(SliceBarriers::at(k, inPool(tileBytes() + SliceBarriers::bytes(kStages)), kStages)),
        allMultiplied{inPool(tileBytes() + 2 * SliceBarriers::bytes(kStages))} {}

  GpuLaunch emit() {
    Dim blocks = ceildiv(rows, kRows);
    goToHead(k.div(k.lo, k.dim(blocks)));
    Value block = k.rem(k.lo, k.dim(blocks));
    if (isCausal) // blocks with the most keys first
      block = k.sub(k.sub(k.dim(blocks), k.constant(1)), block);
    firstRow = k.mul(block, k.constant(kRows));
    placeThread(threadIndex(k));
    member = k.rem(thread, k.constant(kWarpgroup));
    group = shuffleFirst(k, k.div(thread, k.constant(kWarpgroup))); // shows LLVM that all lanes have the same value
    Value end = keysBefore(k.add(firstRow, k.constant(kRows)));
    // Without keys there is one tile, all of whose scores are masked.
    tiles = k.maximum(k.div(k.add(end, k.constant(tileKeys - 1)), k.constant(tileKeys)), k.constant(1));
    canCopy = copiesPieces({&query, &key, &value});
    k.when(k.compare(arith::CmpIPredicate::eq, thread, k.constant(0)), [&] {
      for (const SliceBarriers &slices : {keySlices, valueSlices})
        slices.init(k, kWarpgroup, kMultiplyingThreads / kWarp);
      allMultiplied.init(k, 0, kMultiplyingThreads);
    });
    barrier(k);
    Value multiplies = isBelow(group, k.constant(kMultiplying));
    k.unless(multiplies, [&] {
      leaveRegisters(k, kRegistersOfCopying);
      fillAll();
    });
    k.when(multiplies, [&] {
      takeRegisters(k, kRegistersOfMultiplying);
      multiplyAll();
    });
    barrier(k); // no thread ends before its copies
    return {.blocks = heads * blocks,
            .threads = kThreads,
            .sharedBytes = tileBytes() + 2 * SliceBarriers::bytes(kStages) + PhaseBarriers::kBytes};
  }

private:
  /// With many columns, or with elements of a mask in registers, registers suffice for small tiles only.
  bool hasLargeTiles() { return std::max(depth.value(), width.value()) <= kLargeTile && !mask; }
  int64_t queryBytes() const { return kRows * depthBlocks * kSharedRowBytes; }
  int64_t keyBytes() const { return kStages * tileKeys * depthBlocks * kSharedRowBytes; }
  int64_t valueBytes() const { return kStages * tileKeys * widthBlocks * kSharedRowBytes; }
  int64_t tileBytes() const { return queryBytes() + keyBytes() + valueBytes(); }
  Value inPool(int64_t bytes) { return k.elementPointer({pool, DType::i8, {}}, k.constant(bytes)); }

  // ---- the warpgroup that copies

  /// Copies a tile. `isThere`, unless null, becomes complete with the copies; without it, they are complete when a
  /// later tile of this thread is.
  void fill(const Tile &tile, const PhaseBarriers *isThere, Value stage) {
    auto oneByOne = [&] {
      storeTile(tile, member, kWarpgroup);
      if (isThere)
        isThere->arrive(k, stage);
    };
    if (!canCopy)
      return oneByOne();
    k.when(canCopy, [&] {
      copyTile(tile, member, kWarpgroup);
      if (isThere)
        isThere->arriveWithCopies(k, stage);
    });
    k.unless(canCopy, oneByOne);
  }

  /// A tile of keys, or of values.
  void fillStage(const SliceBarriers &slices, const SwizzledTile &to, const StridedMemory &source, const Dim &columns,
                 int64_t blocks, Value tile) {
    Value stage = slices.stageOf(k, tile);
    fill({to, k.mul(stage, k.constant(tileKeys * blocks)), source, k.mul(tile, k.constant(tileKeys)), keys, columns,
          tileKeys, blocks},
         &slices.isThere, stage);
  }

  /// Copies all tiles in the order in which they are multiplied: the keys of a tile before the values of the previous
  /// one.
  void fillAll() {
    fill({queryTile, k.constant(0), query, firstRow, rows, depth, kRows, depthBlocks}, nullptr, {});
    fillStage(keySlices, keyTile, key, depth, depthBlocks, k.constant(0));
    k.loop(k.constant(1), k.add(tiles, k.constant(1)), k.constant(1), [&](Value tile) {
      k.when(isBelow(tile, tiles), [&] {
        keySlices.waitUntilFree(k, tile);
        fillStage(keySlices, keyTile, key, depth, depthBlocks, tile);
      });
      Value earlier = k.sub(tile, k.constant(1));
      valueSlices.waitUntilFree(k, earlier);
      fillStage(valueSlices, valueTile, value, width, widthBlocks, earlier);
    });
  }

  // ---- the warpgroups that multiply

  void multiplyAll() {
    const int64_t ownBytes = kGroupRows * kSharedRowBytes;
    queryMatrix =
        k.add(matrixDescriptor(k, queryTile.pointer, kUnit, kGroupBytes), k.mul(group, k.constant(ownBytes / kUnit)));
    keyMatrix = matrixDescriptor(k, keyTile.pointer, kUnit, kGroupBytes);
    valueMatrix = matrixDescriptor(k, valueTile.pointer, tileKeys * kSharedRowBytes, kGroupBytes);
    // The state of the rows, weights of the last tile, weighted sums of the values of those before.
    Online online = start();
    SmallVector<Value> scores = startScores(k.constant(0));
    scores = finishProducts(k, scores);
    release(keySlices, k.constant(0));
    Weights weights = weigh(k.constant(0), scores, online, seesFirstTile());
    SmallVector<Value> carried = flat(weights.fragments);
    carried.append(size_t(widthSums), number(0));
    Value end = k.mul(tiles, k.constant(tileKeys));
    carried = overTiles(k.constant(tileKeys), end, tileKeys, k.add(firstRow, k.mul(group, k.constant(kGroupRows))),
                        kRows, online.followedBy(carried),
                        [&](const KeyTile &keyTile, ArrayRef<Value> before) { return oneTile(keyTile, before); });
    beginProducts(k);
    SmallVector<Value> sums = startSums(k.sub(tiles, k.constant(1)), carried);
    finishTile(Online::of(carried), finishProducts(k, sums));
  }

  /// Whether all rows see all keys of the first tile, as far as is known.
  bool seesFirstTile() { return !mask && !isCausal && keys.isStatic() && keys.value() >= tileKeys; }

  SmallVector<Value> oneTile(const KeyTile &keyTile, ArrayRef<Value> before) {
    Online online = Online::of(before);
    Value tile = k.div(keyTile.firstKey, k.constant(tileKeys)), earlier = k.sub(tile, k.constant(1));
    SmallVector<Value> scores = startScores(tile), sums = startSums(earlier, before);
    scores = finishProducts(k, scores, /*groups=*/1);
    // Nobody waits for the arrivals of the last tile, but without these branches ptxas serializes its wgmma
    // instructions.
    release(keySlices, tile);
    Weights weights = weigh(keyTile.firstKey, scores, online, keyTile.seesAll);
    sums = finishProducts(k, sums);
    release(valueSlices, earlier);
    rescale(sums, weights.shrinks);
    SmallVector<Value> carried = flat(weights.fragments);
    llvm::append_range(carried, sums);
    return online.followedBy(carried);
  }

  static SmallVector<Value> flat(ArrayRef<SmallVector<Value>> fragments) {
    SmallVector<Value> all;
    for (const SmallVector<Value> &registers : fragments)
      llvm::append_range(all, registers);
    return all;
  }
  Value phase(int32_t parity) { return arith::ConstantIntOp::create(k.b, k.loc, k.b.getI32Type(), parity); }
  /// The matrix of a stage.
  Value ofStage(const SliceBarriers &slices, Value matrix, Value tile, int64_t blocks) {
    return k.add(matrix, k.mul(slices.stageOf(k, tile), k.constant(tileKeys * blocks * kSharedRowBytes / kUnit)));
  }
  /// Signals that this warp has read the stage of a tile: one lane of each warp arrives.
  void release(const SliceBarriers &slices, Value tile) {
    k.when(k.compare(arith::CmpIPredicate::eq, lane, k.constant(0)),
           [&] { slices.isRead.arrive(k, slices.stageOf(k, tile)); });
  }

  /// Queries times keys: a group of products.
  SmallVector<Value> startScores(Value tile) {
    keySlices.waitUntilThere(k, tile);
    showToProducts(k);
    beginProducts(k);
    Value keyOfStage = ofStage(keySlices, keyMatrix, tile, depthBlocks);
    SmallVector<Value> scores;
    for (int64_t step = 0; step < depthSteps; ++step) {
      const int64_t block = step * kSteps / kSharedRow, inSharedRow = step * kSteps % kSharedRow * 2;
      Value left = k.add(queryMatrix, k.constant((block * kRows * kSharedRowBytes + inSharedRow) / kUnit));
      Value right = k.add(keyOfStage, k.constant((block * tileKeys * kSharedRowBytes + inSharedRow) / kUnit));
      scores = step ? multiplyMatrices(k, dtype, left, right, RightRows::Columns, scores)
                    : multiplyMatrices(k, dtype, left, right, RightRows::Columns, tileKeys / 2);
    }
    commitProducts(k);
    return scores;
  }

  /// Weights of a tile times values, added to the sums of earlier tiles: a group of products, after beginProducts().
  SmallVector<Value> startSums(Value tile, ArrayRef<Value> carried) {
    valueSlices.waitUntilThere(k, tile);
    showToProducts(k);
    Value valueOfStage = ofStage(valueSlices, valueMatrix, tile, widthBlocks);
    ArrayRef<Value> weights = carried.drop_front(Online::kCount).drop_back(size_t(widthSums));
    SmallVector<Value> sums(carried.take_back(size_t(widthSums)));
    for (int64_t step = 0; step < tileKeys / kSteps; ++step) {
      Value right = k.add(valueOfStage, k.constant(step * kSteps * kSharedRowBytes / kUnit));
      sums = multiplyMatrices(k, dtype, weights.slice(size_t(4 * step), 4), right, RightRows::Steps, sums);
    }
    commitProducts(k);
    return sums;
  }

  /// Results take the place of the tiles, which all have been read.
  void finishTile(const Online &online, ArrayRef<Value> sums) {
    meet(0);
    const int64_t columns = widthBlocks * kSharedRow + kSkewed;
    Memory staged{pool, type, {}};
    storeResults(staged, columns, online, sums);
    meet(1);
    finish(staged, columns, kRows, kMultiplyingThreads);
  }
  /// The threads that multiply wait for each other.
  void meet(int32_t parity) {
    allMultiplied.arrive(k, k.constant(0));
    allMultiplied.wait(k, k.constant(0), phase(parity));
  }

  int64_t depthBlocks, widthBlocks; // of 32 columns
  int64_t depthSteps;               // of products
  int64_t widthSums;                // registers
  int64_t tileKeys;
  Value pool;
  SwizzledTile queryTile, keyTile, valueTile;
  SliceBarriers keySlices, valueSlices;
  PhaseBarriers allMultiplied;
  Value member, group, tiles, canCopy, queryMatrix, keyMatrix, valueMatrix;
};

} // namespace

GpuLaunch emitWarpgroupAttention(const KernelEmission &kernel) { return WarpgroupAttention(kernel).emit(); }

} // namespace burin::codegen
