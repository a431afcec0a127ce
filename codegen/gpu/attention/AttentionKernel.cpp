// Attention by FMA without a matrix of scores in memory: a block computes a tile of query rows of one head and loops
// over tiles of keys. Each row carries the largest score and the sum of its weights so far (online softmax); its
// weighted sum is rescaled when the largest score grows.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/attention/AttentionTiles.h"
#include "codegen/scalar/Elementwise.h"
#include "codegen/scalar/math/Math.h"
#include "llvm/Support/SaveAndRestore.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

class GpuAttention : AttentionTiles {
public:
  GpuAttention(ElementEmitter &e, ScaledDotProductAttentionOp op, Block &body, const passes::IterationSpace &a,
               ArrayRef<Value> results)
      : AttentionTiles(e, op), p(e, a), body(body), results(results), chunks((*upperBound(width) + kTile - 1) / kTile) {
  }

  GpuLaunch emit() {
    Dim blocks = ceildiv(rows, kTile);
    goToHead(k.div(k.lo, k.dim(blocks)));
    firstRow = k.mul(k.rem(k.lo, k.dim(blocks)), k.constant(kTile));
    placeThread();
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
  SmallVector<Value> oneTile(Value firstKey, SmallVector<Value> carried) {
    SmallVector<Value> tile = products({query, firstRow, rows, depth}, {key, firstKey, keys, depth});
    llvm::MutableArrayRef<Value> all(carried);
    auto tops = all.take_front(kOwn), totals = all.slice(kOwn, kOwn), sums = all.drop_front(2 * kOwn);
    Value factor = vectorOf(scale());
    for (int64_t r = 0; r < kOwn; ++r) {
      Value score = masked(multiply(tile[r], factor), k.add(k.add(firstRow, ownRow), k.constant(r)),
                           k.add(firstKey, ownColumn), kOwn);
      Value top = largerOf(k, largestOfRow(score), tops[r]);
      Scalar shift = select(scalar(top) == -INFINITY, scalar(number(0)), scalar(top)); // all keys masked so far
      Value shrink = exp(scalar(tops[r]) - shift).value();
      Value weight = exp(scalar(score) - scalar(vectorOf(shift.value()))).value();
      totals[r] = fma(scalar(totals[r]), scalar(shrink), scalar(sumOfRow(weight))).value();
      tops[r] = top;
      for (int64_t c = 0; c < chunks; ++c)
        sums[c * kOwn + r] = multiply(sums[c * kOwn + r], vectorOf(shrink));
      storeWeights(r, weight, /*turned=*/true);
    }
    for (int64_t c = 0; c < chunks; ++c) {
      loadValues({value, firstKey, keys, width}, c);
      barrier(k);
      addProducts(sums.slice(size_t(c * kOwn), kOwn));
      // The next scores pass a barrier before the tiles are overwritten, unless the depth is 0.
      if (c + 1 < chunks || mayHaveNoDepth())
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
          llvm::SaveAndRestore inLanes(k.width, kOwn);
          llvm::SaveAndRestore existing(
              e.mask, isPartial ? k.below(column, k.maskBound(width, narrowest(body, type)), kOwn) : Value());
          Value mixed = multiply(sums[c * kOwn + r], vectorOf(inverse));
          p.finish(result, at, castLanes(k.b, k.loc, mixed, DType::f32, type), body, results);
        });
      }
    }
  }

  PointEmitter p;
  Block &body;
  ArrayRef<Value> results;
  int64_t chunks;
  Value firstRow;
};

} // namespace

GpuLaunch emitGpuAttention(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<ScaledDotProductAttentionOp>().begin();
  return GpuAttention(kernel.e, op, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
