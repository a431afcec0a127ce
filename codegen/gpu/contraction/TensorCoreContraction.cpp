// Products on tensor cores, of 16-bit floats, of f32 that are rounded to tf32 or split into terms of bf16, of bytes, or
// of 8-bit floats: a block computes a tile of the result, its warps parts of it; slices of both operands are copied to
// shared memory while earlier ones are multiplied.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/contraction/ContractionSides.h"
#include "codegen/gpu/contraction/TensorCore.h"
#include "codegen/scalar/Elementwise.h"
#include "passes/kernels/families/GpuFamilies.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kPieces = SwizzledTile::kPieces;      // 16 bytes each, of a row of a slice
constexpr int64_t kMatrixRows = 16, kMatrixColumns = 8; // of one instruction
constexpr int64_t kWarpColumns = 32;                    // columns of a warp: one panel
constexpr int64_t kColumnMatrices = kWarpColumns / kMatrixColumns;
constexpr int64_t kSumLanes = 4; // i32 sums that a thread loads at once

/// The shape of a block's tile and its split into warps.
struct Tiling {
  int64_t warpRows, warpColumns; // warps along rows and columns
  int64_t matrices;              // matrices of a warp along the rows
  int64_t stages;                // slices in shared memory

  int64_t rows() const { return warpRows * matrices * kMatrixRows; }
  int64_t columns() const { return warpColumns * kWarpColumns; }
  int64_t threads() const { return warpRows * warpColumns * kWarp; }
};

constexpr Tiling kLarge{2, 4, 4, 3}, kSmall{2, 2, 2, 4}, kFlat{1, 4, 1, 4};
constexpr int64_t kManyStages = 8;

Tiling shapeFor(ContractOp op) {
  if (passes::contractionTiles(op, kFlat.rows(), kFlat.columns()).rows == 1)
    return kFlat;
  passes::Tiles large = passes::contractionTiles(op, kLarge.rows(), kLarge.columns());
  bool isNarrow = passes::contractionTiles(op, kSmall.rows(), kSmall.columns()).columns == 1;
  return isNarrow || large.count() < passes::kFewTiles ? kSmall : kLarge;
}

/// With few blocks per multiprocessor the latency of copies bounds the time: more slices are on their way then, in up
/// to 72 KB of shared memory per block, otherwise at most 48 KB.
Tiling tilingFor(ContractOp op) {
  constexpr int64_t kFewBlocks = 264; // two per multiprocessor of an H100
  Tiling tiling = shapeFor(op);
  if (tiling.matrices < kLarge.matrices &&
      passes::contractionTiles(op, tiling.rows(), tiling.columns()).count() <= kFewBlocks)
    tiling.stages = kManyStages;
  return tiling;
}

class TensorCoreContraction : ContractionSides {
public:
  TensorCoreContraction(ElementEmitter &e, ContractOp op, Block &body, const passes::IterationSpace &a,
                        ArrayRef<Value> results)
      : ContractionSides(e, op), e(e), p(e, a), body(body), results(results), tiling(tilingFor(op)),
        dtype(dtypeOf(op.getLhs())), piece(SwizzledTile::kPiece * 2 / int64_t(byteWidth(dtype))),
        slice(kPieces * piece), matrixSteps(2 * piece), panelPieces(hasColumns ? kPieces : kWarpColumns / piece),
        leftTile{sharedPool(k), dtype},
        rightTile{k.elementPointer(leftTile.memory(), k.constant(leftElements())), rhs.dtype} {}

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
    slices = k.dim(ceildiv(depth, slice));
    for (int64_t from = 0; from < tiling.rows() * kPieces; from += tiling.threads())
      copiedRows.push_back(leftRow(batch, k.add(firstRow, sharedRowOf(from, kPieces))));
    canCopy = copiesPieces(piece);
    SmallVector<Value> zeros(size_t(tiling.matrices * kColumnMatrices * 4), e.zeroOf(sumType)), sums;
    if (canCopy) {
      sums = k.when(canCopy, zeros, [&] { return multiplyCopied(zeros); });
      sums = k.unless(canCopy, sums, [&] { return multiplyOneByOne(zeros); });
    } else {
      sums = multiplyOneByOne(zeros);
    }
    rescale(sums);
    finish(sums);
    const int64_t sharedElements = leftElements() + tiling.stages * tiling.columns() * slice;
    return {.blocks = batches * rowTiles * columnTiles,
            .threads = tiling.threads(),
            .sharedBytes = sharedElements * int64_t(byteWidth(dtype))};
  }

private:
  /// The shared row, and the piece of the shared row, that this thread copies in a round that starts at piece `from` of
  /// a tile with so many pieces per shared row.
  Value sharedRowOf(int64_t from, int64_t pieces) { return k.div(k.add(thread, k.constant(from)), k.constant(pieces)); }
  Value pieceOf(int64_t pieces) { return k.rem(thread, k.constant(pieces)); }

  /// Elements of the left operand in shared memory, ahead of the right one.
  int64_t leftElements() const { return tiling.stages * tiling.rows() * slice; }
  bool isOfBytes() const { return byteWidth(dtype) == 1; }
  bool splitsF32() const { return dtype == DType::f32 && k.target.f32Products == F32Products::Bf16x3; }
  /// Shared rows of a slice of the right operand: the steps of a panel, then those of the next panel. Of bytes: the
  /// columns.
  int64_t rightSharedRows() const { return hasColumns ? tiling.columns() : tiling.columns() / kWarpColumns * slice; }
  int64_t rightSharedRowLength() const { return hasColumns ? slice : kWarpColumns; }
  Value leftPiece(Value sharedRow, Value at) { return SwizzledTile::pieceAt(k, sharedRow, at, piece); }
  Value rightPiece(Value sharedRow, Value at) {
    return dtype == DType::f32 ? SwizzledSteps::pieceAt(k, sharedRow, at)
                               : SwizzledTile::pieceAt(k, sharedRow, at, piece);
  }
  /// The position in rhs of element `at` of a shared row, and whether it exists.
  std::pair<Value, Value> rightElement(Value from, Value sharedRow, Value at) {
    if (hasColumns)
      return rightPosition(batch, k.add(firstColumn, sharedRow), k.constant(0), k.add(from, at));
    Value step = k.add(from, k.rem(sharedRow, k.constant(slice)));
    Value column = k.add(firstColumn, k.mul(k.div(sharedRow, k.constant(slice)), k.constant(panelWidth)));
    return rightPosition(batch, column, at, step);
  }

  /// The sum over all slices, which are copied ahead. An iteration of the loop multiplies one, or two if there are many
  /// stages, whose instructions then overlap.
  SmallVector<Value> multiplyCopied(ValueRange zeros) {
    const int64_t iteration = tiling.stages == kManyStages ? 2 : 1, ahead = tiling.stages - iteration;
    const bool areWhole =
        isMultipleOf(ceildiv(depth, slice), iteration); // all iterations; else the last one may lack a slice
    k.loop(k.constant(0), k.constant(ahead), k.constant(1), [&](Value i) { startCopies(i); });
    return k.loop(k.constant(0), slices, k.constant(iteration), zeros, [&](Value i, ValueRange carried) {
      // After the barrier all threads see these slices, and none reads those of the previous iteration any more.
      waitForCopies(k, ahead - iteration);
      barrier(k);
      for (int64_t n = 0; n < iteration; ++n)
        startCopies(k.add(i, k.constant(ahead + n)));
      SmallVector<Value> sums(carried);
      for (int64_t n = 0; n < iteration; ++n) {
        Value own = k.add(i, k.constant(n)), stage = k.rem(own, k.constant(tiling.stages));
        auto next = [&] { return multiply(stage, sums); };
        sums = n == 0 || areWhole ? next() : k.when(isBelow(own, slices), sums, next);
      }
      return sums;
    });
  }

  /// The same from operands that are not aligned.
  SmallVector<Value> multiplyOneByOne(ValueRange zeros) {
    return k.loop(k.constant(0), slices, k.constant(1), zeros, [&](Value i, ValueRange carried) {
      barrier(k); // the previous slice has been read
      fillOneByOne(k.mul(i, k.constant(slice)));
      barrier(k);
      return multiply(k.constant(0), SmallVector<Value>(carried));
    });
  }

  /// Starts copying a slice of both operands to its stage, if it exists, and closes a group of copies.
  void startCopies(Value index) {
    k.when(isBelow(index, slices), [&] {
      Value stage = k.rem(index, k.constant(tiling.stages)), from = k.mul(index, k.constant(slice));
      copyPieces(from, k.mul(stage, k.constant(tiling.rows())), k.mul(stage, k.constant(rightSharedRows())));
    });
    commitCopies(k);
  }

  void copyPieces(Value from, Value leftSharedRow, Value rightSharedRow) {
    auto copy = [&](const SwizzledTile &tile, Value place, const Memory &source, Value position, Value isThere) {
      Value at = arith::SelectOp::create(k.b, k.loc, isThere, position, k.constant(0));
      copyAsync(k, k.elementPointer(tile.memory(), place), k.elementPointer(source, at), isThere);
    };
    eachPiece(tiling.rows() * kPieces, [&](int64_t first) {
      Value at = pieceOf(kPieces);
      auto [position, isThere] =
          leftPosition(copiedRows[size_t(first / tiling.threads())], from, k.mul(at, k.constant(piece)), slice);
      copy(leftTile, leftPiece(k.add(leftSharedRow, sharedRowOf(first, kPieces)), at), left.memory, position, isThere);
    });
    eachPiece(rightSharedRows() * panelPieces, [&](int64_t first) {
      Value sharedRow = sharedRowOf(first, panelPieces), at = pieceOf(panelPieces);
      auto [position, isThere] = rightElement(from, sharedRow, k.mul(at, k.constant(piece)));
      copy(rightTile, rightPiece(k.add(rightSharedRow, sharedRow), at), rhs, position, isThere);
    });
  }

  /// Calls `body` for each piece, of a tile of so many, that this thread copies.
  void eachPiece(int64_t all, llvm::function_ref<void(int64_t)> body) {
    for (int64_t first = 0; first < all; first += tiling.threads()) {
      if (first + tiling.threads() <= all)
        body(first);
      else
        k.when(isBelow(k.add(thread, k.constant(first)), k.constant(all)), [&] { body(first); });
    }
  }

  /// Stores a slice of both operands in the first stage.
  void fillOneByOne(Value from) {
    // Calls `fill(shared row, at)` for each element of a tile.
    auto eachElement = [&](int64_t sharedRows, int64_t width, llvm::function_ref<void(Value, Value)> fill) {
      k.loop(thread, k.constant(sharedRows * width), k.constant(tiling.threads()),
             [&](Value i) { fill(k.div(i, k.constant(width)), k.rem(i, k.constant(width))); });
    };
    auto storeAt = [&](const SwizzledTile &tile, Value start, Value at, Value element) {
      k.store(tile.memory(), {k.add(start, k.rem(at, k.constant(piece)))}, element, 1, {});
    };
    eachElement(tiling.rows(), slice, [&](Value sharedRow, Value at) {
      auto [position, isThere] = leftPosition(leftRow(batch, k.add(firstRow, sharedRow)), k.add(from, at));
      storeAt(leftTile, leftPiece(sharedRow, k.div(at, k.constant(piece))), at,
              k.load(left.memory, {position}, 1, isThere));
    });
    eachElement(rightSharedRows(), rightSharedRowLength(), [&](Value sharedRow, Value at) {
      auto [position, isThere] = rightElement(from, sharedRow, at);
      storeAt(rightTile, rightPiece(sharedRow, k.div(at, k.constant(piece))), at, k.load(rhs, {position}, 1, isThere));
    });
  }

  using Fragments = SmallVector<SmallVector<Value>>; // registers of each matrix of a side

  /// The fragments of the left operand of a warp.
  Fragments leftFragments(Value stage, int64_t step) {
    // Lane i points to row i % 16 of the rows of a matrix, and to half i / 16 of its steps.
    Value row = k.rem(lane, k.constant(kMatrixRows)), half = k.div(lane, k.constant(kMatrixRows));
    Value sharedRow = k.add(k.mul(stage, k.constant(tiling.rows())), k.add(warpRow, row));
    Fragments fragments;
    for (int64_t m = 0; m < tiling.matrices; ++m)
      fragments.push_back(leftTile.load(k, k.add(sharedRow, k.constant(m * kMatrixRows)),
                                        k.add(half, k.constant(step / piece)), /*transposed=*/false));
    return fragments;
  }

  SmallVector<Value> multiply(Value stage, SmallVector<Value> sums) {
    if (dtype == DType::f32)
      return splitsF32() ? multiplyTerms(stage, std::move(sums)) : multiplyRounded(stage, std::move(sums));
    return isOfBytes() ? multiplyBytesOf(stage, std::move(sums)) : multiplyF16(stage, std::move(sums));
  }

  /// Replaces the sums of each matrix of the warp by those that `next` returns; m and n count matrices along the rows
  /// and columns.
  void eachMatrix(SmallVector<Value> &sums,
                  llvm::function_ref<SmallVector<Value>(size_t m, size_t n, ArrayRef<Value> sum)> next) {
    for (size_t m = 0; m < size_t(tiling.matrices); ++m)
      for (size_t n = 0; n < size_t(kColumnMatrices); ++n) {
        auto sum = llvm::MutableArrayRef<Value>(sums).slice((m * size_t(kColumnMatrices) + n) * 4, 4);
        llvm::copy(next(m, n, sum), sum.begin());
      }
  }

  SmallVector<Value> multiplyF16(Value stage, SmallVector<Value> sums) {
    Value row = k.rem(lane, k.constant(kMatrixRows)), half = k.div(lane, k.constant(kMatrixRows));
    Value rightSharedRow = k.add(k.mul(stage, k.constant(rightSharedRows())), k.add(warpColumn, row));
    for (int64_t step = 0; step < slice; step += matrixSteps) {
      Fragments a = leftFragments(stage, step), b;
      for (int64_t n = 0; n < kColumnMatrices; n += 2)
        b.push_back(rightTile.load(k, k.add(rightSharedRow, k.constant(step)), k.add(half, k.constant(n)),
                                   /*transposed=*/true));
      eachMatrix(sums, [&](size_t m, size_t n, ArrayRef<Value> sum) {
        return multiplyMatrices(k, dtype, a[m], ArrayRef<Value>(b[n / 2]).slice(n % 2 * 2, 2), sum);
      });
    }
    return sums;
  }

  /// The f32 of both operands that a thread has for 8 steps, in the fragments of multiplyTf32(). ldmatrix cannot
  /// transpose f32, so each thread loads its elements of the right operand.
  std::pair<Fragments, Fragments> f32Fragments(Value stage, int64_t step) {
    Fragments a = leftFragments(stage, step), b(size_t(kColumnMatrices), SmallVector<Value>(2));
    for (SmallVector<Value> &fragment : a)
      for (Value &word : fragment)
        word = arith::BitcastOp::create(k.b, k.loc, k.b.getF32Type(), word);
    Value iteration = k.rem(lane, k.constant(4)), column = k.div(lane, k.constant(4));
    Value panel = k.div(warpColumn, k.constant(kWarpColumns));
    Value sharedRow =
        k.add(k.mul(stage, k.constant(rightSharedRows())), k.add(k.mul(panel, k.constant(slice)), iteration));
    for (int64_t n = 0; n < kColumnMatrices; ++n)
      for (int64_t i = 0; i < 2; ++i) {
        Value at = k.add(column, k.constant(n * kMatrixColumns));
        Value start = rightPiece(k.add(sharedRow, k.constant(step + i * 4)), k.div(at, k.constant(piece)));
        b[size_t(n)][size_t(i)] = k.load(rightTile.memory(), {k.add(start, k.rem(at, k.constant(piece)))}, 1, {});
      }
    return {std::move(a), std::move(b)};
  }

  SmallVector<Value> multiplyRounded(Value stage, SmallVector<Value> sums) {
    for (int64_t step = 0; step < slice; step += matrixSteps) {
      auto [a, b] = f32Fragments(stage, step);
      for (Fragments *side : {&a, &b})
        for (SmallVector<Value> &fragment : *side)
          for (Value &x : fragment)
            x = roundToTf32(k, x);
      eachMatrix(sums, [&](size_t m, size_t n, ArrayRef<Value> sum) { return multiplyTf32(k, a[m], b[n], sum); });
    }
    return sums;
  }

  /// Three products of terms of bf16, the two small ones first. Sums have no order of steps, as long as both sides have
  /// the same one: each register of bf16, two steps, has a number of one fragment of f32 and the same of another one.
  SmallVector<Value> multiplyTerms(Value stage, SmallVector<Value> sums) {
    for (int64_t step = 0; step < slice; step += 2 * matrixSteps) {
      auto [a, b] = f32Fragments(stage, step);
      auto [nextA, nextB] = f32Fragments(stage, step + matrixSteps);
      auto [highA, lowA] = terms(a, nextA);
      auto [highB, lowB] = terms(b, nextB);
      for (auto [left, right] : {std::pair(&lowA, &highB), std::pair(&highA, &lowB), std::pair(&highA, &highB)})
        eachMatrix(sums, [&](size_t m, size_t n, ArrayRef<Value> sum) {
          return multiplyMatrices(k, DType::bf16, (*left)[m], (*right)[n], sum);
        });
    }
    return sums;
  }
  /// The high and the low terms.
  std::pair<Fragments, Fragments> terms(const Fragments &first, const Fragments &second) {
    Fragments high(first.size()), low(first.size());
    for (size_t m = 0; m < first.size(); ++m)
      for (auto [x, y] : llvm::zip_equal(first[m], second[m])) {
        Bf16Terms split = splitPair(k, x, y);
        high[m].push_back(split.high), low[m].push_back(split.low);
      }
    return {std::move(high), std::move(low)};
  }

  SmallVector<Value> multiplyBytesOf(Value stage, SmallVector<Value> sums) {
    // Lane i points to column i % 8 of the first or second eight columns, and to a half of the steps.
    Value eight = k.constant(kMatrixColumns), part = k.div(lane, eight), half = k.rem(part, k.constant(2));
    Value column = k.add(k.rem(lane, eight), k.mul(k.div(part, k.constant(2)), eight));
    Value sharedRow = k.add(k.mul(stage, k.constant(rightSharedRows())), k.add(warpColumn, column));
    for (int64_t step = 0; step < slice; step += matrixSteps) {
      Fragments a = leftFragments(stage, step), b;
      for (int64_t n = 0; n < kColumnMatrices; n += 2) {
        SmallVector<Value> both = rightTile.load(k, k.add(sharedRow, k.constant(n * kMatrixColumns)),
                                                 k.add(half, k.constant(step / piece)), /*transposed=*/false);
        b.push_back({both[0], both[1]}), b.push_back({both[2], both[3]});
      }
      eachMatrix(sums, [&](size_t m, size_t n, ArrayRef<Value> sum) {
        return isInteger(dtype) ? multiplyBytes(k, dtype, rhs.dtype, a[m], b[n], sum) : multiplyFloat8(a[m], b[n], sum);
      });
    }
    return sums;
  }

  /// Two products of 16 steps, of the first two and of the last two of each four steps that a register of bytes has, in
  /// the places that f16 have.
  SmallVector<Value> multiplyFloat8(ArrayRef<Value> a, ArrayRef<Value> b, ArrayRef<Value> sums) {
    SmallVector<Value> next(sums);
    for (size_t half = 0; half < 2; ++half) { // of 32 steps
      SmallVector<Value> left(4), right(2);
      for (size_t row = 0; row < 2; ++row) {
        std::array<Value, 2> pairs = widenFloat8(k, dtype, a[2 * half + row]);
        left[row] = pairs[0], left[2 + row] = pairs[1];
      }
      std::array<Value, 2> pairs = widenFloat8(k, rhs.dtype, b[half]);
      right = {pairs[0], pairs[1]};
      next = multiplyMatrices(k, DType::f16, left, right, next);
    }
    return next;
  }
  /// Undoes the scaling of widenFloat8().
  void rescale(SmallVector<Value> &sums) {
    double factor = 1;
    for (DType side : {dtype, rhs.dtype})
      factor *= side == DType::f8e4m3fn ? kFloat8Factor : 1;
    if (factor == 1)
      return;
    Value scale = arith::ConstantOp::create(k.b, k.loc, k.b.getF32FloatAttr(float(factor)));
    for (Value &sum : sums)
      sum = arith::MulFOp::create(k.b, k.loc, sum, scale);
  }

  /// Stages the sums in shared memory, so that adjacent threads have adjacent columns in the epilogue.
  void finish(ArrayRef<Value> sums) {
    const int64_t most = isOfBytes() ? kSumLanes : piece;
    const int64_t lanes = columns.isStatic() && columns.value() % most == 0 ? most : 1;
    Value areAligned = lanes > 1 ? operandsAligned(e, body, results) : Value();
    Memory staged{rightTile.pointer, sumType, {}};
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
        Value sharedRow = k.mul(k.add(row, k.constant(i / 2 * 8)), k.constant(tiling.columns()));
        k.store(staged, {k.add(sharedRow, k.add(column, k.constant(n * kMatrixColumns + i % 2)))},
                sums[size_t(n * 4 + i)], 1, {});
      }
  }

  void finishMatrices(const Memory &staged, int64_t m, int64_t lanes) {
    const int64_t pieces = tiling.columns() / lanes;
    k.loop(thread, k.constant(tiling.warpRows * kMatrixRows * pieces), k.constant(tiling.threads()), [&](Value i) {
      Value sharedRow = k.div(i, k.constant(pieces)), at = k.mul(k.rem(i, k.constant(pieces)), k.constant(lanes));
      Value warpSharedRow = k.mul(k.div(sharedRow, k.constant(kMatrixRows)), k.constant(tiling.matrices * kMatrixRows));
      Value row = k.add(k.add(firstRow, warpSharedRow),
                        k.add(k.rem(sharedRow, k.constant(kMatrixRows)), k.constant(m * kMatrixRows)));
      Value column = k.add(firstColumn, at);
      k.when(both(isBelow(row, k.dim(rows)), isBelow(column, k.dim(columns))), [&] {
        Value place = k.add(k.mul(sharedRow, k.constant(tiling.columns())), at);
        Value sum = k.load(staged, {place, 1}, lanes, {});
        if (splitsF32())
          sum = finiteOrExact(sum, row, column, lanes);
        llvm::SaveAndRestore inLanes(k.width, lanes);
        p.finish(op.getResult(), placeOf(batch, row, column), castLanes(k.b, k.loc, sum, sumType, type), body, results);
      });
    });
  }

  /// The sums of adjacent columns of a row; if one is not finite, they are computed again by FMA. Infinities, and
  /// numbers that are rounded to infinity, have terms whose products are NaN.
  Value finiteOrExact(Value sums, Value row, Value column, int64_t lanes) {
    Value infinity = arith::ConstantOp::create(k.b, k.loc, k.b.getF32FloatAttr(INFINITY)), areFinite;
    for (int64_t i = 0; i < lanes; ++i) {
      Value sum = lanes == 1 ? sums : vector::ExtractOp::create(k.b, k.loc, sums, ArrayRef<int64_t>{i}).getResult();
      Value isFinite =
          arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OLT, math::AbsFOp::create(k.b, k.loc, sum), infinity);
      areFinite = areFinite ? both(areFinite, isFinite) : isFinite;
    }
    return k.unless(areFinite, sums, [&] { return SmallVector<Value>{exactSums(row, column, lanes)}; })[0];
  }
  Value exactSums(Value row, Value column, int64_t lanes) {
    const Row own = leftRow(batch, row);
    Value inPanel = k.rem(column, k.constant(panelWidth)), panel = k.sub(column, inPanel);
    auto add = [&](Value step, ValueRange sums) {
      auto [position, isThere] = leftPosition(own, step);
      Value x = k.load(left.memory, {position}, 1, isThere);
      SmallVector<Value> next;
      for (int64_t i = 0; i < lanes; ++i) {
        auto [at, exists] = rightPosition(batch, panel, k.add(inPanel, k.constant(i)), step);
        next.push_back(math::FmaOp::create(k.b, k.loc, x, k.load(rhs, {at}, 1, exists), sums[size_t(i)]));
      }
      return next;
    };
    SmallVector<Value> zeros(size_t(lanes), e.zeroOf(sumType));
    SmallVector<Value> sums = k.loop(k.constant(0), k.dim(depth), k.constant(1), zeros, add);
    return lanes == 1 ? sums[0]
                      : vector::FromElementsOp::create(k.b, k.loc, VectorType::get({lanes}, k.b.getF32Type()), sums);
  }

  ElementEmitter &e;
  PointEmitter p;
  Block &body;
  ArrayRef<Value> results;
  Tiling tiling;
  DType dtype;         // of the left operand; bytes on the right may be of another type
  int64_t piece;       // elements that a thread copies at once: 16 bytes
  int64_t slice;       // steps of the sum in shared memory at once
  int64_t matrixSteps; // of one instruction
  int64_t panelPieces; // of a shared row of the right slice
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
