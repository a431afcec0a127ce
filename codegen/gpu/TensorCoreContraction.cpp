// Products of 16-bit floats on tensor cores: a block computes a tile of the result, its warps parts of it; slices of
// both operands are copied to shared memory while earlier ones are multiplied.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/ContractionSides.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/Results.h"
#include "codegen/gpu/TensorCore.h"
#include "codegen/scalar/Elementwise.h"
#include "passes/kernels/GpuFamilies.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kSlice = SwizzledTile::kRow;                             // steps of the sum in shared memory at once
constexpr int64_t kPiece = SwizzledTile::kPiece;                           // elements that a thread copies at once
constexpr int64_t kPieces = SwizzledTile::kPieces;                         // of a row of a slice
constexpr int64_t kMatrixRows = 16, kMatrixColumns = 8, kMatrixSteps = 16; // of one instruction
constexpr int64_t kWarpColumns = 32;                                       // columns of a warp: one panel
constexpr int64_t kColumnMatrices = kWarpColumns / kMatrixColumns;

/// The shape of a block's tile and its split into warps. All stages take at most 48 KB of shared memory.
struct Tiling {
  int64_t warpRows, warpColumns; // warps along rows and columns
  int64_t matrices;              // matrices of a warp along the rows
  int64_t stages;                // slices in shared memory

  int64_t rows() const { return warpRows * matrices * kMatrixRows; }
  int64_t columns() const { return warpColumns * kWarpColumns; }
  int64_t threads() const { return warpRows * warpColumns * kWarp; }
};

constexpr Tiling kLarge{2, 4, 4, 3}, kSmall{2, 2, 2, 4}, kFlat{1, 4, 1, 4};

Tiling tilingFor(ContractOp op) {
  if (passes::contractionTiles(op, kFlat.rows(), kFlat.columns()).rows == 1)
    return kFlat;
  passes::Tiles large = passes::contractionTiles(op, kLarge.rows(), kLarge.columns());
  bool isNarrow = passes::contractionTiles(op, kSmall.rows(), kSmall.columns()).columns == 1;
  return isNarrow || large.count() < passes::kFewTiles ? kSmall : kLarge;
}

class TensorCoreContraction : ContractionSides {
public:
  TensorCoreContraction(ElementEmitter &e, ContractOp op, Block &body, const passes::IterationSpace &a,
                        ArrayRef<Value> results)
      : ContractionSides(e, op), e(e), p(e, a), body(body), results(results), tiling(tilingFor(op)),
        dtype(dtypeOf(op.getLhs())), leftTile(SwizzledTile::make(k, dtype, tiling.stages * tiling.rows())),
        rightTile(SwizzledTile::make(k, dtype, tiling.stages * tiling.columns())) {}

  GpuLaunch emit() {
    Dim rowTiles = ceildiv(rows, tiling.rows()), columnTiles = ceildiv(columns, tiling.columns());
    Value rest = k.div(k.lo, k.dim(columnTiles));
    firstColumn = k.mul(k.rem(k.lo, k.dim(columnTiles)), k.constant(tiling.columns()));
    firstRow = k.mul(k.rem(rest, k.dim(rowTiles)), k.constant(tiling.rows()));
    batch = op.getBatch() ? k.div(rest, k.dim(rowTiles)) : k.constant(0);
    thread = threadIndex(k), lane = k.rem(thread, k.constant(kWarp));
    Value warp = k.div(thread, k.constant(kWarp));
    warpRow = k.mul(k.div(warp, k.constant(tiling.warpColumns)), k.constant(tiling.matrices * kMatrixRows));
    warpColumn = k.mul(k.rem(warp, k.constant(tiling.warpColumns)), k.constant(kWarpColumns));
    slices = k.dim(ceildiv(depth, kSlice));
    for (int64_t piece = 0; piece < tiling.rows() * kPieces; piece += tiling.threads())
      copiedRows.push_back(leftRow(batch, k.add(firstRow, lineOf(piece))));
    canCopy = copiesPieces(kPiece);
    for (int64_t slice = 0; slice + 1 < tiling.stages; ++slice)
      fill(k.constant(slice));
    Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getF32FloatAttr(0));
    SmallVector<Value> sums(size_t(tiling.matrices * kColumnMatrices * 4), zero);
    sums = k.loop(k.constant(0), slices, k.constant(1), sums, [&](Value slice, ValueRange carried) {
      // After the barrier all threads see this slice, and none reads the previous one any more.
      if (canCopy)
        waitForCopies(k, tiling.stages - 2);
      barrier(k);
      fill(k.add(slice, k.constant(tiling.stages - 1)));
      return multiply(k.rem(slice, k.constant(tiling.stages)), SmallVector<Value>(carried));
    });
    finish(sums);
    return {.blocks = batches * rowTiles * columnTiles, .threads = tiling.threads()};
  }

private:
  /// The line, and the piece of the line, that this thread copies in a round that starts at piece `from` of a tile.
  Value lineOf(int64_t from) { return k.div(k.add(thread, k.constant(from)), k.constant(kPieces)); }
  Value pieceOf() { return k.rem(thread, k.constant(kPieces)); }

  /// Starts copying a slice of both operands to its stage, if it exists, and closes a group of copies.
  void fill(Value slice) {
    Value stage = k.rem(slice, k.constant(tiling.stages)), from = k.mul(slice, k.constant(kSlice));
    Value leftLine = k.mul(stage, k.constant(tiling.rows())), rightLine = k.mul(stage, k.constant(tiling.columns()));
    k.when(isBelow(slice, slices), [&] {
      auto oneByOne = [&] { fillOneByOne(from, leftLine, rightLine); };
      if (canCopy) {
        k.when(canCopy, [&] { copyPieces(from, leftLine, rightLine); });
        k.unless(canCopy, oneByOne);
      } else {
        oneByOne();
      }
    });
    if (canCopy)
      commitCopies(k);
  }

  void copyPieces(Value from, Value leftLine, Value rightLine) {
    auto copy = [&](const SwizzledTile &tile, Value line, const Memory &source, Value position, Value isThere) {
      Value to = k.elementPointer(tile.memory(), SwizzledTile::pieceAt(k, line, pieceOf()));
      Value at = arith::SelectOp::create(k.b, k.loc, isThere, position, k.constant(0));
      copyAsync(k, to, k.elementPointer(source, at), isThere);
    };
    Value channel = k.mul(pieceOf(), k.constant(kPiece));
    eachPiece(tiling.rows(), [&](int64_t piece) {
      auto [position, isThere] = leftPosition(copiedRows[size_t(piece / tiling.threads())], k.add(from, channel));
      copy(leftTile, k.add(leftLine, lineOf(piece)), left.memory, position, isThere);
    });
    // Lines of the right operand are the steps of a panel, then those of the next panel.
    eachPiece(tiling.columns(), [&](int64_t piece) {
      Value line = lineOf(piece), step = k.add(from, k.rem(line, k.constant(kSlice)));
      Value column = k.add(firstColumn, k.mul(k.div(line, k.constant(kSlice)), k.constant(panelWidth)));
      Value isThere = both(isBelow(step, k.dim(depth)), isBelow(column, k.dim(columns)));
      copy(rightTile, k.add(rightLine, line), rhs, k.add(panelPosition(batch, column, step), channel), isThere);
    });
  }

  /// Calls `body` for each piece, of a tile of `lines` lines, that this thread copies.
  void eachPiece(int64_t lines, llvm::function_ref<void(int64_t)> body) {
    const int64_t all = lines * kPieces;
    for (int64_t piece = 0; piece < all; piece += tiling.threads()) {
      if (piece + tiling.threads() <= all)
        body(piece);
      else
        k.when(isBelow(k.add(thread, k.constant(piece)), k.constant(all)), [&] { body(piece); });
    }
  }

  void fillOneByOne(Value from, Value leftLine, Value rightLine) {
    auto fillTile = [&](const SwizzledTile &tile, int64_t lines, Value firstLine,
                        llvm::function_ref<Value(Value line, Value at)> element) {
      k.loop(thread, k.constant(lines * kSlice), k.constant(tiling.threads()), [&](Value i) {
        Value line = k.div(i, k.constant(kSlice)), at = k.rem(i, k.constant(kSlice));
        Value piece = SwizzledTile::pieceAt(k, k.add(firstLine, line), k.div(at, k.constant(kPiece)));
        k.store(tile.memory(), {k.add(piece, k.rem(at, k.constant(kPiece)))}, element(line, at), 1, {});
      });
    };
    fillTile(leftTile, tiling.rows(), leftLine, [&](Value line, Value at) {
      auto [position, isThere] = leftPosition(leftRow(batch, k.add(firstRow, line)), k.add(from, at));
      return k.load(left.memory, {position}, 1, isThere);
    });
    fillTile(rightTile, tiling.columns(), rightLine, [&](Value line, Value at) {
      Value step = k.add(from, k.rem(line, k.constant(kSlice)));
      Value column = k.add(firstColumn, k.mul(k.div(line, k.constant(kSlice)), k.constant(panelWidth)));
      Value isThere = both(isBelow(step, k.dim(depth)), isBelow(column, k.dim(columns)));
      return k.load(rhs, {k.add(panelPosition(batch, column, step), at)}, 1, isThere);
    });
  }

  SmallVector<Value> multiply(Value stage, SmallVector<Value> sums) {
    // Lane i points to row i % 16 of the 16 × 16 elements of a fragment, and to half i / 16 of its columns.
    Value row = k.rem(lane, k.constant(kMatrixRows)), half = k.div(lane, k.constant(kMatrixRows));
    Value leftLine = k.add(k.mul(stage, k.constant(tiling.rows())), k.add(warpRow, row));
    Value rightLine = k.add(k.mul(stage, k.constant(tiling.columns())), k.add(warpColumn, row));
    for (int64_t step = 0; step < kSlice; step += kMatrixSteps) {
      SmallVector<SmallVector<Value>> a, b;
      for (int64_t m = 0; m < tiling.matrices; ++m)
        a.push_back(leftTile.load(k, k.add(leftLine, k.constant(m * kMatrixRows)),
                                  k.add(half, k.constant(step / kPiece)), /*transposed=*/false));
      for (int64_t n = 0; n < kColumnMatrices; n += 2)
        b.push_back(rightTile.load(k, k.add(rightLine, k.constant(step)), k.add(half, k.constant(n)),
                                   /*transposed=*/true));
      for (int64_t m = 0; m < tiling.matrices; ++m)
        for (int64_t n = 0; n < kColumnMatrices; ++n) {
          auto sum = llvm::MutableArrayRef<Value>(sums).slice(size_t((m * kColumnMatrices + n) * 4), 4);
          ArrayRef<Value> right = ArrayRef<Value>(b[size_t(n / 2)]).slice(size_t(n % 2 * 2), 2);
          llvm::copy(multiplyMatrices(k, dtype, a[size_t(m)], right, sum), sum.begin());
        }
    }
    return sums;
  }

  /// Stages the sums in shared memory, so that adjacent threads have adjacent columns in the epilogue.
  void finish(ArrayRef<Value> sums) {
    const int64_t lanes = columns.isStatic() && columns.value() % kPiece == 0 ? kPiece : 1;
    Value areAligned = lanes > 1 ? operandsAligned(e, body, results) : Value();
    Memory staged{rightTile.pointer, DType::f32, {}};
    for (int64_t m = 0; m < tiling.matrices; ++m) {
      barrier(k); // the last slice, or the previous matrices, have been read
      stage(staged, sums.slice(size_t(m * kColumnMatrices * 4), size_t(kColumnMatrices * 4)));
      barrier(k);
      if (areAligned) {
        k.when(areAligned, [&] {
          assumeOperandsAligned(e, body, results);
          finishMatrices(staged, m, lanes);
        });
        k.unless(areAligned, [&] { finishMatrices(staged, m, 1); });
      } else {
        finishMatrices(staged, m, 1);
      }
    }
  }

  /// Stores one matrix row of each warp. A lane holds two adjacent elements of a row, and of the row 8 further down.
  void stage(const Memory &staged, ArrayRef<Value> sums) {
    Value row = k.add(k.div(warpRow, k.constant(tiling.matrices)), k.div(lane, k.constant(4)));
    Value column = k.add(warpColumn, k.mul(k.rem(lane, k.constant(4)), k.constant(2)));
    for (int64_t n = 0; n < kColumnMatrices; ++n)
      for (int64_t i = 0; i < 4; ++i) {
        Value line = k.mul(k.add(row, k.constant(i / 2 * 8)), k.constant(tiling.columns()));
        k.store(staged, {k.add(line, k.add(column, k.constant(n * kMatrixColumns + i % 2)))}, sums[size_t(n * 4 + i)],
                1, {});
      }
  }

  void finishMatrices(const Memory &staged, int64_t m, int64_t lanes) {
    const int64_t pieces = tiling.columns() / lanes;
    k.loop(thread, k.constant(tiling.warpRows * kMatrixRows * pieces), k.constant(tiling.threads()), [&](Value i) {
      Value line = k.div(i, k.constant(pieces)), at = k.mul(k.rem(i, k.constant(pieces)), k.constant(lanes));
      Value warpLine = k.mul(k.div(line, k.constant(kMatrixRows)), k.constant(tiling.matrices * kMatrixRows));
      Value row =
          k.add(k.add(firstRow, warpLine), k.add(k.rem(line, k.constant(kMatrixRows)), k.constant(m * kMatrixRows)));
      Value column = k.add(firstColumn, at);
      k.when(both(isBelow(row, k.dim(rows)), isBelow(column, k.dim(columns))), [&] {
        Value place = k.add(k.mul(line, k.constant(tiling.columns())), at);
        Value sum = k.load(staged, {place, 1}, lanes, {});
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
  Tiling tiling;
  DType dtype; // of both operands
  SwizzledTile leftTile, rightTile;
  Value firstRow, firstColumn, batch, thread, lane, warpRow, warpColumn, slices, canCopy;
  SmallVector<Row> copiedRows; // rows of the left operand that this thread copies pieces of
};

} // namespace

GpuLaunch emitTensorCoreContraction(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<ContractOp>().begin();
  return TensorCoreContraction(kernel.e, op, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
