// Matrix products of 16-bit floats by wgmma, with specialised warps: a block computes one tile of the result. One
// warpgroup, the producer, copies slices of both sides to shared memory; two consumers multiply them. A slice is kSlice
// steps of the sum: all rows of the tile's left side, all columns of its right side. There is room for kStages slices;
// an mbarrier per stage says when a slice has arrived, another one when it has been read.
//
// Layout of shared memory. The unit is a line: kLine elements of one row of the left side, or of one step of the right
// side, in the swizzle of SwizzledTile, which consists of kPieces pieces of kPiece elements, the width of one copy. A
// row of a left slice is kHalves lines, which are not adjacent: the lines of all rows for the first half of the steps
// come before those for the second. The right side is packed in panels of kLine columns, so a slice has one line per
// panel and step.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/Results.h"
#include "codegen/gpu/contraction/ContractionSides.h"
#include "codegen/gpu/contraction/TensorCore.h"
#include "codegen/gpu/contraction/Warpgroup.h"
#include "codegen/scalar/Elementwise.h"
#include "passes/kernels/families/GpuFamilies.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kSlice = 64, kSteps = 16;           // steps of the sum: of a slice, of one wgmma
constexpr int64_t kStages = 4;                        // slices in shared memory
constexpr int64_t kMultiplying = 2;                   // consumers, 64 rows each
constexpr int64_t kRows = passes::kWarpgroupTileRows; // of the tile
constexpr int64_t kGroupRows = kRows / kMultiplying;  // of a consumer
constexpr int64_t kThreads = (kMultiplying + 1) * kWarpgroup;
constexpr int64_t kLine = SwizzledTile::kRow, kPiece = SwizzledTile::kPiece, kPieces = SwizzledTile::kPieces;
constexpr int64_t kHalves = kSlice / kLine; // lines of a row of a left slice
constexpr int64_t kLineBytes = 2 * kLine;
constexpr int64_t kUnit = 16;  // bytes: matrix descriptors count addresses in units of 16
constexpr int64_t kSkewed = 8; // padding of a row of sums, in elements: rows then begin in different banks

class WarpgroupContraction : ContractionSides {
public:
  WarpgroupContraction(ElementEmitter &e, ContractOp op, Block &body, const passes::IterationSpace &a,
                       ArrayRef<Value> results)
      : ContractionSides(e, op), e(e), p(e, a), body(body), results(results), dtype(dtypeOf(op.getLhs())),
        tileColumns(passes::warpgroupTileColumns(op)), panels(tileColumns / panelWidth), pool(sharedPool(k)),
        leftTile{pool, dtype}, rightTile{inPool(leftBytes()), dtype},
        barriers(SliceBarriers::at(k, inPool(leftBytes() + rightBytes()), kStages)) {}

  GpuLaunch emit() {
    Dim rowTiles = ceildiv(rows, kRows), columnTiles = ceildiv(columns, tileColumns);
    placeTile(rowTiles, columnTiles);
    thread = threadIndex(k), lane = k.rem(thread, k.constant(kWarp));
    member = k.rem(thread, k.constant(kWarpgroup));
    group = shuffleFirst(k, k.div(thread, k.constant(kWarpgroup))); // shuffled: uniform in a warp for LLVM
    slices = k.dim(ceildiv(depth, kSlice));
    canCopy = copiesPieces(kPiece);
    k.when(k.compare(arith::CmpIPredicate::eq, thread, k.constant(0)),
           [&] { barriers.init(k, kWarpgroup, kMultiplying * kWarpgroup / kWarp); });
    barrier(k);
    Value multiplies = isBelow(group, k.constant(kMultiplying));
    k.unless(multiplies, [&] { fillAll(); });
    Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getF32FloatAttr(0));
    SmallVector<Value> zeros(size_t(tileColumns / 2), zero);
    SmallVector<Value> sums = k.when(multiplies, zeros, [&] { return multiplyAll(zeros); });
    barrier(k); // all slices have been read: sums take their place
    k.when(multiplies, [&] { stage(sums); });
    barrier(k);
    finish();
    const int64_t stages = leftBytes() + rightBytes() + SliceBarriers::bytes(kStages);
    return {.blocks = batches * rowTiles * columnTiles,
            .threads = kThreads,
            .sharedBytes = std::max(stages, kRows * pitch() * int64_t(sizeof(float)))};
  }

private:
  /// Sets the tile of this block. Tiles are ordered in groups of kGrouped rows of tiles, column by column within a
  /// group (the "grouped ordering" of Triton's matrix product): blocks that run at the same time then share rows and
  /// columns, which stay in the L2 cache.
  void placeTile(const Dim &rowTiles, const Dim &columnTiles) {
    constexpr int64_t kGrouped = 8; // rows of tiles
    Value all = k.dim(rowTiles * columnTiles), tile = op.getBatch() ? k.rem(k.lo, all) : k.lo;
    batch = op.getBatch() ? k.div(k.lo, all) : k.constant(0);
    Value inGroup = k.dim(columnTiles * Dim(kGrouped));
    Value above = k.mul(k.div(tile, inGroup), k.constant(kGrouped)), place = k.rem(tile, inGroup);
    Value height = k.minimum(k.constant(kGrouped), k.sub(k.dim(rowTiles), above));
    firstRow = k.mul(k.add(above, k.rem(place, height)), k.constant(kRows));
    firstColumn = k.mul(k.div(place, height), k.constant(tileColumns));
  }

  static int64_t leftBytes() { return kStages * kRows * kHalves * kLineBytes; }
  int64_t rightBytes() const { return kStages * panels * kSlice * kLineBytes; }
  int64_t pitch() const { return tileColumns + kSkewed; }
  Value inPool(int64_t bytes) { return k.elementPointer({pool, DType::i8, {}}, k.constant(bytes)); }

  // ---- the producer

  void fillAll() {
    SmallVector<Row> copiedRows;
    constexpr int64_t kAtOnce = kWarpgroup / (kHalves * kPieces); // rows
    for (int64_t row = 0; row < kRows; row += kAtOnce)
      copiedRows.push_back(leftRow(batch, k.add(firstRow, rowOf(row))));
    k.loop(k.constant(0), slices, k.constant(1), [&](Value slice) {
      Value stage = barriers.stageOf(k, slice), from = k.mul(slice, k.constant(kSlice));
      barriers.waitUntilFree(k, slice);
      auto oneByOne = [&] {
        fillLeft(stage, from), fillRight(stage, from);
        barriers.isThere.arrive(k, stage);
      };
      if (!canCopy)
        return oneByOne();
      k.when(canCopy, [&] {
        copyLeft(stage, from, copiedRows), copyRight(stage, from);
        barriers.isThere.arriveWithCopies(k, stage);
      });
      k.unless(canCopy, oneByOne);
    });
  }

  /// The row of the tile of which this thread copies a piece, when the warpgroup copies the rows from `from` on.
  Value rowOf(int64_t from) { return k.add(k.div(member, k.constant(kHalves * kPieces)), k.constant(from)); }
  /// Indices of lines in shared memory. Left: [stage, half, row]; right: [stage, panel, step], where `line` is the
  /// index within the stage.
  Value leftLine(Value stage, Value half, Value row) {
    return k.add(k.mul(k.add(k.mul(stage, k.constant(kHalves)), half), k.constant(kRows)), row);
  }
  Value rightLine(Value stage, Value line) { return k.add(k.mul(stage, k.constant(panels * kSlice)), line); }

  void copy(const SwizzledTile &tile, Value line, Value piece, const Memory &source, Value position, Value exists) {
    Value to = k.elementPointer(tile.memory(), SwizzledTile::pieceAt(k, line, piece));
    Value at = arith::SelectOp::create(k.b, k.loc, exists, position, k.constant(0));
    copyAsync(k, to, k.elementPointer(source, at), exists);
  }

  void copyLeft(Value stage, Value from, ArrayRef<Row> copiedRows) {
    Value place = k.rem(member, k.constant(kHalves * kPieces)), piece = k.rem(place, k.constant(kPieces));
    Value step = k.add(from, k.mul(place, k.constant(kPiece)));
    for (auto [i, row] : llvm::enumerate(copiedRows)) {
      auto [position, exists] = leftPosition(row, step);
      Value line =
          leftLine(stage, k.div(place, k.constant(kPieces)), rowOf(int64_t(i) * kRows / int64_t(copiedRows.size())));
      copy(leftTile, line, piece, left.memory, position, exists);
    }
  }

  void copyRight(Value stage, Value from) {
    constexpr int64_t kAtOnce = kWarpgroup / kPieces; // lines
    Value piece = k.rem(member, k.constant(kPieces)), channel = k.mul(piece, k.constant(kPiece));
    for (int64_t line = 0; line < panels * kSlice; line += kAtOnce) {
      Value own = k.add(k.div(member, k.constant(kPieces)), k.constant(line % kSlice));
      auto [position, exists] = rightPosition(line / kSlice, k.add(from, own));
      copy(rightTile, rightLine(stage, k.add(own, k.constant(line / kSlice * kSlice))), piece, rhs,
           k.add(position, channel), exists);
    }
  }

  /// The position of a step of a panel of the tile, and whether there is one.
  std::pair<Value, Value> rightPosition(int64_t panel, Value step) {
    Value column = k.add(firstColumn, k.constant(panel * panelWidth));
    return {panelPosition(batch, column, step), both(isBelow(step, k.dim(depth)), isBelow(column, k.dim(columns)))};
  }

  void store(const SwizzledTile &tile, Value line, Value at, Value element) {
    Value piece = SwizzledTile::pieceAt(k, line, k.div(at, k.constant(kPiece)));
    k.store(tile.memory(), {k.add(piece, k.rem(at, k.constant(kPiece)))}, element, 1, {});
  }

  void fillLeft(Value stage, Value from) {
    k.loop(member, k.constant(kRows * kSlice), k.constant(kWarpgroup), [&](Value i) {
      Value row = k.div(i, k.constant(kSlice)), at = k.rem(i, k.constant(kSlice));
      auto [position, exists] = leftPosition(leftRow(batch, k.add(firstRow, row)), k.add(from, at));
      Value line = leftLine(stage, k.div(at, k.constant(kLine)), row);
      store(leftTile, line, k.rem(at, k.constant(kLine)), k.load(left.memory, {position}, 1, exists));
    });
  }

  void fillRight(Value stage, Value from) {
    for (int64_t panel = 0; panel < panels; ++panel)
      k.loop(member, k.constant(kSlice * kLine), k.constant(kWarpgroup), [&](Value i) {
        Value own = k.div(i, k.constant(kLine)), at = k.rem(i, k.constant(kLine));
        auto [position, exists] = rightPosition(panel, k.add(from, own));
        store(rightTile, rightLine(stage, k.add(own, k.constant(panel * kSlice))), at,
              k.load(rhs, {k.add(position, at)}, 1, exists));
      });
  }

  // ---- the consumers

  SmallVector<Value> multiplyAll(ArrayRef<Value> zeros) {
    constexpr int64_t kGroupBytes = 8 * kLineBytes, kLeftStage = kHalves * kRows * kLineBytes / kUnit;
    const int64_t rightStage = panels * kSlice * kLineBytes / kUnit;
    Value ownRows = k.mul(group, k.constant(kGroupRows * kLineBytes / kUnit));
    Value left = k.add(matrixDescriptor(k, leftTile.pointer, kUnit, kGroupBytes), ownRows);
    Value right = matrixDescriptor(k, rightTile.pointer, kSlice * kLineBytes, kGroupBytes);
    SmallVector<Value> sums = k.loop(k.constant(0), slices, k.constant(1), zeros, [&](Value slice, ValueRange carried) {
      Value stage = barriers.stageOf(k, slice);
      barriers.waitUntilThere(k, slice);
      showToProducts(k);
      beginProducts(k);
      Value leftOfStage = k.add(left, k.mul(stage, k.constant(kLeftStage)));
      Value rightOfStage = k.add(right, k.mul(stage, k.constant(rightStage)));
      SmallVector<Value> sums(carried);
      for (int64_t step = 0; step < kSlice; step += kSteps) {
        int64_t half = step / kLine * kRows * kLineBytes, inHalf = step % kLine * 2;
        sums = multiplyMatrices(k, dtype, k.add(leftOfStage, k.constant((half + inHalf) / kUnit)),
                                k.add(rightOfStage, k.constant(step * kLineBytes / kUnit)), RightRows::Steps, sums);
      }
      commitProducts(k);
      waitForProducts(k, 1); // the slice before has been read
      Value isFirst = k.compare(arith::CmpIPredicate::eq, lane, k.constant(0));
      k.when(both(isFirst, isBelow(k.constant(0), slice)),
             [&] { barriers.isRead.arrive(k, barriers.stageOf(k, k.sub(slice, k.constant(1)))); });
      return sums;
    });
    return finishProducts(k, sums);
  }

  // ---- all

  /// Writes the accumulators to shared memory, row by row. Of every eight columns a lane has two adjacent elements of a
  /// row, and two of the row that is 8 rows further (the layout of wgmma's D registers in the PTX ISA).
  void stage(ArrayRef<Value> sums) {
    Value warp = k.div(thread, k.constant(kWarp));
    Value row = k.add(k.mul(warp, k.constant(kGroupRows / (kWarpgroup / kWarp))), k.div(lane, k.constant(4)));
    Value first = k.add(k.mul(row, k.constant(pitch())), k.mul(k.rem(lane, k.constant(4)), k.constant(2)));
    for (size_t i = 0; i < sums.size(); i += 2) {
      int64_t columns = int64_t(i / 4 * 8), further = int64_t(i / 2 % 2 * 8) * pitch();
      Value pair = vector::FromElementsOp::create(k.b, k.loc, VectorType::get({2}, k.b.getF32Type()),
                                                  ValueRange{sums[i], sums[i + 1]});
      LLVM::StoreOp::create(k.b, k.loc, pair,
                            k.elementPointer({pool, DType::f32, {}}, k.add(first, k.constant(columns + further))),
                            /*alignment=*/2 * sizeof(float));
    }
  }

  void finish() {
    const int64_t lanes = columns.isStatic() && columns.value() % kPiece == 0 ? kPiece : 1;
    Value areAligned = lanes > 1 ? operandsAligned(e, body, results) : Value();
    if (!areAligned)
      return finishTile(1);
    k.when(areAligned, [&] {
      assumeOperandsAligned(e, body, results);
      finishTile(lanes);
    });
    k.unless(areAligned, [&] { finishTile(1); });
  }

  void finishTile(int64_t lanes) {
    const int64_t pieces = tileColumns / lanes;
    k.loop(thread, k.constant(kRows * pieces), k.constant(kThreads), [&](Value i) {
      Value line = k.div(i, k.constant(pieces)), at = k.mul(k.rem(i, k.constant(pieces)), k.constant(lanes));
      Value row = k.add(firstRow, line), column = k.add(firstColumn, at);
      k.when(both(isBelow(row, k.dim(rows)), isBelow(column, k.dim(columns))), [&] {
        Value place = k.add(k.mul(line, k.constant(pitch())), at);
        Value sum = k.load({pool, DType::f32, {}}, {place, 1}, lanes, {});
        k.width = lanes;
        p.finish(op.getResult(), placeOf(batch, row, column), castLanes(k.b, k.loc, sum, DType::f32, type), body,
                 results);
        k.width = 1;
      });
    });
  }

  ElementEmitter &e;
  PointEmitter p;
  Block &body;
  ArrayRef<Value> results;
  DType dtype; // of both sides
  int64_t tileColumns, panels;
  Value pool;
  SwizzledTile leftTile, rightTile;
  SliceBarriers barriers;
  Value firstRow, firstColumn, batch, thread, lane, member, group, slices, canCopy;
};

} // namespace

GpuLaunch emitWarpgroupContraction(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<ContractOp>().begin();
  return WarpgroupContraction(kernel.e, op, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
