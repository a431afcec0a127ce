// Gradients of attention of 16-bit floats on tensor cores, see GradientBlocks.h. A warp has 16 rows of its block's
// tile. A block of keys computes transposed scores, so that in both groups a warp's weights are the left operands of
// the products that follow, without a copy.
//
// Shared memory is one SwizzledTile: two operands of the block's own rows (queries and g, or keys and values), followed
// by the same rows of the other two operands, a tile at a time. An operand is stored by blocks of 32 columns, a block
// having a shared row per row.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/attention/AttentionWarps.h"
#include "codegen/gpu/attention/gradient/GradientBlocks.h"
#include "codegen/scalar/Elementwise.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kWarps = 4, kThreads = kWarps * kWarp;
constexpr int64_t kTile = 64;       // own rows
constexpr int64_t kFewColumns = 64; // with more, a tile of the other operands has half as many rows
constexpr int64_t kBlock = SwizzledTile::kRow;

class TensorCoreGradient : AttentionWarps {
public:
  TensorCoreGradient(ElementEmitter &e, AttentionGradientOp op, Value memory)
      : AttentionWarps(e, op), gradient(e.stridedMemoryOf(op.getGradient())), blocks(*this, memory),
        columnBlocks((width.value() + kBlock - 1) / kBlock), steps((width.value() + kSteps - 1) / kSteps),
        sumCount(size_t((width.value() + kColumns - 1) / kColumns * 4)),
        otherRows(width.value() > kFewColumns ? kTile / 2 : kTile),
        tile(SwizzledTile::make(k, dtype, 2 * columnBlocks * (kTile + otherRows))) {}

  GpuLaunch emit() {
    for (int64_t i = 0; i < 2; ++i) {
      own[i] = k.constant(i * columnBlocks * kTile);
      other[i] = k.constant(columnBlocks * (2 * kTile + i * otherRows));
    }
    canCopy = copiesPieces({&query, &key, &value, &gradient});
    return blocks.emit(kTile, kThreads, [&](Value first) { ofQueries(first); }, [&](Value first) { ofKeys(first); });
  }

private:
  using Part = GradientBlocks::Part;
  using Sums = SmallVector<Value>;
  /// Two operands with the same rows, and the number of these.
  struct Pair {
    const StridedMemory &first, &second;
    const Dim &count;
  };
  Pair ofQueryRows() { return {query, gradient, rows}; }
  Pair ofKeyRows() { return {key, value, keys}; }

  // ---- copies to shared memory

  void fill(ArrayRef<Value> sharedRows, const Pair &pair, Value first, int64_t tileRows) {
    const StridedMemory *sources[] = {&pair.first, &pair.second};
    auto both = [&](auto &&fillOne) {
      for (auto [sharedRow, source] : llvm::zip_equal(sharedRows, sources))
        fillOne(Tile{tile, sharedRow, *source, first, pair.count, width, tileRows, columnBlocks});
    };
    auto oneByOne = [&] { both([&](const Tile &t) { storeTile(t, thread, kThreads); }); };
    if (!canCopy)
      return oneByOne();
    k.when(canCopy, [&] { both([&](const Tile &t) { copyTile(t, thread, kThreads); }); });
    k.unless(canCopy, oneByOne);
  }
  /// Waits for the copies of all threads of the block.
  void waitForTiles() {
    if (canCopy) {
      commitCopies(k);
      waitForCopies(k, 0);
    }
    barrier(k);
  }

  /// Runs the body with each tile of the other operands from `begin` on, in shared memory.
  Sums loopOver(const Pair &pair, Value begin, Value end, ArrayRef<Value> carried,
                llvm::function_ref<Sums(Value first, ArrayRef<Value>)> body) {
    return k.loop(begin, end, k.constant(otherRows), SmallVector<Value>(carried), [&](Value first, ValueRange before) {
      fill(other, pair, first, otherRows);
      waitForTiles();
      Sums next = body(first, SmallVector<Value>(before));
      barrier(k); // before the tile is overwritten
      return next;
    });
  }
  /// Own rows times those of the tile, for operand 0 or 1 of both.
  Sums products(size_t i) { return multiplyRows(loadRows(tile, own[i], kTile, steps), tile, other[i], otherRows); }
  void add(ArrayRef<Value> weights, size_t i, llvm::MutableArrayRef<Value> sums) {
    addProducts(fragmentsOf(weights), tile, other[i], otherRows, sums);
  }

  // ---- positions of this lane

  /// Begins to copy the own rows: complete when the first tile of the other operands is, if there is one.
  void startRows(const Pair &pair, Value first, Value isNeeded) {
    firstRow = first;
    placeThread(threadIndex(k));
    k.when(isNeeded, [&] { fill(own, pair, first, kTile); });
  }
  /// Row, and column in a tile, of element i of products.
  Value rowOf(size_t half) { return k.add(ownRow, k.constant(8 * int64_t(half))); }
  Value columnOf(size_t i) {
    Value first = k.mul(k.rem(lane, k.constant(4)), k.constant(2));
    return k.add(first, k.constant(int64_t(i / 4) * kColumns + int64_t(i % 2)));
  }
  static size_t halfOf(size_t i) { return i / 2 % size_t(kHalves); }
  Value difference(Value x, Value y) { return arith::SubFOp::create(k.b, k.loc, x, y); }
  Value weight(Value score, Value shift) {
    const double log2e = 1 / std::log(2.0);
    Value away = product(shift, number(-log2e));
    return exp2Approximately(k, fma(scalar(score), scalar(number(log2e)), scalar(away)).value());
  }
  /// Joins numbers of the four lanes of a row.
  Value overRow(Value x, llvm::function_ref<Value(Value, Value)> join) {
    for (int64_t distance : {1, 2})
      x = join(x, shuffleAcross(k, x, distance));
    return x;
  }
  Value sumOverRow(Value x) {
    return overRow(x, [&](Value a, Value b) { return arith::AddFOp::create(k.b, k.loc, a, b).getResult(); });
  }

  // ---- a block of queries

  Sums scoresOfQueries(Value firstKey) {
    Sums scores = products(0);
    for (Value &score : scores)
      score = product(score, scale());
    return maskedScores(firstKey, scores);
  }

  SmallVector<RowState> statesOf(Value end) {
    // Per own row: the largest score; this lane's sums of weights, and of weights times dP.
    Sums carried(size_t(kHalves), number(-INFINITY));
    carried.append(size_t(2 * kHalves), number(0));
    carried = loopOver(ofKeyRows(), k.constant(0), end, carried, [&](Value firstKey, ArrayRef<Value> before) {
      Sums scores = scoresOfQueries(firstKey), ofWeights = products(1), next(before);
      for (size_t half = 0; half < size_t(kHalves); ++half) {
        Value &top = next[half], &weights = next[kHalves + half], &dots = next[2 * kHalves + half];
        Value larger = top;
        for (size_t i = 0; i < scores.size(); ++i)
          larger = halfOf(i) == half ? largerOf(k, scores[i], larger) : larger;
        larger = overRow(larger, [&](Value x, Value y) { return largerOf(k, x, y); });
        Value shift = blocks.shiftOf(larger), shrink = weight(top, shift);
        weights = product(weights, shrink), dots = product(dots, shrink);
        for (size_t i = 0; i < scores.size(); ++i)
          if (halfOf(i) == half) {
            Value own = weight(scores[i], shift);
            weights = arith::AddFOp::create(k.b, k.loc, weights, own);
            dots = fma(scalar(own), scalar(ofWeights[i]), scalar(dots)).value();
          }
        top = larger;
      }
      return next;
    });
    SmallVector<RowState> states;
    for (size_t half = 0; half < size_t(kHalves); ++half)
      states.push_back(
          blocks.stateOf(carried[half], sumOverRow(carried[kHalves + half]), sumOverRow(carried[2 * kHalves + half])));
    return states;
  }

  void ofQueries(Value first) {
    Value end = keysBefore(k.add(first, k.constant(kTile)));
    startRows(ofQueryRows(), first, isBelow(k.constant(0), end));
    SmallVector<RowState> states = statesOf(end);
    k.when(k.compare(arith::CmpIPredicate::eq, k.rem(lane, k.constant(4)), k.constant(0)), [&] {
      for (size_t half = 0; half < size_t(kHalves); ++half)
        k.when(isBelow(rowOf(half), k.dim(rows)), [&] { blocks.store(rowOf(half), states[half]); });
    });
    Sums sums(sumCount, number(0));
    sums = loopOver(ofKeyRows(), k.constant(0), end, sums, [&](Value firstKey, ArrayRef<Value> before) {
      Sums scores = scoresOfQueries(firstKey), ofScores = products(1), next(before);
      for (size_t i = 0; i < scores.size(); ++i) {
        const RowState &state = states[halfOf(i)];
        Value own = product(weight(scores[i], state.shift), state.inverse);
        ofScores[i] = product(own, difference(ofScores[i], state.total));
      }
      add(ofScores, 0, next);
      return next;
    });
    store(Part::OfQueries, rows, sums);
  }

  // ---- a block of keys

  /// Products of own keys and queries become weights, and those of own values and g become dS.
  void differentiate(Value firstQuery, Sums &scores, Sums &ofScores) {
    for (size_t i = 0; i < scores.size(); ++i) {
      if (halfOf(i) != 0)
        continue;
      Value query = k.add(firstQuery, columnOf(i)), isThere = isBelow(query, k.dim(rows));
      RowState state = blocks.load(query);
      for (size_t half = 0; half < size_t(kHalves); ++half) {
        Value &score = scores[i + 2 * half], &ofScore = ofScores[i + 2 * half];
        Value shown = masked(product(score, scale()), query, rowOf(half), 1);
        score = product(weight(shown, state.shift), state.inverse);
        ofScore = product(score, difference(ofScore, state.total));
        for (Value *element : {&score, &ofScore}) // a missing query would give NaN with infinite keys or values
          *element = arith::SelectOp::create(k.b, k.loc, isThere, *element, number(0));
      }
    }
  }

  void ofKeys(Value first) {
    Value begin = isCausal ? first : k.constant(0);
    startRows(ofKeyRows(), first, isBelow(begin, k.dim(rows)));
    Sums sums(2 * sumCount, number(0)); // of keys, of values
    sums = loopOver(ofQueryRows(), begin, k.dim(rows), sums, [&](Value firstQuery, ArrayRef<Value> before) {
      Sums scores = products(0), ofScores = products(1), next(before);
      differentiate(firstQuery, scores, ofScores);
      llvm::MutableArrayRef<Value> all(next);
      add(ofScores, 0, all.take_front(sumCount));
      add(scores, 1, all.drop_front(sumCount));
      return next;
    });
    store(Part::OfKeys, keys, ArrayRef(sums).take_front(sumCount));
    store(Part::OfValues, keys, ArrayRef(sums).drop_front(sumCount));
  }

  void store(Part part, const Dim &count, ArrayRef<Value> sums) {
    for (size_t half = 0; half < size_t(kHalves); ++half)
      k.when(isBelow(rowOf(half), k.dim(count)), [&] {
        for (size_t i = 2 * half; i < sums.size(); i += 4)
          for (size_t n = 0; n < 2; ++n) {
            Value column = columnOf(i + n);
            auto storeOne = [&] {
              Value element = castLanes(k.b, k.loc, sums[i + n], DType::f32, type);
              k.store(blocks.result, {blocks.placeOf(part, rowOf(half), column)}, element, 1, {});
            };
            if (int64_t(i / 4 + 1) * kColumns <= width.value())
              storeOne();
            else
              k.when(isBelow(column, k.dim(width)), storeOne);
          }
      });
  }

  const StridedMemory gradient;
  GradientBlocks blocks;
  const int64_t columnBlocks, steps; // of kBlock columns, of kSteps columns
  const size_t sumCount;             // registers of a row's gradient
  const int64_t otherRows;           // of a tile of the other operands
  SwizzledTile tile;
  std::array<Value, 2> own, other; // first shared rows of the operands
  Value canCopy;                   // see copiesPieces(), may be null
};

} // namespace

GpuLaunch emitTensorCoreGradient(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<AttentionGradientOp>().begin();
  return TensorCoreGradient(kernel.e, op, kernel.results[0]).emit();
}

} // namespace burin::codegen
