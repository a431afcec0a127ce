// Matrix products of 16-bit floats and of bytes (8-bit floats, i8, u8) by wgmma, with specialised warps. One warpgroup,
// the producer, copies slices of both sides to shared memory; two consumers multiply them. A slice is 128 bytes of the
// sum: all rows of a tile's left side, all columns of its right side. There is room for kStages slices; an mbarrier per
// stage says when a slice has arrived, another one when it has been read.
//
// Blocks are persistent: there are as many as run at the same time, and each computes one tile of the result after the
// other. Slices of all its tiles are one sequence, so the producer copies those of the next tile while the consumers
// compute the epilogue.
//
// Layout of shared memory. A row of a left slice has 128 bytes, in the order of SwizzledRows. A slice of the right side
// has a shared row per panel and step. If it is packed, panels have 32 columns, so shared rows have 64 bytes, in the
// order of SwizzledTile; otherwise a panel is 64 adjacent columns, of shared rows in the order of SwizzledRows. Of
// bytes, whose right side wgmma does not transpose, each shared row is a column, as rows of the left side are.
//
// Sums of 8-bit floats have 14 bits within wgmma. Those of each slice, 128 steps, are therefore added to f32 sums in
// other registers, half of the columns of a wide tile after the other. Meanwhile the other consumer multiplies.
//
// Right slices are copied by TMA, as are left ones of plain products with static channels, a multiple of 16 bytes: one
// thread starts a copy per slice and side, of a box of rows and of one of all panels (one per panel of a matrix that is
// not packed), by tensor maps that the host encodes for each launch. Other left slices are copied by all threads of the
// producer, 16 bytes at a time (cp.async): convolutions with windows, and channels of unknown number. Operands that are
// not aligned to 16 bytes are copied one element at a time.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/contraction/ContractionSides.h"
#include "codegen/gpu/contraction/TensorCore.h"
#include "codegen/gpu/contraction/Warpgroup.h"
#include "codegen/scalar/Elementwise.h"
#include "passes/kernels/families/GpuFamilies.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kStages = 4;                        // slices in shared memory
constexpr int64_t kMultiplying = 2;                   // consumers, 64 rows each
constexpr int64_t kRows = passes::kWarpgroupTileRows; // of the tile
constexpr int64_t kGroupRows = kRows / kMultiplying;  // of a consumer
constexpr int64_t kThreads = (kMultiplying + 1) * kWarpgroup;
constexpr int64_t kCopied = 16;                        // bytes of a piece that a thread copies
constexpr int64_t kLeftPieces = SwizzledRows::kPieces; // of a row of a left slice
constexpr int64_t kRowBytes = kCopied * kLeftPieces;   // of the left side
constexpr int64_t kUnit = 16;                          // bytes: matrix descriptors count addresses in units of 16
constexpr int64_t kWord = 2;  // bytes: tensor maps count elements of 16 bits, whatever they are
constexpr int64_t kGroup = 8; // shared rows of a group in a matrix descriptor
/// Columns of sums of 8-bit floats that wgmma has at once, beside f32 sums of all columns.
constexpr int64_t kNarrowSums = 128;
// Each warp of a consumer stages so many columns of its rows at once for the epilogue. Rows are padded, so that fewer
// of them begin in the same bank.
constexpr int64_t kWarpRows = 16, kStagedColumns = 64, kPitch = kStagedColumns + 4;
constexpr int64_t kStagedBytes = kWarpRows * kPitch * int64_t(sizeof(float)); // of a warp
// Registers of a thread of either kind: 504 for one of each warpgroup, as many as there are.
constexpr int64_t kOfMultiplying = 192, kOfCopying = 120, kBesideMapped = 232, kOfMapped = 40;

class WarpgroupContraction : ContractionSides {
public:
  WarpgroupContraction(ElementEmitter &e, ContractOp op, Block &body, const passes::IterationSpace &a,
                       ArrayRef<Value> results)
      : ContractionSides(e, op), e(e), p(e, a), body(body), results(results), dtype(dtypeOf(op.getLhs())),
        elementBytes(int64_t(byteWidth(dtype))), slice(kRowBytes / elementBytes), piece(kCopied / elementBytes),
        tileColumns(passes::warpgroupTileColumns(op)), rowBytes(hasColumns || isPlain ? kRowBytes : kRowBytes / 2),
        rowLength(rowBytes / elementBytes), panels(tileColumns / rowLength), pool(sharedPool(k)), leftTile(pool),
        rightTile{inPool(leftBytes()), rhs.dtype, {}},
        barriers(SliceBarriers::at(k, inPool(leftBytes() + rightBytes()), kStages)), rowTiles(ceildiv(rows, kRows)),
        columnTiles(ceildiv(columns, tileColumns)) {}

  GpuLaunch emit() {
    thread = threadIndex(k), lane = k.rem(thread, k.constant(kWarp));
    member = k.rem(thread, k.constant(kWarpgroup));
    group = shuffleFirst(k, k.div(thread, k.constant(kWarpgroup))); // shuffled: uniform in a warp for LLVM
    slices = k.dim(ceildiv(depth, slice));
    canCopy = copiesPieces(piece);
    addMaps();
    // Of each slice, one thread arrives for all bytes of bulk copies. The others, too, unless both sides are.
    Value writing = k.constant(kWarpgroup + (rightMap && !usesMaps()));
    if (usesMaps())
      writing = arith::SelectOp::create(k.b, k.loc, canCopy, k.constant(1), writing);
    k.when(k.compare(arith::CmpIPredicate::eq, thread, k.constant(0)), [&] {
      barriers.init(k, writing, kMultiplying * kWarpgroup / kWarp);
      if (rightMap)
        showToProducts(k); // and to bulk copies
    });
    barrier(k);
    Value multiplies = isBelow(group, k.constant(kMultiplying));
    k.unless(multiplies, [&] {
      leaveRegisters(k, usesMaps() ? kOfMapped : kOfCopying);
      fillAll();
    });
    k.when(multiplies, [&] {
      takeRegisters(k, usesMaps() ? kBesideMapped : kOfMultiplying);
      prepareToFinish();
      eachTile([&](Value before) { finish(multiplyAll(before)); });
    });
    if (canCopy && !usesMaps())
      barrier(k); // no thread ends before its copies
    return {.blocks = batches * rowTiles * columnTiles,
            .threads = kThreads,
            .sharedBytes = stagedAt() + kMultiplying * kWarpgroup / kWarp * kStagedBytes,
            .blocksPerMultiprocessor = 1};
  }

private:
  /// Calls `body` for each tile of this block, with the number of slices of its earlier tiles.
  void eachTile(llvm::function_ref<void(Value before)> body) {
    k.loop(k.lo, k.dim(batches * rowTiles * columnTiles), blockCount(k), k.constant(0),
           [&](Value tile, ValueRange carried) -> SmallVector<Value> {
             placeTile(tile);
             body(carried[0]);
             return {k.add(carried[0], slices)};
           });
  }

  /// Sets rows and columns of a tile. Tiles are ordered in groups of kGrouped rows of tiles, column by column within a
  /// group (the "grouped ordering" of Triton's matrix product): blocks that run at the same time then share rows and
  /// columns, which stay in the L2 cache.
  void placeTile(Value tileOfAll) {
    constexpr int64_t kGrouped = 8; // rows of tiles
    Value all = k.dim(rowTiles * columnTiles), tile = op.getBatch() ? k.rem(tileOfAll, all) : tileOfAll;
    batch = op.getBatch() ? k.div(tileOfAll, all) : k.constant(0);
    Value inGroup = k.dim(columnTiles * Dim(kGrouped));
    Value above = k.mul(k.div(tile, inGroup), k.constant(kGrouped)), place = k.rem(tile, inGroup);
    Value height = k.minimum(k.constant(kGrouped), k.sub(k.dim(rowTiles), above));
    firstRow = k.mul(k.add(above, k.rem(place, height)), k.constant(kRows));
    firstColumn = k.mul(k.div(place, height), k.constant(tileColumns));
  }

  static int64_t leftBytes() { return kStages * kLeftStage; }
  int64_t rightBytes() const { return kStages * rightStage(); }
  int64_t stagedAt() const { return leftBytes() + rightBytes() + SliceBarriers::bytes(kStages); }
  Memory leftMemory() const { return {leftTile, dtype, {}}; }
  Value inPool(int64_t bytes) { return k.elementPointer({pool, DType::i8, {}}, k.constant(bytes)); }

  // ---- the producer

  bool usesMaps() const { return bool(leftMap); }
  /// Describes panels to bulk copies, and the left operand if its rows, all channels of a position, follow each other
  /// at one distance, and if that and the channels are multiples of 16 bytes.
  void addMaps() {
    const int64_t lhs = k.operandOf(left.memory.pointer), rhsOperand = k.operandOf(rhs.pointer);
    if (!canCopy || lhs < 0 || rhsOperand < 0)
      return;
    addRightMap(rhsOperand);
    const size_t first = size_t(op.getBatch()), last = first + spatial - 1;
    const Dim channels = lhsShape.back(), rowStride = left.strides[last];
    auto isOne = [](int64_t n) { return n == 1; };
    auto isStep = [&](const Dim &stride) { return isMultipleOf(stride, piece) && stride != Dim(0); };
    bool isRegular = channels.isStatic() && isStep(rowStride) && !isCut && llvm::all_of(op.getKernel(), isOne) &&
                     llvm::all_of(op.getStrides(), isOne);
    for (size_t d = first; d < last; ++d)
      isRegular &= left.strides[d] == left.strides[d + 1] * lhsShape[d + 1];
    if (!isRegular || (first && !isStep(left.strides[first - 1])))
      return;
    TensorMap map{
        lhs, kRowBytes, {wordsOf(channels), rows}, {rowStride * Dim(elementBytes)}, {kRowBytes / kWord, kRows}};
    if (first) {
      map.sizes.push_back(batches), map.strides.push_back(left.strides[first - 1] * Dim(elementBytes));
      map.box.push_back(1);
    }
    leftMap = k.addTensorMap(std::move(map));
  }

  Dim wordsOf(const Dim &elements) const { return floordiv(elements * Dim(elementBytes), kWord); }
  void addRightMap(int64_t operand) {
    if (hasColumns) {
      rightMap = k.addTensorMap({operand,
                                 rowBytes,
                                 {wordsOf(depth), columns, batches},
                                 {depth, columns * depth},
                                 {rowBytes / kWord, tileColumns, 1}});
    } else if (isPlain) {
      // Strides that are no multiple of 16 bytes are rounded up: no copy uses the map, but it must be one.
      const Dim stride = ceildiv(columns, piece) * Dim(kCopied);
      rightMap = k.addTensorMap(
          {operand, rowBytes, {columns, depth, batches}, {stride, depth * stride}, {rowLength, slice, 1}});
    } else {
      rightMap = k.addTensorMap({operand,
                                 rowBytes,
                                 {Dim(rowLength), depth, batches * ceildiv(columns, rowLength)},
                                 {Dim(rowBytes), depth * Dim(rowBytes)},
                                 {rowLength, slice, panels}});
    }
  }

  /// Calls `fill(stage, from)` for each slice of the tile, from that step of the sum on, when its stage is free.
  void eachSlice(Value before, llvm::function_ref<void(Value stage, Value from)> fill) {
    k.loop(k.constant(0), slices, k.constant(1), [&](Value sliceOfTile) {
      Value index = k.add(before, sliceOfTile);
      barriers.waitUntilFree(k, index);
      fill(barriers.stageOf(k, index), k.mul(sliceOfTile, k.constant(slice)));
    });
  }

  void fillAll() {
    if (!canCopy)
      return eachTile(
          [&](Value before) { eachSlice(before, [&](Value stage, Value from) { fillOneByOne(stage, from); }); });
    if (!usesMaps())
      return eachTile([&](Value before) { copyPieces(before); });
    Value isFirst = k.compare(arith::CmpIPredicate::eq, member, k.constant(0));
    k.when(both(canCopy, isFirst), [&] {
      eachTile([&](Value before) { eachSlice(before, [&](Value stage, Value from) { copyBoxes(stage, from); }); });
    });
    k.unless(canCopy, [&] {
      eachTile([&](Value before) { eachSlice(before, [&](Value stage, Value from) { fillOneByOne(stage, from); }); });
    });
  }

  static constexpr int64_t kLeftStage = kRows * kRowBytes;
  int64_t rightStage() const { return tileColumns * kRowBytes; }
  int64_t rightSharedRows() const { return rightStage() / rowBytes; } // of a slice
  Value stageOf(Value side, Value stage, int64_t bytes) {
    return k.elementPointer({side, DType::i8, {}}, k.mul(stage, k.constant(bytes)));
  }

  void copyBoxes(Value stage, Value from) {
    SmallVector<Value> place{inWords(from), firstRow};
    if (op.getBatch())
      place.push_back(batch);
    barriers.isThere.arriveExpecting(k, stage, kLeftStage + rightStage());
    barriers.isThere.copyBox(k, stage, stageOf(leftTile, stage, kLeftStage), leftMap, place);
    copyPanels(stage, from);
  }
  Value inWords(Value step) { return k.div(k.mul(step, k.constant(elementBytes)), k.constant(kWord)); }
  void copyPanels(Value stage, Value from) {
    Value to = stageOf(rightTile.pointer, stage, rightStage());
    if (hasColumns)
      return barriers.isThere.copyBox(k, stage, to, rightMap, {inWords(from), firstColumn, batch});
    if (!isPlain) {
      Value panel = k.add(k.mul(batch, k.dim(ceildiv(columns, rowLength))), k.div(firstColumn, k.constant(rowLength)));
      return barriers.isThere.copyBox(k, stage, to, rightMap, {k.constant(0), from, panel});
    }
    for (int64_t panel = 0; panel < panels; ++panel)
      barriers.isThere.copyBox(k, stage, k.elementPointer({to, DType::i8, {}}, k.constant(panel * slice * rowBytes)),
                               rightMap, {k.add(firstColumn, k.constant(panel * rowLength)), from, batch});
  }

  void copyPieces(Value before) {
    SmallVector<Row> copiedRows;
    constexpr int64_t kAtOnce = kWarpgroup / kLeftPieces; // rows
    for (int64_t row = 0; row < kRows; row += kAtOnce)
      copiedRows.push_back(leftRow(batch, k.add(firstRow, rowOf(row))));
    eachSlice(before, [&](Value stage, Value from) {
      Value isFirst = k.compare(arith::CmpIPredicate::eq, member, k.constant(0));
      k.when(canCopy, [&] {
        k.when(isFirst, [&] {
          barriers.isThere.arriveExpecting(k, stage, rightStage());
          copyPanels(stage, from);
        });
        copyLeft(stage, from, copiedRows);
        barriers.isThere.arriveWithCopies(k, stage);
      });
      k.unless(canCopy, [&] {
        fillOneByOne(stage, from);
        k.when(isFirst, [&] { barriers.isThere.arrive(k, stage); }); // for the panels
      });
    });
  }

  void fillOneByOne(Value stage, Value from) {
    k.keepsRolled = true;
    fillLeft(stage, from), fillRight(stage, from);
    k.keepsRolled = false;
    showToProducts(k);
    barriers.isThere.arrive(k, stage);
  }

  /// The row of the tile of which this thread copies a piece, when the warpgroup copies the rows from `from` on.
  Value rowOf(int64_t from) { return k.add(k.div(member, k.constant(kLeftPieces)), k.constant(from)); }
  /// Positions in shared memory of pieces of a stage. Left: [stage, row]; right: [stage, panel, step] or [stage,
  /// column], where `own` is the index within the stage.
  Value leftPiece(Value stage, Value row, Value at) {
    return SwizzledRows::pieceAt(k, k.add(k.mul(stage, k.constant(kRows)), row), at, piece);
  }
  Value rightPiece(Value stage, Value own, Value at) {
    Value all = k.add(k.mul(stage, k.constant(rightSharedRows())), own);
    return rowBytes == kRowBytes ? SwizzledRows::pieceAt(k, all, at, piece) : SwizzledTile::pieceAt(k, all, at, piece);
  }

  void copy(const Memory &tile, Value place, const Memory &source, Value position, Value exists) {
    Value at = arith::SelectOp::create(k.b, k.loc, exists, position, k.constant(0));
    copyAsync(k, k.elementPointer(tile, place), k.elementPointer(source, at), exists);
  }
  void store(const Memory &tile, Value start, Value at, Value element) {
    k.store(tile, {k.add(start, k.rem(at, k.constant(piece)))}, element, 1, {});
  }

  void copyLeft(Value stage, Value from, ArrayRef<Row> copiedRows) {
    Value at = k.rem(member, k.constant(kLeftPieces)), step = k.add(from, k.mul(at, k.constant(piece)));
    for (auto [i, row] : llvm::enumerate(copiedRows)) {
      auto [position, exists] = leftPosition(row, step);
      Value own = rowOf(int64_t(i) * kRows / int64_t(copiedRows.size()));
      copy(leftMemory(), leftPiece(stage, own, at), left.memory, position, exists);
    }
  }

  void fillLeft(Value stage, Value from) {
    k.loop(member, k.constant(kRows * slice), k.constant(kWarpgroup), [&](Value i) {
      Value row = k.div(i, k.constant(slice)), at = k.rem(i, k.constant(slice));
      auto [position, exists] = leftPosition(leftRow(batch, k.add(firstRow, row)), k.add(from, at));
      store(leftMemory(), leftPiece(stage, row, k.div(at, k.constant(piece))), at,
            k.load(left.memory, {position}, 1, exists));
    });
  }

  void fillRight(Value stage, Value from) {
    k.loop(member, k.constant(rightSharedRows() * rowLength), k.constant(kWarpgroup), [&](Value i) {
      Value own = k.div(i, k.constant(rowLength)), at = k.rem(i, k.constant(rowLength)); // panels follow each other
      auto [position, exists] = rightElement(own, at, from);
      store(rightTile, rightPiece(stage, own, k.div(at, k.constant(piece))), at, k.load(rhs, {position}, 1, exists));
    });
  }
  std::pair<Value, Value> rightElement(Value own, Value at, Value from) {
    if (hasColumns)
      return rightPosition(batch, k.add(firstColumn, own), k.constant(0), k.add(from, at));
    Value column = k.add(firstColumn, k.mul(k.div(own, k.constant(slice)), k.constant(rowLength)));
    return rightPosition(batch, column, at, k.add(from, k.rem(own, k.constant(slice))));
  }

  // ---- the consumers

  SmallVector<Value> multiplyAll(Value before) {
    Value ownRows = k.mul(group, k.constant(kGroupRows * kRowBytes / kUnit));
    leftMatrix = k.add(matrixDescriptor(k, leftTile, kUnit, kGroup * kRowBytes, kRowBytes), ownRows);
    rightMatrix = matrixDescriptor(k, rightTile.pointer, slice * rowBytes, kGroup * rowBytes, rowBytes);
    SmallVector<Value> zeros(size_t(tileColumns / 2), e.zeroOf(sumType));
    SmallVector<Value> sums = k.loop(k.constant(0), slices, k.constant(1), zeros, [&](Value i, ValueRange carried) {
      Value index = k.add(before, i), stage = barriers.stageOf(k, index);
      barriers.waitUntilThere(k, index);
      if (canCopy && !usesMaps()) // pieces become complete when nobody is there to show them
        showToProducts(k);
      auto releaseBefore = [&] { release(isBelow(k.constant(0), i), k.sub(index, k.constant(1))); };
      SmallVector<Value> earlier(carried);
      if (isFloat8(dtype))
        return addNarrowSums(stage, std::move(earlier), releaseBefore);
      beginProducts(k);
      SmallVector<Value> next = multiply(stage, 0, earlier);
      commitProducts(k);
      waitForProducts(k, 1); // the slice before has been read
      releaseBefore();
      return next;
    });
    if (!isFloat8(dtype))
      sums = finishProducts(k, sums);
    release(isBelow(k.constant(0), slices), k.sub(k.add(before, slices), k.constant(1)));
    return sums;
  }

  /// Products of a slice, of as many columns as sums, from that one on; of kNarrowSums columns if there are none.
  SmallVector<Value> multiply(Value stage, int64_t firstOfTile, SmallVector<Value> sums) {
    Value leftOfStage = k.add(leftMatrix, k.mul(stage, k.constant(kLeftStage / kUnit)));
    Value rightOfStage = k.add(rightMatrix, k.add(k.mul(stage, k.constant(rightStage() / kUnit)),
                                                  k.constant(firstOfTile * kRowBytes / kUnit)));
    const RightRows rightRows = hasColumns ? RightRows::Columns : RightRows::Steps;
    const int64_t steps = kProductBytes / elementBytes;
    for (int64_t step = 0; step < slice; step += steps) {
      Value a = k.add(leftOfStage, k.constant(step * elementBytes / kUnit));
      Value b = k.add(rightOfStage, k.constant(step * (hasColumns ? elementBytes : rowBytes) / kUnit));
      const ProductTypes types(dtype, rhs.dtype);
      sums = sums.empty() ? multiplyMatrices(k, types, a, b, rightRows, kNarrowSums / 2)
                          : multiplyMatrices(k, types, a, b, rightRows, sums);
    }
    return sums;
  }

  /// Adds the products of a slice to f32 sums. The slice before is released between products: were there a branch
  /// behind additions, LLVM would move them there, so that all sums of products would be in registers at once.
  SmallVector<Value> addNarrowSums(Value stage, SmallVector<Value> sums, llvm::function_ref<void()> releaseBefore) {
    for (int64_t first = 0; first < tileColumns; first += kNarrowSums) {
      beginProducts(k);
      SmallVector<Value> narrow = multiply(stage, first, {});
      commitProducts(k);
      if (first == 0)
        releaseBefore();
      narrow = finishProducts(k, narrow);
      for (auto [i, x] : llvm::enumerate(narrow)) {
        Value &sum = sums[size_t(first / 2) + i];
        sum = arith::AddFOp::create(k.b, k.loc, sum, x);
      }
    }
    return sums;
  }

  /// One lane of each warp says that a slice has been read, if it exists.
  void release(Value exists, Value slice) {
    Value isFirst = k.compare(arith::CmpIPredicate::eq, lane, k.constant(0));
    k.when(both(isFirst, exists), [&] { barriers.isRead.arrive(k, barriers.stageOf(k, slice)); });
  }

  // ---- the epilogue. Each warp has 16 rows, and memory of its own for the sums of a few columns.

  void prepareToFinish() {
    warp = shuffleFirst(k, k.div(thread, k.constant(kWarp)));
    staged = {
        k.elementPointer({inPool(stagedAt()), DType::i8, {}}, k.mul(warp, k.constant(kStagedBytes))), sumType, {}};
    const int64_t most = kCopied / (elementBytes == 2 ? 2 : 4); // results of bytes are wide
    lanes = columns.isStatic() && columns.value() % most == 0 ? most : 1;
    areAligned = lanes > 1 ? operandsAligned(e, body, results) : Value();
  }

  void finish(ArrayRef<Value> sums) {
    constexpr int64_t kSums = kWarpRows * kStagedColumns / kWarp; // of a thread
    Value left = k.sub(k.dim(columns), firstColumn);
    Value parts = k.minimum(k.constant(tileColumns / kStagedColumns),
                            k.div(k.add(left, k.constant(kStagedColumns - 1)), k.constant(kStagedColumns)));
    k.loop(k.constant(0), parts, k.constant(1), [&](Value part) {
      for (int64_t i = 0; i < tileColumns / kStagedColumns; ++i)
        k.when(k.compare(arith::CmpIPredicate::eq, part, k.constant(i)),
               [&] { storeSums(k, staged, kPitch, lane, sums.slice(size_t(i * kSums), size_t(kSums))); });
      warpBarrier(k);
      Value column = k.add(firstColumn, k.mul(part, k.constant(kStagedColumns)));
      Value firstOfWarp = k.add(firstRow, k.mul(warp, k.constant(kWarpRows)));
      if (areAligned) {
        Value isWhole = both(areAligned, both(isBelow(k.add(firstOfWarp, k.constant(kWarpRows - 1)), k.dim(rows)),
                                              isBelow(k.add(column, k.constant(kStagedColumns - 1)), k.dim(columns))));
        k.when(isWhole, [&] {
          assumeOperandsAligned(e, body, results);
          finishWhole(firstOfWarp, column);
        });
        k.unless(isWhole, [&] { finishElements(firstOfWarp, column); });
      } else {
        finishElements(firstOfWarp, column);
      }
      warpBarrier(k); // the sums have been read
    });
  }

  Index stagedPlace(Value sharedRow, Value column) { return {k.add(k.mul(sharedRow, k.constant(kPitch)), column), 1}; }

  /// All staged elements, of which none is beyond the result: `lanes` adjacent columns per thread. If an operand of the
  /// epilogue has the shape of the result, such as a residual, its elements for several rows are loaded together.
  void finishWhole(Value firstOfWarp, Value first) {
    const int64_t pieces = kWarpRows * kStagedColumns / lanes, atOnce = readsRows() ? pieces / kWarp : 1;
    k.loop(k.constant(0), k.constant(pieces), k.constant(atOnce * kWarp), [&](Value from) {
      SmallVector<SmallVector<Index>> places;
      SmallVector<Index> inStage;
      for (int64_t i = 0; i < atOnce; ++i) {
        Value piece = k.add(k.add(from, lane), k.constant(i * kWarp));
        Value sharedRow = k.div(piece, k.constant(kStagedColumns / lanes));
        Value at = k.mul(k.rem(piece, k.constant(kStagedColumns / lanes)), k.constant(lanes));
        places.push_back(placeOf(batch, k.add(firstOfWarp, sharedRow), k.add(first, at)));
        inStage.push_back(stagedPlace(sharedRow, at));
      }
      llvm::SaveAndRestore inLanes(k.width, lanes);
      auto sum = [&](size_t i) { return castLanes(k.b, k.loc, k.load(staged, inStage[i], lanes, {}), sumType, type); };
      p.finishAll(op.getResult(), places, sum, body, results);
    });
  }
  bool readsRows() {
    const auto &dims = p.alignment.dims;
    return llvm::any_of(body.getArguments(), [&](BlockArgument v) {
      return dims.contains(v) && dims.lookup(v) == dims.lookup(op.getResult());
    });
  }

  /// The staged elements that the result has, one after the other.
  void finishElements(Value firstOfWarp, Value first) {
    k.keepsRolled = true;
    k.loop(lane, k.constant(kWarpRows * kStagedColumns), k.constant(kWarp), [&](Value i) {
      Value sharedRow = k.div(i, k.constant(kStagedColumns)), at = k.rem(i, k.constant(kStagedColumns));
      Value row = k.add(firstOfWarp, sharedRow), column = k.add(first, at);
      k.when(both(isBelow(row, k.dim(rows)), isBelow(column, k.dim(columns))), [&] {
        Value sum = k.load(staged, stagedPlace(sharedRow, at), 1, {});
        p.finish(op.getResult(), placeOf(batch, row, column), castLanes(k.b, k.loc, sum, sumType, type), body, results);
      });
    });
    k.keepsRolled = false;
  }

  ElementEmitter &e;
  PointEmitter p;
  Block &body;
  ArrayRef<Value> results;
  DType dtype;                                      // of the left side; bytes on the right may be of another type
  int64_t elementBytes, slice, piece;               // elements of a row of a slice, and of what a thread copies
  int64_t tileColumns, rowBytes, rowLength, panels; // rowLength: elements of a shared row of the right side
  Value pool, leftTile;
  Memory rightTile;
  SliceBarriers barriers;
  Dim rowTiles, columnTiles;
  Value thread, lane, warp, member, group, slices, canCopy;
  Value leftMap, rightMap;            // tensor maps, or null
  Value leftMatrix, rightMatrix;      // matrix descriptors
  Value firstRow, firstColumn, batch; // of the tile
  Memory staged{};                    // of the warp
  int64_t lanes = 1;                  // of loads and stores of the epilogue, if operands are aligned
  Value areAligned;
};

} // namespace

GpuLaunch emitWarpgroupContraction(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<ContractOp>().begin();
  return WarpgroupContraction(kernel.e, op, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
