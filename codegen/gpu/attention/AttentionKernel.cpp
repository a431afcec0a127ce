// Attention by FMA without a matrix of scores in memory: a block computes a tile of query rows of one head and loops
// over tiles of keys. Each row carries the largest score and the sum of its weights so far (online softmax); its
// weighted sum is rescaled when the largest score grows.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/attention/AttentionSides.h"
#include "codegen/scalar/Elementwise.h"
#include "codegen/scalar/math/Math.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kSide = 16, kThreads = kSide * kSide; // threads of a block form a square
constexpr int64_t kOwn = 4;                             // rows of a thread, and columns of its vector
constexpr int64_t kTile = kSide * kOwn;                 // rows, keys, and value columns of a tile
constexpr int64_t kSlice = 16;                          // steps of the depth in shared memory at once

class GpuAttention : AttentionSides {
public:
  GpuAttention(ElementEmitter &e, ScaledDotProductAttentionOp op, Block &body, const passes::IterationSpace &a,
               ArrayRef<Value> results)
      : AttentionSides(e, op), p(e, a), body(body), results(results), chunks((*upperBound(width) + kTile - 1) / kTile),
        queries(shared(kSlice)), keySlice(shared(kSlice)), weights(shared(kTile)), values(shared(kTile)) {}

  GpuLaunch emit() {
    Dim blocks = ceildiv(rows, kTile);
    goToHead(k.div(k.lo, k.dim(blocks)));
    firstRow = k.mul(k.rem(k.lo, k.dim(blocks)), k.constant(kTile));
    thread = threadIndex(k);
    ownRow = k.mul(k.div(thread, k.constant(kSide)), k.constant(kOwn));
    ownColumn = k.mul(k.rem(thread, k.constant(kSide)), k.constant(kOwn));
    // Per row: the largest score, the sum of weights; then the weighted sums of values.
    SmallVector<Value> carried(kOwn, number(-INFINITY));
    carried.append(kOwn, number(0));
    carried.append(size_t(kOwn * chunks), vectorOf(number(0)));
    Value end = keysBefore(k.add(firstRow, k.constant(kTile)));
    carried = k.loop(k.constant(0), end, k.constant(kTile), carried,
                     [&](Value firstKey, ValueRange before) { return oneTile(firstKey, SmallVector<Value>(before)); });
    finish(carried);
    return {.blocks = heads * blocks, .threads = kThreads};
  }

private:
  Memory shared(int64_t sharedRows) { return {sharedArray(k, k.b.getF32Type(), sharedRows * kTile), DType::f32, {}}; }
  Value vectorOf(Value v) { return k.broadcast(v, kOwn); }
  Value multiply(Value x, Value y) { return arith::MulFOp::create(k.b, k.loc, x, y); }
  Value sum(Value x, Value y) { return arith::AddFOp::create(k.b, k.loc, x, y); }
  /// Reduces over the threads of a row, which are half a warp.
  Value overRow(Value v, llvm::function_ref<Value(Value, Value)> join) {
    for (int64_t distance = kSide / 2; distance > 0; distance /= 2)
      v = join(v, shuffleAcross(k, v, distance));
    return v;
  }
  Value lane(Value v, int64_t i) { return vector::ExtractOp::create(k.b, k.loc, v, ArrayRef<int64_t>{i}); }

  /// Stores a tile transposed: element [row, from + i] of the source goes to [i][row] in shared memory.
  void fillTurned(const Memory &tile, const StridedMemory &source, Value firstSharedRow, const Dim &sharedRows,
                  Value from) {
    k.loop(thread, k.constant(kSlice * kTile), k.constant(kThreads), [&](Value i) {
      Value step = k.rem(i, k.constant(kSlice)), sharedRow = k.div(i, k.constant(kSlice));
      Value row = k.add(firstSharedRow, sharedRow), column = k.add(from, step);
      store(tile, k.add(k.mul(step, k.constant(kTile)), sharedRow), source, row, sharedRows, column, depth);
    });
  }
  void fillValues(Value firstKey, int64_t chunk) {
    k.loop(thread, k.constant(kTile * kTile), k.constant(kThreads), [&](Value i) {
      Value sharedRow = k.div(i, k.constant(kTile)), column = k.rem(i, k.constant(kTile));
      store(values, i, value, k.add(firstKey, sharedRow), keys, k.add(column, k.constant(chunk * kTile)), width);
    });
  }
  /// Stores an element as f32; 0 outside of the tensor.
  void store(const Memory &tile, Value place, const StridedMemory &source, Value row, const Dim &allRows, Value column,
             const Dim &allColumns) {
    Value isThere = arith::AndIOp::create(k.b, k.loc, isBelow(row, k.dim(allRows)), isBelow(column, k.dim(allColumns)));
    Value position = k.add(rowStart(source, row), k.mul(column, k.dim(source.strides.back())));
    Value element = k.load(source.memory, {position}, 1, isThere);
    k.store(tile, {place}, castLanes(k.b, k.loc, element, source.memory.dtype, DType::f32), 1, {});
  }

  /// Adds the product of two tiles in shared memory, for this thread's rows of `left` and columns of `right`.
  SmallVector<Value> addProducts(const Memory &left, const Memory &right, int64_t steps, SmallVector<Value> sums) {
    return k.loop(k.constant(0), k.constant(steps), k.constant(1), sums, [&](Value step, ValueRange carried) {
      Value sharedRow = k.mul(step, k.constant(kTile));
      Value x = k.load(left, {k.add(sharedRow, ownRow), 1}, kOwn, {});
      Value y = k.load(right, {k.add(sharedRow, ownColumn), 1}, kOwn, {});
      SmallVector<Value> next;
      for (int64_t r = 0; r < kOwn; ++r)
        next.push_back(k.multiplyAdd(DType::f32, vectorOf(lane(x, r)), y, carried[size_t(r)]));
      return next;
    });
  }

  SmallVector<Value> scores(Value firstKey) {
    SmallVector<Value> none(kOwn, vectorOf(number(0)));
    return k.loop(k.constant(0), k.dim(depth), k.constant(kSlice), none, [&](Value from, ValueRange carried) {
      fillTurned(queries, query, firstRow, rows, from);
      fillTurned(keySlice, key, firstKey, keys, from);
      barrier(k);
      SmallVector<Value> next = addProducts(queries, keySlice, kSlice, SmallVector<Value>(carried));
      barrier(k);
      return next;
    });
  }

  SmallVector<Value> oneTile(Value firstKey, SmallVector<Value> carried) {
    SmallVector<Value> tile = scores(firstKey);
    llvm::MutableArrayRef<Value> all(carried);
    auto tops = all.take_front(kOwn), totals = all.slice(kOwn, kOwn), sums = all.drop_front(2 * kOwn);
    Value factor = vectorOf(scale());
    for (int64_t r = 0; r < kOwn; ++r) {
      Value score = masked(multiply(tile[r], factor), k.add(k.add(firstRow, ownRow), k.constant(r)),
                           k.add(firstKey, ownColumn), kOwn);
      Value top = lane(score, 0);
      for (int64_t i = 1; i < kOwn; ++i)
        top = largerOf(k, top, lane(score, i));
      auto larger = [&](Value x, Value y) { return largerOf(k, x, y); };
      top = largerOf(k, overRow(top, larger), tops[r]);
      Scalar shift = select(scalar(top) == -INFINITY, scalar(number(0)), scalar(top)); // all keys masked so far
      Value shrink = exp(scalar(tops[r]) - shift).value();
      Value weight = exp(scalar(score) - scalar(vectorOf(shift.value()))).value();
      Value total = lane(weight, 0);
      for (int64_t i = 1; i < kOwn; ++i)
        total = sum(total, lane(weight, i));
      total = overRow(total, [&](Value x, Value y) { return sum(x, y); });
      totals[r] = fma(scalar(totals[r]), scalar(shrink), scalar(total)).value();
      tops[r] = top;
      for (int64_t c = 0; c < chunks; ++c)
        sums[c * kOwn + r] = multiply(sums[c * kOwn + r], vectorOf(shrink));
      for (int64_t i = 0; i < kOwn; ++i) {
        Value sharedRow = k.mul(k.add(ownColumn, k.constant(i)), k.constant(kTile));
        k.store(weights, {k.add(sharedRow, k.add(ownRow, k.constant(r)))}, lane(weight, i), 1, {});
      }
    }
    for (int64_t c = 0; c < chunks; ++c) {
      fillValues(firstKey, c);
      barrier(k);
      auto own = sums.slice(size_t(c * kOwn), kOwn);
      llvm::copy(addProducts(weights, values, kTile, SmallVector<Value>(own)), own.begin());
      // The next scores pass a barrier before the tiles are overwritten, unless the depth is 0.
      if (c + 1 < chunks || !depth.isStatic() || depth.value() == 0)
        barrier(k);
    }
    return carried;
  }

  void finish(ArrayRef<Value> carried) {
    auto totals = carried.slice(kOwn, kOwn), sums = carried.drop_front(2 * kOwn);
    bool isPartial = !isMultipleOf(width, kOwn);
    for (int64_t r = 0; r < kOwn; ++r) {
      Scalar total = scalar(totals[r]);
      Value inverse = select(total == 0, scalar(number(0)), 1 / total).value(); // a row whose keys are all masked
      Value row = k.add(k.add(firstRow, ownRow), k.constant(r));
      for (int64_t c = 0; c < chunks; ++c) {
        Value column = k.add(ownColumn, k.constant(c * kTile));
        Value isThere = arith::AndIOp::create(k.b, k.loc, isBelow(row, k.dim(rows)), isBelow(column, k.dim(width)));
        k.when(isThere, [&] {
          at[leading] = {row};
          at[leading + 1] = {column, 1};
          k.width = kOwn;
          if (isPartial)
            e.mask = k.below(column, k.maskBound(width, narrowest(body, type)), kOwn);
          Value mixed = multiply(sums[c * kOwn + r], vectorOf(inverse));
          p.finish(op.getResult(), at, castLanes(k.b, k.loc, mixed, DType::f32, type), body, results);
          e.mask = {};
          k.width = 1;
        });
      }
    }
  }

  PointEmitter p;
  Block &body;
  ArrayRef<Value> results;
  int64_t chunks;
  Memory queries, keySlice; // [step of the depth][row or key]
  Memory weights;           // [key][row]
  Memory values;            // [key][column]
  Value firstRow, thread, ownRow, ownColumn;
};

} // namespace

GpuLaunch emitGpuAttention(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<ScaledDotProductAttentionOp>().begin();
  return GpuAttention(kernel.e, op, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
