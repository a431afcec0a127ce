#include "codegen/gpu/attention/AttentionFragments.h"
#include "codegen/gpu/Block.h"
#include "codegen/scalar/Elementwise.h"
#include "llvm/Support/SaveAndRestore.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

constexpr int64_t kPiece = SwizzledTile::kPiece;

AttentionFragments::AttentionFragments(const KernelEmission &kernel, ScaledDotProductAttentionOp op)
    : AttentionWarps(kernel.e, op), p(kernel.e, *kernel.space), body(kernel.body), results(kernel.results) {}

AttentionFragments::Online AttentionFragments::start() {
  return {SmallVector<Value>(kHalves, number(-INFINITY)), SmallVector<Value>(kHalves, number(0))};
}

AttentionFragments::Weights AttentionFragments::weigh(Value firstKey, ArrayRef<Value> scores, Online &online,
                                                      bool seesAll) {
  // A weight is 2^(score * scale * log2(e)). The maximum is taken over the scores before they are scaled, which is
  // right if the scale is positive. If it is negative, or a mask of floats is added, scores are scaled first.
  const double log2e = 1 / std::log(2.0);
  const bool addsMask = mask && isFloat(dtypeOf(mask));
  SmallVector<Value> shown(scores);
  Value factor = product(scale(), number(log2e));
  if (addsMask || givenScale < 0) {
    for (Value &score : shown)
      score = product(score, scale());
    factor = number(log2e);
  }
  if (!seesAll)
    shown = maskedScores(firstKey, shown);
  Weights weights{Fragments(scores.size() / 8, SmallVector<Value>(4)), {}};
  for (size_t half = 0; half < size_t(kHalves); ++half) {
    Value &top = online.tops[half];
    Value earlier = top;
    for (size_t i = 2 * half; i < shown.size(); i += 4)
      top = largerOf(k, largerOf(k, shown[i], shown[i + 1]), top);
    for (int64_t distance : {1, 2}) // the four lanes of a row
      top = largerOf(k, top, shuffleAcross(k, top, distance));
    Value shift = select(scalar(top) == -INFINITY, scalar(number(0)), scalar(top)).value(); // all keys masked so far
    Value away = product(shift, product(factor, number(-1)));
    auto weightOf = [&](Value score) {
      return exp2Approximately(k, fma(scalar(score), scalar(factor), scalar(away)).value());
    };
    weights.shrinks.push_back(weightOf(earlier));
    Value total;
    for (size_t i = 2 * half; i < shown.size(); i += 4) {
      Value pair[2];
      for (size_t n = 0; n < 2; ++n)
        pair[n] = weightOf(shown[i + n]);
      Value both = arith::AddFOp::create(k.b, k.loc, pair[0], pair[1]);
      total = total ? arith::AddFOp::create(k.b, k.loc, total, both).getResult() : both;
      weights.fragments[i / 8][i / 4 % 2 * 2 + half] = packPair(k, dtype, pair[0], pair[1]);
    }
    Value &sum = online.totals[half];
    sum = fma(scalar(sum), scalar(weights.shrinks[half]), scalar(total)).value();
  }
  return weights;
}

SmallVector<Value>
AttentionFragments::overTiles(Value from, Value end, int64_t tileKeys, Value firstRow, int64_t blockRows,
                              SmallVector<Value> carried,
                              llvm::function_ref<SmallVector<Value>(const KeyTile &, ArrayRef<Value>)> body) {
  auto loop = [&](Value first, Value last, bool seesAll, bool isLast) {
    carried = k.loop(first, last, k.constant(tileKeys), carried, [&](Value key, ValueRange before) {
      return body({key, seesAll, isLast}, SmallVector<Value>(before));
    });
  };
  if (mask) {
    loop(from, end, /*seesAll=*/false, /*isLast=*/false);
    return carried;
  }
  Value seen = k.dim(keys);
  if (isCausal)
    seen = k.minimum(seen, k.add(firstRow, k.constant(1)));
  seen = k.maximum(k.mul(k.div(seen, k.constant(tileKeys)), k.constant(tileKeys)), from);
  loop(from, seen, /*seesAll=*/true, /*isLast=*/false);
  // The end of the keys cuts one tile, and so does the diagonal of a block if its rows are not more than keys of a
  // tile. A branch instead of a loop would not do: ptxas then computes wgmma instructions one after the other.
  const bool isOne = !isCausal || tileKeys % blockRows == 0;
  if (isCausal || !isMultipleOf(keys, tileKeys))
    loop(seen, end, /*seesAll=*/false, /*isLast=*/isOne);
  return carried;
}

void AttentionFragments::rescale(llvm::MutableArrayRef<Value> sums, ArrayRef<Value> shrinks) {
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = product(sums[i], shrinks[i / 2 % kHalves]);
}

void AttentionFragments::storeResults(const Memory &staged, int64_t columns, const Online &online,
                                      ArrayRef<Value> sums) {
  Value sharedRow = k.mul(k.sub(ownRow, firstRow), k.constant(columns / 2)); // in pairs
  Value own = k.add(sharedRow, k.rem(lane, k.constant(4)));
  for (size_t half = 0; half < size_t(kHalves); ++half) {
    Value total = online.totals[half];
    for (int64_t distance : {1, 2})
      total = arith::AddFOp::create(k.b, k.loc, total, shuffleAcross(k, total, distance));
    Value inverse = select(scalar(total) == 0, scalar(number(0)), 1 / scalar(total)).value(); // all keys are masked
    for (size_t i = 2 * half; i < sums.size(); i += 4) {
      Value pair = packPair(k, dtype, product(sums[i], inverse), product(sums[i + 1], inverse));
      int64_t further = int64_t(half) * 8 * (columns / 2) + int64_t(i / 4) * (kColumns / 2);
      k.store({staged.pointer, DType::i32, {}}, {k.add(own, k.constant(further))}, pair, 1, {});
    }
  }
}

void AttentionFragments::finish(const Memory &staged, int64_t columns, int64_t tileRows, int64_t threads) {
  if (width.value() % kPiece)
    return finishRows(staged, columns, tileRows, threads, 1);
  Value areAligned = operandsAligned(e, body, results);
  k.when(areAligned, [&] {
    assumeOperandsAligned(e, body, results);
    finishRows(staged, columns, tileRows, threads, kPiece);
  });
  k.unless(areAligned, [&] { finishRows(staged, columns, tileRows, threads, 1); });
}

void AttentionFragments::finishRows(const Memory &staged, int64_t columns, int64_t tileRows, int64_t threads,
                                    int64_t lanes) {
  const int64_t pieces = (width.value() + lanes - 1) / lanes;
  k.loop(thread, k.constant(tileRows * pieces), k.constant(threads), [&](Value i) {
    Value sharedRow = k.div(i, k.constant(pieces)), column = k.mul(k.rem(i, k.constant(pieces)), k.constant(lanes));
    Value row = k.add(firstRow, sharedRow);
    k.when(isBelow(row, k.dim(rows)), [&] {
      at[leading] = {row};
      at[leading + 1] = {column, 1};
      Value mixed = k.load(staged, {k.add(k.mul(sharedRow, k.constant(columns)), column), 1}, lanes, {});
      llvm::SaveAndRestore inLanes(k.width, lanes);
      p.finish(result, at, mixed, body, results);
    });
  });
}

} // namespace burin::codegen
