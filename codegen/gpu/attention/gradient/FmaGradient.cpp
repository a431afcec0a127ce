// Gradients of attention by FMA, see GradientBlocks.h.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/attention/AttentionTiles.h"
#include "codegen/gpu/attention/gradient/GradientBlocks.h"
#include "codegen/scalar/Elementwise.h"
#include "codegen/scalar/math/Math.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

class FmaGradient : AttentionTiles {
public:
  FmaGradient(ElementEmitter &e, AttentionGradientOp op, Value memory)
      : AttentionTiles(e, op), gradient(e.stridedMemoryOf(op.getGradient())), blocks(*this, memory),
        chunks((*upperBound(width) + kTile - 1) / kTile) {}

  GpuLaunch emit() {
    placeThread();
    factor = vectorOf(scale());
    return blocks.emit(kTile, kThreads, [&](Value first) { ofQueries(first); }, [&](Value first) { ofKeys(first); });
  }

private:
  using Part = GradientBlocks::Part;
  using Sums = SmallVector<Value>; // a vector per chunk of columns and own row

  /// Of this thread, a vector per own query row.
  struct Tile {
    SmallVector<Value> scores;   // or weights
    SmallVector<Value> products; // dP, or dS
  };
  Tile tileOf(Value firstRow, Value firstKey) {
    Tile tile{products({query, firstRow, rows, depth}, {key, firstKey, keys, depth}),
              products({gradient, firstRow, rows, width}, {value, firstKey, keys, width})};
    for (int64_t r = 0; r < kOwn; ++r)
      tile.scores[r] = masked(multiply(tile.scores[r], factor), rowOf(firstRow, r), k.add(firstKey, ownColumn), kOwn);
    return tile;
  }
  Value rowOf(Value first, int64_t r) { return k.add(k.add(first, ownRow), k.constant(r)); }
  Value weight(Value score, Value shift) { return exp(scalar(score) - scalar(vectorOf(shift))).value(); }

  /// Scores become weights, and dP becomes dS.
  void differentiate(Tile &tile, ArrayRef<RowState> states) {
    for (auto [score, product, state] : llvm::zip_equal(tile.scores, tile.products, states)) {
      score = multiply(weight(score, state.shift), vectorOf(state.inverse));
      product = multiply(score, arith::SubFOp::create(k.b, k.loc, product, vectorOf(state.total)));
    }
  }

  SmallVector<RowState> statesOf(Value firstRow, Value end) {
    // Per own row: the largest score, the sum of weights, the sum of weights times dP.
    SmallVector<Value> carried(kOwn, number(-INFINITY));
    carried.append(2 * kOwn, number(0));
    carried = k.loop(k.constant(0), end, k.constant(kTile), carried, [&](Value firstKey, ValueRange before) {
      Tile tile = tileOf(firstRow, firstKey);
      SmallVector<Value> next(before);
      for (int64_t r = 0; r < kOwn; ++r) {
        Value &top = next[r], &weights = next[kOwn + r], &dots = next[2 * kOwn + r];
        Value larger = largerOf(k, largestOfRow(tile.scores[r]), top), shift = blocks.shiftOf(larger);
        Scalar shrink = exp(scalar(top) - scalar(shift));
        Value own = weight(tile.scores[r], shift);
        weights = fma(scalar(weights), shrink, scalar(sumOfRow(own))).value();
        dots = fma(scalar(dots), shrink, scalar(sumOfRow(multiply(own, tile.products[r])))).value();
        top = larger;
      }
      return next;
    });
    SmallVector<RowState> states;
    for (int64_t r = 0; r < kOwn; ++r)
      states.push_back(blocks.stateOf(carried[r], carried[kOwn + r], carried[2 * kOwn + r]));
    return states;
  }

  void ofQueries(Value firstRow) {
    Value end = keysBefore(k.add(firstRow, k.constant(kTile)));
    SmallVector<RowState> states = statesOf(firstRow, end);
    k.when(k.compare(arith::CmpIPredicate::eq, ownColumn, k.constant(0)), [&] {
      for (int64_t r = 0; r < kOwn; ++r)
        k.when(isBelow(rowOf(firstRow, r), k.dim(rows)), [&] { blocks.store(rowOf(firstRow, r), states[r]); });
    });
    Sums sums(size_t(kOwn * chunks), vectorOf(number(0)));
    sums = k.loop(k.constant(0), end, k.constant(kTile), sums, [&](Value firstKey, ValueRange before) {
      Tile tile = tileOf(firstRow, firstKey);
      differentiate(tile, states);
      Sums next(before);
      mix(tile.products, /*turned=*/true, {key, firstKey, keys, depth}, next);
      return next;
    });
    store(Part::OfQueries, firstRow, rows, sums);
  }

  void ofKeys(Value firstKey) {
    Value begin = isCausal ? firstKey : k.constant(0);
    const size_t count = size_t(kOwn * chunks);
    Sums both(2 * count, vectorOf(number(0))); // of values, of keys
    both = k.loop(begin, k.dim(rows), k.constant(kTile), both, [&](Value firstRow, ValueRange before) {
      Tile tile = tileOf(firstRow, firstKey);
      SmallVector<RowState> states;
      for (int64_t r = 0; r < kOwn; ++r)
        states.push_back(blocks.load(rowOf(firstRow, r)));
      differentiate(tile, states);
      for (int64_t r = 0; r < kOwn; ++r) // a missing row would give NaN with infinite keys or values
        for (Value *element : {&tile.scores[r], &tile.products[r]})
          *element = arith::SelectOp::create(k.b, k.loc, isBelow(rowOf(firstRow, r), k.dim(rows)), *element,
                                             vectorOf(number(0)));
      Sums next(before);
      llvm::MutableArrayRef<Value> all(next);
      mix(tile.scores, /*turned=*/false, {gradient, firstRow, rows, width}, all.take_front(count));
      if (!mayHaveNoDepth())
        barrier(k); // before the weights are overwritten
      mix(tile.products, /*turned=*/false, {query, firstRow, rows, depth}, all.drop_front(count));
      return next;
    });
    store(Part::OfValues, firstKey, keys, ArrayRef(both).take_front(count));
    store(Part::OfKeys, firstKey, keys, ArrayRef(both).drop_front(count));
  }

  /// Adds the product of a tile and rows of an operand. The next products() has a barrier before shared memory is
  /// overwritten, if it has one.
  void mix(ArrayRef<Value> tile, bool turned, const Rows &rows, llvm::MutableArrayRef<Value> sums) {
    for (int64_t r = 0; r < kOwn; ++r)
      storeWeights(r, tile[r], turned);
    for (int64_t c = 0; c < chunks; ++c) {
      loadValues(rows, c);
      barrier(k);
      addProducts(sums.slice(size_t(c * kOwn), kOwn));
      if (c + 1 < chunks || mayHaveNoDepth())
        barrier(k);
    }
  }

  void store(Part part, Value first, const Dim &count, ArrayRef<Value> sums) {
    for (int64_t r = 0; r < kOwn; ++r)
      for (int64_t c = 0; c < chunks; ++c) {
        Value row = rowOf(first, r), column = k.add(ownColumn, k.constant(c * kTile));
        Value isThere = arith::AndIOp::create(k.b, k.loc, isBelow(row, k.dim(count)), isBelow(column, k.dim(width)));
        k.when(isThere, [&] {
          Value inside = isMultipleOf(width, kOwn) ? Value() : k.below(column, k.maskBound(width, type), kOwn);
          Value element = castLanes(k.b, k.loc, sums[c * kOwn + r], DType::f32, type);
          k.store(blocks.result, {blocks.placeOf(part, row, column), 1}, element, kOwn, inside);
        });
      }
  }

  const StridedMemory gradient;
  GradientBlocks blocks;
  const int64_t chunks; // of kTile columns
  Value factor;
};

} // namespace

GpuLaunch emitFmaGradient(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<AttentionGradientOp>().begin();
  return FmaGradient(kernel.e, op, kernel.results[0]).emit();
}

} // namespace burin::codegen
