// Products of f32 by FMA with many results: a block computes a tile of 128 by 128, a thread 8 by 8 of them in
// registers, from slices of both operands in shared memory. Shared memory has room for three slices (stages): while one
// is multiplied, cp.async copies the next two. Products are added in the order of the summed dimension, as on CPUs.
//
// A warp computes 32 by 64 results. A lane has every fourth row of them and, in each half of the columns, four adjacent
// ones. A left slice stores 16 steps (64 bytes) of each row in the order of SwizzledTile, so that a lane loads four
// steps of a row at once and the four rows that a warp loads together lie in different banks. A right slice stores all
// 128 columns of a step, then those of the next step.
//
// Lanes l and l ^ 1 have the same rows, lanes l and l ^ 2 the same columns: if either holds for a whole warp, its load
// of 16 bytes per lane from shared memory takes two cycles instead of four.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/contraction/ContractionSides.h"
#include "codegen/gpu/contraction/TensorCore.h"
#include "codegen/scalar/Elementwise.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kThreads = 256, kStages = 3;
constexpr int64_t kTile = kFmaTile;                  // rows and columns of a block
constexpr int64_t kSlice = 16, kPiece = 4;           // steps of a slice; f32 in 16 bytes
constexpr int64_t kPieces = kSlice / kPiece;         // of a row of a left slice
constexpr int64_t kWarpRows = 32, kWarpColumns = 64; // of a warp
constexpr int64_t kLaneRows = 4, kPair = 2;          // lanes of a warp along rows; adjacent ones along columns
constexpr int64_t kRows = kWarpRows / kLaneRows;     // of a lane
constexpr int64_t kHalves = 2, kHalf = kWarpColumns / kHalves; // of a warp's columns
constexpr int64_t kSums = kRows * kHalves;                     // vectors of kPiece sums of a lane

class FmaContraction : ContractionSides {
public:
  FmaContraction(ElementEmitter &e, ContractOp op, Block &body, const passes::IterationSpace &a,
                 ArrayRef<Value> results)
      : ContractionSides(e, op), e(e), p(e, a), body(body), results(results),
        leftTile{sharedArray(k, k.b.getF32Type(), kStages * kStage), DType::f32, {}},
        rightTile{sharedArray(k, k.b.getF32Type(), kStages * kStage), DType::f32, {}} {}

  GpuLaunch emit() {
    Dim rowTiles = ceildiv(rows, kTile), columnTiles = ceildiv(columns, kTile);
    Value rest = k.div(k.lo, k.dim(columnTiles));
    firstColumn = k.mul(k.rem(k.lo, k.dim(columnTiles)), k.constant(kTile));
    firstRow = k.mul(k.rem(rest, k.dim(rowTiles)), k.constant(kTile));
    batch = op.getBatch() ? k.div(rest, k.dim(rowTiles)) : k.constant(0);
    thread = threadIndex(k);
    Value lane = k.rem(thread, k.constant(kWarp)), warp = k.div(thread, k.constant(kWarp));
    constexpr int64_t kAcross = kTile / kWarpColumns; // warps
    Value laneRow = k.rem(k.div(lane, k.constant(kPair)), k.constant(kLaneRows));
    Value lanePair = k.div(lane, k.constant(kPair * kLaneRows));
    Value laneColumn = k.add(k.mul(lanePair, k.constant(kPair)), k.rem(lane, k.constant(kPair)));
    ownRow = k.add(k.mul(k.div(warp, k.constant(kAcross)), k.constant(kWarpRows)), laneRow);
    ownColumn =
        k.add(k.mul(k.rem(warp, k.constant(kAcross)), k.constant(kWarpColumns)), k.mul(laneColumn, k.constant(kPiece)));
    for (int64_t row = 0; row < kTile; row += kThreads / kPieces)
      copiedRows.push_back(leftRow(batch, k.add(firstRow, copiedRow(row))));
    slices = k.dim(ceildiv(depth, kSlice));
    canCopy = copiesPieces(kPiece);
    k.keepsRolled = true;
    k.loop(k.constant(0), k.constant(kStages - 1), k.constant(1),
           [&](Value i) { fill(i, k.mul(i, k.constant(kStage))); });
    Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(VectorType::get({kPiece}, k.b.getF32Type())));
    SmallVector<Value> sums(size_t(kSums), zero);
    sums.push_back(k.constant(0)); // the stage of the slice
    sums = k.loop(k.constant(0), slices, k.constant(1), sums, [&](Value slice, ValueRange carried) {
      if (canCopy)
        waitForCopies(k, kStages - 2);
      barrier(k); // all threads see this slice, and none reads the one before any more
      Value stage = carried.back(), last = k.constant((kStages - 1) * kStage);
      fill(k.add(slice, k.constant(kStages - 1)),
           ifEqual(stage, k.constant(0), last, k.sub(stage, k.constant(kStage))));
      SmallVector<Value> next = multiply(stage, carried.drop_back());
      next.push_back(ifEqual(stage, last, k.constant(0), k.add(stage, k.constant(kStage))));
      return next;
    });
    sums.pop_back();
    barrier(k); // the last slice has been read
    finishAll(sums);
    k.keepsRolled = false;
    return {.blocks = batches * rowTiles * columnTiles, .threads = kThreads, .leastBlocks = 2};
  }

private:
  /// Row of the left tile of which this thread copies a piece; one copy of all threads covers kThreads / kPieces rows,
  /// beginning with row `from`.
  Value copiedRow(int64_t from) { return k.add(k.div(thread, k.constant(kPieces)), k.constant(from)); }
  /// Elements of a slice of an operand in shared memory.
  static constexpr int64_t kStage = kTile * kSlice;
  Value ifEqual(Value x, Value y, Value then, Value otherwise) {
    return arith::SelectOp::create(k.b, k.loc, k.compare(arith::CmpIPredicate::eq, x, y), then, otherwise);
  }

  /// Starts copying a slice of both operands to its stage, which begins at element `stage` of each tile. Slices beyond
  /// the last one close a group, too, an empty one, so that waitForCopies() counts groups alike in every iteration.
  void fill(Value slice, Value stage) {
    Value from = k.mul(slice, k.constant(kSlice));
    k.when(isBelow(slice, slices), [&] {
      if (canCopy) {
        k.when(canCopy, [&] { copyPieces(stage, from); });
        k.unless(canCopy, [&] { fillOneByOne(stage, from); });
      } else {
        fillOneByOne(stage, from);
      }
    });
    if (canCopy)
      commitCopies(k);
  }

  void copyPieces(Value stage, Value from) {
    auto copy = [&](const Memory &tile, Value place, const Memory &source, Value position, Value exists) {
      Value at = arith::SelectOp::create(k.b, k.loc, exists, position, k.constant(0));
      copyAsync(k, k.elementPointer(tile, k.add(stage, place)), k.elementPointer(source, at), exists);
    };
    Value piece = k.rem(thread, k.constant(kPieces)), step = k.add(from, k.mul(piece, k.constant(kPiece)));
    for (auto [i, row] : llvm::enumerate(copiedRows)) {
      auto [position, exists] = leftPosition(row, step);
      copy(leftTile, SwizzledTile::pieceAt(k, copiedRow(int64_t(i) * kThreads / kPieces), piece, kPiece), left.memory,
           position, exists);
    }
    constexpr int64_t kOfSharedRow = kTile / kPiece, kSharedRows = kThreads / kOfSharedRow;
    Value at = k.mul(k.rem(thread, k.constant(kOfSharedRow)), k.constant(kPiece));
    for (int64_t sharedRow = 0; sharedRow < kSlice; sharedRow += kSharedRows) {
      Value own = k.add(k.div(thread, k.constant(kOfSharedRow)), k.constant(sharedRow));
      auto [position, exists] = rightElement(at, k.add(from, own));
      copy(rightTile, k.add(k.mul(own, k.constant(kTile)), at), rhs, position, exists);
    }
  }

  /// The position of an element of the right tile in rhs, and whether it exists.
  std::pair<Value, Value> rightElement(Value at, Value step) {
    Value column = k.add(firstColumn, at), inPanel = k.rem(at, k.constant(panelWidth));
    return rightPosition(batch, k.sub(column, inPanel), inPanel, step);
  }

  void fillOneByOne(Value stage, Value from) {
    k.loop(thread, k.constant(kTile * kSlice), k.constant(kThreads), [&](Value i) {
      Value row = k.div(i, k.constant(kSlice)), at = k.rem(i, k.constant(kSlice));
      auto [position, exists] = leftPosition(leftRow(batch, k.add(firstRow, row)), k.add(from, at));
      Value place =
          k.add(SwizzledTile::pieceAt(k, row, k.div(at, k.constant(kPiece)), kPiece), k.rem(at, k.constant(kPiece)));
      k.store(leftTile, {k.add(stage, place)}, k.load(left.memory, {position}, 1, exists), 1, {});
    });
    k.loop(thread, k.constant(kTile * kSlice), k.constant(kThreads), [&](Value i) {
      auto [position, exists] = rightElement(k.rem(i, k.constant(kTile)), k.add(from, k.div(i, k.constant(kTile))));
      k.store(rightTile, {k.add(stage, i)}, k.load(rhs, {position}, 1, exists), 1, {});
    });
  }

  /// Loads 16 bytes of shared memory.
  Value loadPiece(const Memory &tile, Value position) {
    auto type = VectorType::get({kPiece}, k.b.getF32Type());
    return LLVM::LoadOp::create(k.b, k.loc, type, k.elementPointer(tile, position), /*alignment=*/16);
  }

  /// Adds the products of a slice, half of its steps per iteration of a loop: short code is compiled faster.
  SmallVector<Value> multiply(Value stage, ValueRange carried) {
    constexpr int64_t kIterations = 2, kPiecesOfIteration = kPieces / kIterations;
    // SwizzledTile stores piece p of a row at p ^ (row / 2 % 4). Bit 1 of the row depends on the lane only (isOdd); bit
    // 2 is that of r, the index of the row within the lane, because a lane's rows are 4 apart.
    Value row = k.add(stage, k.mul(ownRow, k.constant(kSlice)));
    Value isOdd = k.rem(k.div(ownRow, k.constant(2)), k.constant(2));
    Value right = k.add(stage, ownColumn);
    return k.loop(
        k.constant(0), k.constant(kIterations), k.constant(1), SmallVector<Value>(carried),
        [&](Value iteration, ValueRange before) {
          SmallVector<Value> sums(before);
          Value first = k.add(right, k.mul(iteration, k.constant(kPiecesOfIteration * kPiece * kTile)));
          for (int64_t piece = 0; piece < kPiecesOfIteration; ++piece) {
            Value inIteration = piece ? k.sub(k.constant(1), isOdd) : isOdd;
            SmallVector<Value> lefts;
            for (int64_t r = 0; r < kRows; ++r) {
              Value half = r % 2 ? k.sub(k.constant(1), iteration) : iteration;
              Value place =
                  k.add(k.mul(half, k.constant(kPiecesOfIteration * kPiece)), k.mul(inIteration, k.constant(kPiece)));
              lefts.push_back(loadPiece(leftTile, k.add(k.add(row, place), k.constant(r * kLaneRows * kSlice))));
            }
            addPiece(sums, lefts, k.add(first, k.constant(piece * kPiece * kTile)));
          }
          return sums;
        });
  }

  void addPiece(SmallVector<Value> &sums, ArrayRef<Value> lefts, Value right) {
    for (int64_t step = 0; step < kPiece; ++step) {
      SmallVector<Value> sharedRow;
      for (int64_t half = 0; half < kHalves; ++half)
        sharedRow.push_back(loadPiece(rightTile, k.add(right, k.constant(step * kTile + half * kHalf))));
      for (int64_t r = 0; r < kRows; ++r) {
        Value x = vector::ExtractOp::create(k.b, k.loc, lefts[size_t(r)], ArrayRef<int64_t>{step});
        for (int64_t half = 0; half < kHalves; ++half) {
          Value &sum = sums[size_t(r * kHalves + half)];
          sum = k.multiplyAdd(DType::f32, k.broadcast(x, kPiece), sharedRow[size_t(half)], sum);
        }
      }
    }
  }

  /// Passes the sums to the epilogue one vector at a time in a loop, so that the code has the epilogue once. Registers
  /// have no index, so each vector passes through shared memory that this thread alone uses.
  void finishAll(ArrayRef<Value> sums) {
    Value own = k.mul(thread, k.constant(kPiece));
    const bool isWide = columns.isStatic() && columns.value() % kPiece == 0;
    Value areAligned = isWide ? operandsAligned(e, body, results) : Value();
    k.loop(k.constant(0), k.constant(kSums), k.constant(1), [&](Value i) {
      for (int64_t n = 0; n < kSums; ++n)
        k.when(k.compare(arith::CmpIPredicate::eq, i, k.constant(n)), [&] {
          LLVM::StoreOp::create(k.b, k.loc, sums[size_t(n)], k.elementPointer(leftTile, own), /*alignment=*/16);
        });
      Value row = k.add(k.add(firstRow, ownRow), k.mul(k.div(i, k.constant(kHalves)), k.constant(kLaneRows)));
      Value column = k.add(k.add(firstColumn, ownColumn), k.mul(k.rem(i, k.constant(kHalves)), k.constant(kHalf)));
      if (areAligned) {
        k.when(areAligned, [&] {
          assumeOperandsAligned(e, body, results);
          finish(row, column, own, kPiece);
        });
        k.unless(areAligned, [&] { finishOneByOne(row, column, own); });
      } else {
        finishOneByOne(row, column, own);
      }
    });
  }
  void finishOneByOne(Value row, Value column, Value own) {
    k.loop(k.constant(0), k.constant(kPiece), k.constant(1),
           [&](Value i) { finish(row, k.add(column, i), k.add(own, i), 1); });
  }
  void finish(Value row, Value column, Value place, int64_t width) {
    k.when(both(isBelow(row, k.dim(rows)), isBelow(column, k.dim(columns))), [&] {
      Value sum = k.load(leftTile, {place, 1}, width, {});
      llvm::SaveAndRestore inLanes(k.width, width);
      p.finish(op.getResult(), placeOf(batch, row, column), castLanes(k.b, k.loc, sum, DType::f32, type), body,
               results);
    });
  }

  ElementEmitter &e;
  PointEmitter p;
  Block &body;
  ArrayRef<Value> results;
  Memory leftTile, rightTile;
  Value firstRow, firstColumn, batch, thread, slices, canCopy;
  Value ownRow, ownColumn;     // the first ones of this thread, in the tile
  SmallVector<Row> copiedRows; // rows of the left operand that this thread copies pieces of
};

} // namespace

GpuLaunch emitFmaContraction(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<ContractOp>().begin();
  return FmaContraction(kernel.e, op, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
