// Attention of 16-bit floats on tensor cores (FlashAttention-2, Dao 2023): a warp computes 16 query rows. Their scores
// against a tile of keys stay in registers, become weights there, and are multiplied by the values. Keys are copied
// while values are multiplied, and vice versa.
//
// Shared memory is one swizzled tile with rows ("lines") of 32 elements: [block of 32 columns, key of the tile], first
// the keys, then the values. Queries and results pass through it before and after the loop.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/Results.h"
#include "codegen/gpu/attention/AttentionSides.h"
#include "codegen/gpu/contraction/TensorCore.h"
#include "codegen/scalar/Elementwise.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kWarpRows = 16, kWarps = 4, kThreads = kWarps * kWarp;
constexpr int64_t kTile = kWarps * kWarpRows; // query rows, and keys, of a tile
constexpr int64_t kColumns = 8, kSteps = 16;  // columns and summed elements of one matrix instruction
constexpr int64_t kKeyMatrices = kTile / kColumns;
constexpr int64_t kBlock = SwizzledTile::kRow, kPiece = SwizzledTile::kPiece, kPieces = SwizzledTile::kPieces;
constexpr int64_t kHalves = 2; // a lane holds two rows of a matrix, 8 apart

class TensorCoreAttention : AttentionSides {
public:
  TensorCoreAttention(ElementEmitter &e, ScaledDotProductAttentionOp op, Block &body, const passes::IterationSpace &a,
                      ArrayRef<Value> results)
      : AttentionSides(e, op), p(e, a), body(body), results(results), dtype(query.memory.dtype),
        depthBlocks((depth.value() + kBlock - 1) / kBlock), widthBlocks((width.value() + kBlock - 1) / kBlock),
        depthSteps((depth.value() + kSteps - 1) / kSteps), widthMatrices((width.value() + kColumns - 1) / kColumns),
        tile(SwizzledTile::make(k, dtype, (depthBlocks + widthBlocks) * kTile)) {}

  GpuLaunch emit() {
    Dim blocks = ceildiv(rows, kTile);
    goToHead(k.div(k.lo, k.dim(blocks)));
    firstRow = k.mul(k.rem(k.lo, k.dim(blocks)), k.constant(kTile));
    thread = threadIndex(k), lane = k.rem(thread, k.constant(kWarp));
    ownRow = k.add(firstRow,
                   k.add(k.mul(k.div(thread, k.constant(kWarp)), k.constant(kWarpRows)), k.div(lane, k.constant(4))));
    firstKeyLine = k.constant(0), firstValueLine = k.constant(depthBlocks * kTile);
    canCopy = copiesPieces();
    loadQueries();
    Value end = keysBefore(k.add(firstRow, k.constant(kTile)));
    fillKeys(k.constant(0), end);
    // Per row: the largest score, the sum of this lane's weights; then the weighted sums of values.
    SmallVector<Value> carried(kHalves, number(-INFINITY));
    carried.append(size_t(kHalves + widthMatrices * 4), number(0));
    carried = k.loop(k.constant(0), end, k.constant(kTile), carried, [&](Value firstKey, ValueRange before) {
      return oneTile(firstKey, end, SmallVector<Value>(before));
    });
    finish(carried);
    return {.blocks = heads * blocks, .threads = kThreads};
  }

private:
  // ---- copies to shared memory
  /// Whether 16-byte asynchronous copies are possible: strides, sizes and addresses are multiples of a piece. Null if
  /// that is known to be false.
  Value copiesPieces() {
    Value rest = k.constant(0);
    for (const StridedMemory *s : {&query, &key, &value}) {
      if (s->strides.back() != Dim(1))
        return {};
      for (const Dim &d : ArrayRef<Dim>(s->strides).drop_back()) {
        if (isMultipleOf(d, kPiece))
          continue;
        if (d.isStatic())
          return {};
        rest = arith::OrIOp::create(k.b, k.loc, rest, k.rem(k.dim(d), k.constant(kPiece)));
      }
    }
    if (depth.value() % kPiece || width.value() % kPiece)
      return {};
    Value can = k.compare(arith::CmpIPredicate::eq, rest, k.constant(0));
    for (const StridedMemory *s : {&query, &key, &value})
      can = both(can, k.isAligned(s->memory.pointer, 16));
    return can;
  }
  Value both(Value x, Value y) { return arith::AndIOp::create(k.b, k.loc, x, y); }

  /// Copies a tile of rows from `first` on, `blocks` blocks of columns wide, to shared memory from `line` on; zeros
  /// outside of the tensor. Asynchronous if `canCopy`.
  void fill(Value line, const StridedMemory &source, Value first, const Dim &allRows, const Dim &allColumns,
            int64_t blocks) {
    auto place = [&](Value i, int64_t perRow, auto &&body) { // i: index of a piece or element
      Value at = k.rem(i, k.constant(perRow)), lineOf = k.div(i, k.constant(perRow));
      Value row = k.add(first, k.rem(lineOf, k.constant(kTile)));
      Value column = k.mul(k.div(lineOf, k.constant(kTile)), k.constant(kBlock));
      body(k.add(line, lineOf), at, row, k.add(column, k.mul(at, k.constant(kBlock / perRow))));
    };
    auto isIn = [&](Value row, Value column) {
      return both(isBelow(row, k.dim(allRows)), isBelow(column, k.dim(allColumns)));
    };
    auto oneByOne = [&] {
      k.loop(thread, k.constant(blocks * kTile * kBlock), k.constant(kThreads), [&](Value i) {
        place(i, kBlock, [&](Value lineOf, Value at, Value row, Value column) {
          Value position = k.add(rowStart(source, row), k.mul(column, k.dim(source.strides.back())));
          Value to = SwizzledTile::pieceAt(k, lineOf, k.div(at, k.constant(kPiece)));
          k.store(tile.memory(), {k.add(to, k.rem(at, k.constant(kPiece)))},
                  k.load(source.memory, {position}, 1, isIn(row, column)), 1, {});
        });
      });
    };
    if (!canCopy)
      return oneByOne();
    k.when(canCopy, [&] {
      for (int64_t n = 0; n < blocks * kTile * kPieces; n += kThreads)
        place(k.add(thread, k.constant(n)), kPieces, [&](Value lineOf, Value piece, Value row, Value column) {
          Value isThere = isIn(row, column), position = k.add(rowStart(source, row), column);
          Value from = arith::SelectOp::create(k.b, k.loc, isThere, position, k.constant(0));
          copyAsync(k, k.elementPointer(tile.memory(), SwizzledTile::pieceAt(k, lineOf, piece)),
                    k.elementPointer(source.memory, from), isThere);
        });
    });
    k.unless(canCopy, oneByOne);
  }
  void endGroup() {
    if (canCopy)
      commitCopies(k);
  }
  void waitForGroups(int64_t most) {
    if (canCopy)
      waitForCopies(k, most);
    barrier(k);
  }
  void fillKeys(Value first, Value end) {
    k.when(isBelow(first, end), [&] { fill(firstKeyLine, key, first, keys, depth, depthBlocks); });
    endGroup();
  }

  /// Loads the queries of a warp as fragments, staged in the shared memory of the keys.
  void loadQueries() {
    fill(firstKeyLine, query, firstRow, rows, depth, depthBlocks);
    endGroup();
    waitForGroups(0);
    Value row =
        k.add(k.mul(k.div(thread, k.constant(kWarp)), k.constant(kWarpRows)), k.rem(lane, k.constant(kWarpRows)));
    for (int64_t step = 0; step < depthSteps; ++step) {
      Value line = k.add(row, k.constant(step / 2 * kTile));
      Value piece = k.add(k.div(lane, k.constant(kWarpRows)), k.constant(step % 2 * 2));
      queries.push_back(tile.load(k, line, piece, /*transposed=*/false));
    }
    barrier(k);
  }

  // ---- one tile of keys
  SmallVector<Value> oneTile(Value firstKey, Value end, SmallVector<Value> carried) {
    fill(firstValueLine, value, firstKey, keys, width, widthBlocks);
    endGroup();
    waitForGroups(1); // for the keys; the values may be in flight
    SmallVector<Value> scores = multiplyKeys();
    barrier(k);
    fillKeys(k.add(firstKey, k.constant(kTile)), end);
    SmallVector<SmallVector<Value>> weights = weigh(firstKey, scores, carried);
    waitForGroups(1); // for the values; the next keys may be in flight
    llvm::MutableArrayRef<Value> sums = llvm::MutableArrayRef<Value>(carried).drop_front(2 * kHalves);
    multiplyValues(weights, sums);
    barrier(k);
    return carried;
  }

  SmallVector<Value> multiplyKeys() {
    SmallVector<Value> sums(size_t(kKeyMatrices * 4), number(0));
    // Lanes point to the rows of four matrices: 8 keys twice, each with the first and the second half of the steps.
    Value row = k.add(k.rem(lane, k.constant(8)), k.mul(k.div(lane, k.constant(16)), k.constant(8)));
    Value half = k.rem(k.div(lane, k.constant(8)), k.constant(2));
    for (int64_t step = 0; step < depthSteps; ++step)
      for (int64_t n = 0; n < kKeyMatrices; n += 2) {
        Value line = k.add(firstKeyLine, k.add(row, k.constant(step / 2 * kTile + n * kColumns)));
        SmallVector<Value> both = tile.load(k, line, k.add(half, k.constant(step % 2 * 2)), /*transposed=*/false);
        for (int64_t i = 0; i < 2; ++i)
          multiply(queries[size_t(step)], ArrayRef<Value>(both).slice(size_t(2 * i), 2), sums, n + i);
      }
    return sums;
  }

  /// Turns scores into weights, as left operands of the next product; rescales the sums of rows whose largest score
  /// grows.
  SmallVector<SmallVector<Value>> weigh(Value firstKey, ArrayRef<Value> scores, llvm::MutableArrayRef<Value> carried) {
    SmallVector<SmallVector<Value>> weights(size_t(kTile / kSteps), SmallVector<Value>(4));
    const bool addsMask = op.getMask() && isFloat(dtypeOf(op.getMask()));
    const double log2e = 1 / std::log(2.0); // weights are computed as powers of two
    Value factor = addsMask ? scale() : product(scale(), number(log2e));
    for (int64_t half = 0; half < kHalves; ++half) {
      Value row = k.add(ownRow, k.constant(8 * half));
      SmallVector<Value> shown;
      Value top = carried[size_t(half)];
      for (int64_t n = 0; n < kKeyMatrices; ++n) {
        Value pair = vector::FromElementsOp::create(
            k.b, k.loc, VectorType::get({2}, k.b.getF32Type()),
            ValueRange{scores[size_t(n * 4 + half * 2)], scores[size_t(n * 4 + half * 2 + 1)]});
        Value key = k.add(k.add(firstKey, k.constant(n * kColumns)), k.mul(k.rem(lane, k.constant(4)), k.constant(2)));
        pair = masked(product(pair, k.broadcast(factor, 2)), row, key, 2);
        if (addsMask)
          pair = product(pair, k.broadcast(number(log2e), 2));
        shown.push_back(pair);
        top = largerOf(k, largerOf(k, element(pair, 0), element(pair, 1)), top);
      }
      for (int64_t distance : {1, 2}) // the four lanes of a row
        top = largerOf(k, top, shuffleAcross(k, top, distance));
      Value shift = select(scalar(top) == -INFINITY, scalar(number(0)), scalar(top)).value(); // all keys masked so far
      Value shrink = powerOfTwo(difference(carried[size_t(half)], shift)), total;
      carried[size_t(half)] = top;
      for (int64_t n = 0; n < kKeyMatrices; ++n) {
        Value pair[2];
        for (int64_t i = 0; i < 2; ++i) {
          pair[i] = powerOfTwo(difference(element(shown[size_t(n)], i), shift));
          total = total ? arith::AddFOp::create(k.b, k.loc, total, pair[i]).getResult() : pair[i];
        }
        weights[size_t(n / 2)][size_t(n % 2 * 2 + half)] = packPair(k, dtype, pair[0], pair[1]);
      }
      Value &sum = carried[size_t(kHalves + half)];
      sum = fma(scalar(sum), scalar(shrink), scalar(total)).value();
      for (int64_t n = 0; n < widthMatrices; ++n)
        for (int64_t i = 0; i < 2; ++i) {
          Value &mixed = carried[size_t(2 * kHalves + n * 4 + half * 2 + i)];
          mixed = product(mixed, shrink);
        }
    }
    return weights;
  }

  void multiplyValues(ArrayRef<SmallVector<Value>> weights, llvm::MutableArrayRef<Value> sums) {
    Value row = k.rem(lane, k.constant(kSteps)), half = k.div(lane, k.constant(kSteps));
    for (int64_t step = 0; step < kTile / kSteps; ++step)
      for (int64_t n = 0; n < widthMatrices; n += 2) {
        Value line = k.add(firstValueLine, k.add(row, k.constant(n / kPieces * kTile + step * kSteps)));
        SmallVector<Value> both = tile.load(k, line, k.add(half, k.constant(n % kPieces)), /*transposed=*/true);
        for (int64_t i = 0; i < 2 && n + i < widthMatrices; ++i)
          multiply(weights[size_t(step)], ArrayRef<Value>(both).slice(size_t(2 * i), 2), sums, n + i);
      }
  }

  void multiply(ArrayRef<Value> left, ArrayRef<Value> right, llvm::MutableArrayRef<Value> sums, int64_t matrix) {
    auto sum = sums.slice(size_t(matrix * 4), 4);
    llvm::copy(multiplyMatrices(k, dtype, left, right, sum), sum.begin());
  }

  // ---- numbers
  Value product(Value x, Value y) { return arith::MulFOp::create(k.b, k.loc, x, y); }
  Value difference(Value x, Value y) { return arith::SubFOp::create(k.b, k.loc, x, y); }
  Value element(Value v, int64_t i) { return vector::ExtractOp::create(k.b, k.loc, v, ArrayRef<int64_t>{i}); }
  Value powerOfTwo(Value x) { return exp2Approximately(k, x); }

  // ---- results
  /// Stages the result in shared memory, so that adjacent threads have adjacent columns in the epilogue.
  void finish(ArrayRef<Value> carried) {
    const int64_t staged = widthBlocks * kBlock; // columns of a row
    Memory rowsOfTile{tile.pointer, type, {}};
    // After the barrier of the last tile no thread reads the tiles any more.
    for (int64_t half = 0; half < kHalves; ++half) {
      Value total = carried[size_t(kHalves + half)];
      for (int64_t distance : {1, 2})
        total = arith::AddFOp::create(k.b, k.loc, total, shuffleAcross(k, total, distance));
      Scalar all = scalar(total);
      Value inverse = select(all == 0, scalar(number(0)), 1 / all).value(); // a row whose keys are all masked
      Value line = k.add(k.sub(ownRow, firstRow), k.constant(8 * half));
      for (int64_t n = 0; n < widthMatrices; ++n)
        for (int64_t i = 0; i < 2; ++i) {
          Value mixed = product(carried[size_t(2 * kHalves + n * 4 + half * 2 + i)], inverse);
          Value column = k.add(k.mul(k.rem(lane, k.constant(4)), k.constant(2)), k.constant(n * kColumns + i));
          k.store(rowsOfTile, {k.add(k.mul(line, k.constant(staged)), column)},
                  castLanes(k.b, k.loc, mixed, DType::f32, type), 1, {});
        }
    }
    barrier(k);
    if (width.value() % kPiece) {
      finishRows(rowsOfTile, staged, 1);
      return;
    }
    Value areAligned = operandsAligned(e, body, results);
    k.when(areAligned, [&] {
      assumeOperandsAligned(e, body, results);
      finishRows(rowsOfTile, staged, kPiece);
    });
    k.unless(areAligned, [&] { finishRows(rowsOfTile, staged, 1); });
  }

  void finishRows(const Memory &staged, int64_t stagedColumns, int64_t lanes) {
    const int64_t pieces = (width.value() + lanes - 1) / lanes;
    k.loop(thread, k.constant(kTile * pieces), k.constant(kThreads), [&](Value i) {
      Value line = k.div(i, k.constant(pieces)), column = k.mul(k.rem(i, k.constant(pieces)), k.constant(lanes));
      Value row = k.add(firstRow, line);
      k.when(isBelow(row, k.dim(rows)), [&] {
        at[leading] = {row};
        at[leading + 1] = {column, 1};
        Value mixed = k.load(staged, {k.add(k.mul(line, k.constant(stagedColumns)), column), 1}, lanes, {});
        k.width = lanes;
        p.finish(op.getResult(), at, mixed, body, results);
        k.width = 1;
      });
    });
  }

  PointEmitter p;
  Block &body;
  ArrayRef<Value> results;
  DType dtype;                       // of query, key and value
  int64_t depthBlocks, widthBlocks;  // of 32 columns
  int64_t depthSteps, widthMatrices; // of matrix instructions
  SwizzledTile tile;                 // blocks of keys, followed by blocks of values
  Value firstRow, ownRow, thread, lane, firstKeyLine, firstValueLine, canCopy;
  SmallVector<SmallVector<Value>> queries;
};

} // namespace

GpuLaunch emitTensorCoreAttention(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<ScaledDotProductAttentionOp>().begin();
  return TensorCoreAttention(kernel.e, op, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
